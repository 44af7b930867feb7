"""`ScaMLSampler` on a space that differs from that of its past."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution

from scaml import ScaMLSampler
from scaml.errors import SpaceError
from tests.sampler_cases import (
    BOX,
    UNIT,
    Ear,
    Objective,
    bowl,
    bowls,
    params,
    run,
    study_of,
    valley,
    valleys,
)

pytestmark = pytest.mark.usefixtures("quiet")


def matched_after(sampler: ScaMLSampler, objective: Objective, n: int = 3) -> Any:
    """What became of the only past study."""
    study = run(sampler, objective, n)
    assert len(study.trials) == n
    assert sampler.matching is not None
    (match,) = sampler.matching.matches
    return match


def test_nothing_is_matched_before_the_first_trial() -> None:
    assert ScaMLSampler(valleys(), seed=0).matching is None


def test_a_past_study_may_lack_a_parameter() -> None:
    match = matched_after(ScaMLSampler(valleys(), seed=0), bowl(0.0))
    assert (match.matched, match.lacking, match.held) == (("x",), ("y",), {})


def test_a_past_study_may_have_one_more_parameter() -> None:
    past = study_of(bowl(0.0))
    match = matched_after(ScaMLSampler([past], seed=0), valley)
    assert (match.matched, match.lacking) == (("x",), ())
    assert match.held == {"y": past.best_params["y"]}


@pytest.mark.parametrize("space", [None, {"x": UNIT}], ids=["guessed space", "given space"])
def test_a_parameter_of_the_past_can_be_held_elsewhere(
    space: dict[str, BaseDistribution] | None,
) -> None:
    sampler = ScaMLSampler([study_of(bowl(0.0))], seed=0, fixed={"y": 0.25}, search_space=space)
    assert matched_after(sampler, valley).held == {"y": 0.25}


def test_holding_a_parameter_that_no_past_study_has_is_refused() -> None:
    sampler = ScaMLSampler(valleys(), seed=0, fixed={"z": 1.0}, search_space={"x": UNIT})
    with pytest.raises(SpaceError, match="fixed names 'z'"):
        run(sampler, valley, 1)


def test_a_past_study_may_have_another_range() -> None:
    sampler = ScaMLSampler(valleys(), seed=0)
    match = matched_after(sampler, lambda t: (t.suggest_float("x", 0.4, 0.8) - 0.7) ** 2)
    assert match.matched == ("x",)
    assert match.left_out == 0
    assert sampler.matching is not None
    assert sampler.matching.identical


def test_a_past_study_may_have_another_scale_and_rows_far_outside() -> None:
    def logarithmic(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", 0.5, 1.0, log=True) - 0.7) ** 2

    match = matched_after(ScaMLSampler(valleys(20), seed=0), logarithmic)
    assert match.matched == ("x",)
    assert 0 < match.left_out < 20


def test_a_past_study_far_outside_the_new_range_is_ignored(ear: Ear) -> None:
    sampler = ScaMLSampler(valleys(), seed=0)
    match = matched_after(sampler, lambda t: t.suggest_float("x", 100.0, 101.0))
    assert match.ignored == "it has 0 rows in the new ranges"
    assert len([line for line in ear.warned() if "plain GP" in line]) == 1


def test_a_past_study_may_have_other_choices() -> None:
    def objective(choices: list[str]) -> Objective:
        return lambda t: valley(t) + (t.suggest_categorical("kind", choices) != "b")

    sampler = ScaMLSampler([study_of(objective(["a", "b"]))], seed=0)
    study = run(sampler, objective(["b", "c"]), 4)
    assert sampler.matching is not None
    assert sampler.matching.matches[0].matched == ("kind", "x")
    assert study.best_params["kind"] == "b"


@pytest.mark.parametrize("space", [None, BOX], ids=["guessed space", "given space"])
def test_a_parameter_of_another_kind_is_not_matched(space: dict[str, BaseDistribution] | None) -> None:
    def objective(trial: optuna.Trial) -> float:
        return valley(trial) + len(trial.suggest_categorical("y", ["a", "bb"]))

    given = None if space is None else {"x": UNIT, "y": CategoricalDistribution(["a", "bb"])}
    past = study_of(bowl(0.0))
    match = matched_after(ScaMLSampler([past], seed=0, search_space=given), objective)
    assert (match.matched, match.lacking) == (("x",), ("y",))
    assert match.held == {"y": past.best_params["y"]}
    # And the other way round.
    match = matched_after(ScaMLSampler([study_of(objective)], seed=0), bowl(0.0))
    assert (match.matched, match.lacking, set(match.held)) == (("x",), ("y",), {"y"})


def test_a_past_study_that_shares_nothing_is_ignored(ear: Ear) -> None:
    sampler = ScaMLSampler([study_of(lambda t: t.suggest_float("z", 0.0, 1.0))], seed=0)
    match = matched_after(sampler, valley)
    assert match.ignored == "it shares no parameter with the new space"
    assert any("'past' ignored: it shares no parameter" in line for line in ear.said())


def test_a_guess_outside_the_new_range_is_clipped_into_it() -> None:
    sampler = ScaMLSampler(valleys(20), seed=0)  # best at 0.7
    study = run(sampler, lambda t: t.suggest_float("x", 0.0, 0.5), 1)
    assert study.trials[0].params == {"x": 0.5}
    study = run(sampler, lambda t: t.suggest_float("x", 1.0, 9.0, step=0.5), 1)
    assert study.trials[0].params == {"x": 1.0}
    study = run(sampler, lambda t: t.suggest_int("x", 0, 9), 1)
    assert study.trials[0].params == {"x": 1}
    assert type(study.trials[0].params["x"]) is int


def test_a_guess_may_be_the_choice_none() -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", [None, "a", "b", "c", "d"])
        return valley(trial) + 3.0 * (kind is not None)

    past = [study_of(objective, 20)]
    guesses = [run(ScaMLSampler(past, seed=i), objective, 1).trials[0].params for i in range(3)]
    assert [guess["kind"] for guess in guesses] == [None] * 3


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_choices_that_json_cannot_carry_are_no_trouble() -> None:
    def objective(trial: optuna.Trial) -> float:
        choices: list[Any] = [1j, 2j]
        return valley(trial) + float(abs(trial.suggest_categorical("kind", choices)))

    study = run(ScaMLSampler([study_of(objective)], seed=0), objective, 2)
    assert study.best_params["kind"] == 1j


def test_a_given_parameter_that_the_objective_does_not_use_stops_no_learning() -> None:
    sampler = ScaMLSampler(bowls(), seed=0, search_space=BOX | {"z": UNIT})
    study = run(sampler, bowl(0.05), 4)
    # Close to the optimum, points may be closer than those of other searches.
    assert len({tuple(found.values()) for found in params(study)}) == 4
