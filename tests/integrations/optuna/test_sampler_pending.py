"""Where `ScaMLSampler` looks while others are at work, and after trials without a value."""

from __future__ import annotations

import math

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from scaml import ScaMLSampler
from tests.sampler_cases import (
    BOX,
    UNIT,
    Objective,
    bowl,
    bowls,
    distinct,
    params,
    run,
    study_of,
    valley,
    valleys,
)

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("space", [None, BOX], ids=["guessed space", "given space"])
def test_running_trials_are_pending(space: dict[str, BaseDistribution] | None) -> None:
    study = optuna.create_study(sampler=ScaMLSampler(bowls(), seed=0, search_space=space))
    for _ in range(4):
        bowl(0.0)(study.ask())
    assert distinct(params(study)) == 4
    study.tell(0, 0.1)
    bowl(0.0)(study.ask())
    assert distinct(params(study)) == 5


def test_trials_that_are_asked_for_before_any_parameter_differ_too() -> None:
    study = optuna.create_study(sampler=ScaMLSampler(valleys(), seed=0))
    trials = [study.ask() for _ in range(3)]
    assert distinct([{"x": trial.suggest_float("x", 0.0, 1.0)} for trial in trials]) == 3
    trials = [study.ask({"x": UNIT}) for _ in range(3)]
    assert distinct(params(study)) == 6


def six(trial: optuna.Trial) -> float:
    n, kind = trial.suggest_int("n", 0, 2), trial.suggest_categorical("kind", ["a", "b"])
    return float(n + (kind == "a"))


SIX: dict[str, BaseDistribution] = {
    "n": IntDistribution(0, 2),
    "kind": CategoricalDistribution(["a", "b"]),
}


@pytest.mark.parametrize("space", [None, SIX], ids=["guessed space", "given space"])
@pytest.mark.parametrize("told", [False, True], ids=["running", "completed"])
def test_no_point_of_a_small_space_is_taken_twice(
    told: bool, space: dict[str, BaseDistribution] | None
) -> None:
    study = optuna.create_study(sampler=ScaMLSampler([study_of(six, 5)], seed=0, search_space=space))
    for _ in range(6):
        trial = study.ask()
        value = six(trial)
        if told:
            study.tell(trial, value)
    assert distinct(params(study)) == 6
    seventh = study.ask()
    six(seventh)  # all are taken: any will do
    assert seventh.params in params(study)[:6]


def test_asks_outside_the_past_range_differ() -> None:
    study = optuna.create_study(sampler=ScaMLSampler(bowls(), seed=0))
    for _ in range(3):
        trial = study.ask()
        trial.suggest_float("x", 0.7, 1.0)
        trial.suggest_float("y", 0.0, 0.3)
    assert distinct(params(study)) == 3


def ends_with(how: str) -> Objective:
    """No value near the optimum of the past."""

    def objective(trial: optuna.Trial) -> float:
        value = valley(trial)
        if value > 0.01:
            return value
        if how == "pruned":
            raise optuna.TrialPruned
        return math.nan if how == "failed" else math.inf

    return objective


@pytest.mark.parametrize("how", ["pruned", "failed", "infinite"])
def test_a_point_that_gave_no_value_is_not_tried_again_and_again(how: str) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = run(ScaMLSampler(valleys(), seed=0), ends_with(how), 5)
    assert distinct(params(study)) == 5


def test_infinite_values_of_the_new_study_are_left_out() -> None:
    study = optuna.create_study(sampler=ScaMLSampler(valleys(), seed=0, search_space={"x": UNIT}))
    for x, value in ((0.1, math.inf), (0.2, -math.inf), (0.5, 0.04)):
        study.add_trial(create_trial(params={"x": x}, distributions={"x": UNIT}, value=value))
    study.optimize(valley, n_trials=2)
    assert min(abs(trial.params["x"] - 0.7) for trial in study.trials[3:]) < 0.2


def test_a_worker_whose_guess_the_new_space_cannot_take_stops_nobody() -> None:
    def past(trial: optuna.Trial) -> float:
        return valley(trial) + (trial.suggest_categorical("kind", ["a", "b"]) == "a")

    study = optuna.create_study(sampler=ScaMLSampler([study_of(past)], seed=0))
    study.ask().suggest_float("x", 0.0, 1.0)  # has announced a kind that there is not
    for _ in range(2):
        trial = study.ask()
        value = valley(trial) + (trial.suggest_categorical("kind", ["c", "d"]) == "c")
        study.tell(trial, value)
    assert len(study.trials) == 3


def test_two_studies_may_share_a_sampler() -> None:
    sampler = ScaMLSampler(valleys(), seed=0)
    one, two = (optuna.create_study(sampler=sampler) for _ in range(2))
    first = one.ask()
    x = first.suggest_float("x", 0.0, 1.0)
    trial = two.ask()
    valley(trial)
    # Its own, not the other study's.
    assert two.trials[0].system_attrs["scaml:weights"].keys() == {"valley"}
    assert trial.params["x"] == pytest.approx(x, abs=1e-6)


def test_threads_may_share_a_study() -> None:
    study = optuna.create_study(sampler=ScaMLSampler(valleys(), seed=0))
    study.optimize(valley, n_trials=6, n_jobs=2)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 6
    assert study.best_value < 0.02


def test_a_pruner_works_beside_it() -> None:
    def objective(trial: optuna.Trial) -> float:
        value = valley(trial)
        for step in range(3):
            trial.report(value + 1.0 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    pruner = optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=0)
    study = run(ScaMLSampler(valleys(), seed=0), objective, 8, pruner=pruner)
    states = {t.state for t in study.trials}
    assert states == {TrialState.COMPLETE, TrialState.PRUNED}
    assert study.best_value < 0.01


def test_other_parameters_can_be_fixed_around_it() -> None:
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        sampler = optuna.samplers.PartialFixedSampler({"y": 0.25}, ScaMLSampler(bowls(), seed=0))
    study = run(sampler, bowl(0.0), 3)
    assert [t.params["y"] for t in study.trials] == [0.25] * 3
    assert min(abs(t.params["x"] - 0.4) for t in study.trials) < 0.15
