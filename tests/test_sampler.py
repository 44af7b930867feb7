"""`ScaMLSampler` and its reservations: what it learns, where it looks, what it says and refuses."""

from __future__ import annotations

import json
import logging
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import RandomSampler
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

import scaml
from scaml import MetaData, ScaML, ScaMLSampler, Space, Task
from scaml.errors import SettingError, SpaceError, StorageError
from scaml.methods.base import MetaPrior

ROOT = Path(__file__).parents[1]
UNIT = FloatDistribution(0.0, 1.0)
BOX = {"x": UNIT, "y": UNIT}
Objective = Callable[[optuna.Trial], float]
Past = list[optuna.Study]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


class Ear(logging.Handler):
    """Keeps what is said; caplog hears it twice or never, as Optuna's loggers propagate or not."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def said(self, level: int = logging.INFO) -> list[str]:
        return [record.getMessage() for record in self.records if record.levelno >= level]

    def warned(self) -> list[str]:
        return self.said(logging.WARNING)


@pytest.fixture
def ear() -> Iterator[Ear]:
    """What the sampler says, at level INFO and above."""
    logger, ear = logging.getLogger("optuna.scaml"), Ear()
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(ear)
    yield ear
    logger.removeHandler(ear)
    logger.setLevel(before)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The names of the tasks of every meta-fit."""
    calls: list[tuple[str, ...]] = []
    meta_fit = ScaML.meta_fit

    def counting(self: ScaML, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        calls.append(meta.names)
        return meta_fit(self, meta, seed=seed, n_jobs=n_jobs)

    monkeypatch.setattr(ScaML, "meta_fit", counting)
    return calls


def bowl(shift: float, sign: float = 1.0) -> Objective:
    """Lowest at x = 0.4 + shift, y = 0.6."""

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        return sign * ((x - 0.4 - shift) ** 2 + (y - 0.6) ** 2)

    return objective


def valley(trial: optuna.Trial) -> float:
    return (trial.suggest_float("x", 0.0, 1.0) - 0.7) ** 2


def mixed(trial: optuna.Trial, shift: float = 0.0) -> float:
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    step = trial.suggest_float("step", 0.0, 1.0, step=0.25)
    n = trial.suggest_int("n", 1, 9)
    width = trial.suggest_int("width", 1, 64, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    value = (math.log10(rate) + 2 - shift) ** 2 + (step - 0.5) ** 2 + 0.1 * (n - 4) ** 2
    return value + 0.2 * (math.log2(width) - 3) ** 2 + (0.0 if kind == "b" else 2.0)


def study_of(
    objective: Objective, n: int = 12, *, seed: int = 0, name: str = "past", **settings: Any
) -> optuna.Study:
    study = optuna.create_study(study_name=name, sampler=RandomSampler(seed=seed), **settings)
    study.optimize(objective, n_trials=n)
    return study


def bowls(sign: float = 1.0, direction: str = "minimize") -> Past:
    return [
        study_of(bowl(shift, sign), 15, seed=i, name=f"past-{i}", direction=direction)
        for i, shift in enumerate((-0.1, 0.0, 0.1))
    ]


def valleys(n: int = 8) -> Past:
    return [study_of(valley, n, name="valley")]


def run(sampler: optuna.samplers.BaseSampler, objective: Objective, n: int, **settings: Any) -> Any:
    """The study after n trials."""
    study = optuna.create_study(sampler=sampler, **settings)
    study.optimize(objective, n_trials=n)
    return study


def params(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def distinct(points: Sequence[dict[str, Any]]) -> int:
    """How many points differ by more than rounding."""
    rounded = [
        {k: round(v, 4) if isinstance(v, float) else v for k, v in point.items()} for point in points
    ]
    return len({json.dumps(point, sort_keys=True) for point in rounded})


# What it learns


@pytest.mark.parametrize("space", [None, BOX], ids=["guessed space", "given space"])
def test_the_first_trial_already_uses_the_past(space: dict[str, BaseDistribution] | None) -> None:
    past = bowls()
    first = [
        run(ScaMLSampler(past, seed=seed, search_space=space), bowl(0.05), 1).trials[0].value
        for seed in range(10)
    ]
    random = [run(RandomSampler(seed=seed), bowl(0.05), 1).trials[0].value for seed in range(10)]
    assert max(first) < 0.1 * np.median(random)


def test_maximizing_is_minimizing_the_negative() -> None:
    down = run(ScaMLSampler(bowls(), seed=3), bowl(0.05), 4)
    past_up = bowls(-1.0, "maximize")
    up = run(ScaMLSampler(past_up, seed=3), bowl(0.05, -1.0), 4, direction="maximize")
    assert params(up) == params(down)
    assert [-trial.value for trial in up.trials] == [trial.value for trial in down.trials]
    assert down.best_value < 0.01


@pytest.mark.parametrize("where", ["memory", "sqlite", "journal"])
def test_every_kind_of_parameter_and_storage(where: str, tmp_path: Path) -> None:
    storages: dict[str, Callable[[], Any]] = {
        "memory": lambda: None,
        "sqlite": lambda: RDBStorage(f"sqlite:///{tmp_path / 'all.db'}"),
        "journal": lambda: JournalStorage(JournalFileBackend(str(tmp_path / "all.log"))),
    }
    storage = storages[where]()
    past = []
    for i, shift in enumerate((-0.2, 0.2)):
        past.append(optuna.create_study(study_name=f"past-{i}", storage=storage))
        past[i].add_trials(study_of(partial(mixed, shift=shift), 25, seed=i).trials)
    study = run(ScaMLSampler(past, seed=0), mixed, 2, storage=storage, study_name="new")
    assert study.trials[0].value < 2.0  # random's median is 7
    for trial in study.trials:
        for name, value in trial.params.items():
            distribution = trial.distributions[name]
            assert distribution._contains(distribution.to_internal_repr(value))
    assert type(study.trials[1].params["n"]) is int
    again = run(ScaMLSampler(past, seed=0), mixed, 2)
    assert params(again) == params(study)
    if isinstance(storage, RDBStorage):
        storage.remove_session()
        storage.engine.dispose()


def test_the_weights_are_kept_with_the_trial() -> None:
    study = run(ScaMLSampler(bowls(), seed=0), bowl(0.0), 3)
    assert study.trials[0].system_attrs["scaml:weights"] == dict.fromkeys(
        ["past-0", "past-1", "past-2"], 0.3333
    )
    weights = study.trials[2].system_attrs["scaml:weights"]
    assert set(weights) <= {"past-0", "past-1", "past-2"}
    assert list(weights.values()) == sorted(weights.values(), reverse=True)
    assert all(weight > 0 for weight in weights.values())


def test_weights_of_many_studies_with_long_names_fit_into_an_attribute() -> None:
    base = study_of(valley, 4)
    past = []
    for i in range(200):
        past.append(optuna.create_study(study_name=f"ünïcode {'long ' * 40}{i}"))
        past[-1].add_trials(base.trials)
    study = run(ScaMLSampler(past, seed=0, search_space={"x": UNIT}), valley, 1)
    weights = study.trials[0].system_attrs["scaml:weights"]
    assert 1 < len(weights) < 200
    assert len(json.dumps(weights)) <= 2045


# What it says


def test_what_was_left_out_is_said_in_one_line(ear: Ear) -> None:
    study = study_of(valley, 3)
    for state in (TrialState.FAIL, TrialState.RUNNING, TrialState.WAITING):
        study.add_trial(create_trial(state=state))
    pruned = {"state": TrialState.PRUNED, "intermediate_values": {0: 0.5}}
    study.add_trial(create_trial(params={"x": 0.5}, distributions={"x": UNIT}, **pruned))  # type: ignore[arg-type]
    study.add_trial(create_trial(params={"x": 0.5}, distributions={"x": UNIT}, value=math.inf))
    ScaMLSampler([study], seed=0)
    assert ear.said() == [
        "ScaMLSampler: 1 past study, 3 trials used; left out: 1 fail, 1 not finite, 1 pruned, "
        "1 running, 1 waiting."
    ]


def test_conditional_parameters_are_sampled_independently_with_one_warning_each(
    ear: Ear,
) -> None:
    def objective(trial: optuna.Trial) -> float:
        value = valley(trial)
        return value + (trial.suggest_float("y", 0.0, 1.0) if trial.number in (1, 2, 3) else 0.0)

    run(ScaMLSampler(valleys(), seed=0), objective, 5)
    assert len(ear.warned()) == 1
    assert "'y' is sampled independently, by RandomSampler" in ear.warned()[0]


def test_independent_sampling_can_be_silent_and_of_another_sampler(
    ear: Ear,
) -> None:
    def objective(trial: optuna.Trial) -> float:
        return valley(trial) + (trial.suggest_int("n", 0, 3) if trial.number else 0)

    class Two(RandomSampler):
        def sample_independent(self, *_: Any) -> int:
            return 2

    settings: dict[str, Any] = {"warn_independent_sampling": False, "independent_sampler": Two()}
    study = run(ScaMLSampler(valleys(), seed=0, **settings), objective, 3)
    assert [trial.params.get("n") for trial in study.trials] == [None, 2, 2]
    assert ear.warned() == []


def test_without_usable_past_it_is_a_plain_gp_with_one_warning(
    ear: Ear,
) -> None:
    study = run(ScaMLSampler([study_of(valley, 1)], seed=0), valley, 5)
    assert [line for line in ear.warned() if "plain GP" in line] == ear.warned()
    assert len(ear.warned()) == 1
    assert study.best_value < 0.05
    assert study.trials[4].system_attrs["scaml:weights"] == {}


def test_a_space_that_shrinks_repeats_no_warning(ear: Ear) -> None:
    def objective(trial: optuna.Trial) -> float:
        return valley(trial) + (trial.suggest_float("y", 0.0, 1.0) if trial.number < 3 else 0.0)

    run(ScaMLSampler([], seed=0, warn_independent_sampling=False), objective, 6)
    assert len(ear.warned()) == 1


def test_a_study_among_its_own_past_is_left_out_and_this_is_said(
    ear: Ear, fits: list[tuple[str, ...]]
) -> None:
    own = study_of(valley, 4, name="own")
    own.sampler = ScaMLSampler([own, *valleys()], seed=0)
    own.optimize(valley, n_trials=2)
    assert fits == [("valley",)]
    assert sum("among its own past" in line for line in ear.said()) == 1


def test_a_study_that_is_its_only_past_works_as_a_plain_gp(tmp_path: Path) -> None:
    storages = [RDBStorage(f"sqlite:///{tmp_path / 'own.db'}") for _ in range(2)]
    study_of(valley, 4, name="own", storage=storages[0])
    first, second = (optuna.load_study(study_name="own", storage=s) for s in storages)
    second.sampler = ScaMLSampler([first], seed=0)
    second.optimize(valley, n_trials=1)
    assert second.trials[-1].system_attrs["scaml:weights"] == {}
    for storage in storages:
        storage.remove_session()
        storage.engine.dispose()


def test_what_one_study_leaves_out_another_uses() -> None:
    own, other = study_of(valley, 4, name="own"), study_of(valley, 4, seed=1, name="other")
    sampler = ScaMLSampler([own, other], seed=0)
    own.sampler = sampler
    own.optimize(valley, n_trials=1)
    study = run(sampler, valley, 1)
    assert set(study.trials[0].system_attrs["scaml:weights"]) == {"own", "other"}


# Where it looks while others are at work


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
    assert two.trials[0].system_attrs["scaml:weights"] == {
        "valley": 1.0
    }  # its own, not the other study's
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


# How often it fits


def test_the_past_is_fitted_once_for_each_space(fits: list[tuple[str, ...]]) -> None:
    sampler = ScaMLSampler(valleys(), seed=0)
    run(sampler, valley, 3)
    run(sampler, valley, 2)
    assert len(fits) == 1
    run(sampler, lambda t: (t.suggest_float("x", 0.0, 2.0) - 0.7) ** 2, 3)
    assert len(fits) == 2  # the first trial's space was known already


def test_a_cache_saves_the_second_fit_and_refits_what_changed(
    fits: list[tuple[str, ...]], tmp_path: Path
) -> None:
    past = bowls()
    folder = tmp_path / "deep" / "cache"
    first = run(ScaMLSampler(past, seed=0, cache=folder), bowl(0.0), 2)
    assert fits == [("past-0", "past-1", "past-2")]
    second = run(ScaMLSampler(past, seed=0, cache=folder), bowl(0.0), 2)
    assert len(fits) == 1
    without = run(ScaMLSampler(past, seed=0), bowl(0.0), 2)
    assert params(first) == params(second) == params(without)
    del fits[:]
    past[1].optimize(bowl(0.0), n_trials=1)
    run(ScaMLSampler(past, seed=0, cache=folder), bowl(0.0), 1)
    run(ScaMLSampler(past[::-1], seed=0, cache=folder), bowl(0.0), 1)
    assert fits == [("past-1",)]


def test_a_cache_serves_a_second_process(fits: list[tuple[str, ...]], tmp_path: Path) -> None:
    file, folder = tmp_path / "past.log", tmp_path / "cache"
    program = f"""
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from scaml import ScaMLSampler
from tests.test_sampler import valley

optuna.logging.set_verbosity(optuna.logging.WARNING)
storage = JournalStorage(JournalFileBackend({str(file)!r}))
past = [optuna.load_study(study_name="valley", storage=storage)]
study = optuna.create_study(sampler=ScaMLSampler(past, seed=0, cache={str(folder)!r}))
study.optimize(valley, n_trials=1)
print(study.trials[0].params["x"])
"""
    past = study_of(valley, 8, name="valley", storage=JournalStorage(JournalFileBackend(str(file))))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    study = run(ScaMLSampler([past], seed=0, cache=folder), valley, 1)
    assert fits == []
    assert study.trials[0].params["x"] == float(done.stdout)


# Seeds and pickles


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    past = bowls()
    runs = [params(run(ScaMLSampler(past, seed=seed), bowl(0.0), 2)) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]
    assert params(run(ScaMLSampler(past), bowl(0.0), 1)) != params(
        run(ScaMLSampler(past), bowl(0.0), 1)
    )


def test_reseeding_changes_the_suggestions(fits: list[tuple[str, ...]]) -> None:
    sampler = ScaMLSampler(bowls(), seed=0)
    before = params(run(sampler, bowl(0.0), 1))
    assert params(run(sampler, bowl(0.0), 1)) == before
    sampler.reseed_rng()
    assert params(run(sampler, bowl(0.0), 1)) != before
    assert len(fits) == 1


def test_a_large_seed_is_no_trouble() -> None:
    def objective(trial: optuna.Trial) -> float:
        return valley(trial) + trial.suggest_float("unheard of", 0.0, 1.0)

    assert len(run(ScaMLSampler(valleys(4), seed=2**40), objective, 2).trials) == 2


def test_a_pickled_sampler_goes_on_where_it_was(fits: list[tuple[str, ...]]) -> None:
    def go_on(sampler: ScaMLSampler) -> list[dict[str, Any]]:
        study = optuna.create_study(sampler=sampler)
        study.add_trial(create_trial(params={"x": 0.3}, distributions={"x": UNIT}, value=0.16))
        study.optimize(valley, n_trials=2)
        return params(study)

    fresh = ScaMLSampler(valleys(), seed=0)
    used = pickle.loads(pickle.dumps(fresh))
    expected = go_on(used)
    assert len(fits) == 1
    copy = pickle.loads(pickle.dumps(used))
    assert go_on(copy) == expected
    assert len(fits) == 1
    assert str(copy.matching) == str(used.matching)
    assert go_on(fresh) == expected


# Spaces that differ


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
    assert distinct(params(study)) == 4


# A prior in place of studies


def prior_of(space: Space | None, best: Sequence[float]) -> MetaPrior:
    X = np.random.default_rng(0).random((20, len(best)))
    meta = MetaData([Task(X, -((X - best) ** 2).sum(axis=1), name="saved")])
    prior = ScaML().meta_fit(meta, seed=0)
    return prior if space is None else prior.in_space(space)


def up(trial: optuna.Trial) -> float:
    return -((trial.suggest_float("b", 0.0, 1.0) - 0.9) ** 2) - trial.suggest_float("a", 0.0, 1.0)


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_saved_prior_knows_its_space_in_any_order(names: str, tmp_path: Path) -> None:
    best = {"a": 0.1, "b": 0.9}
    prior = prior_of(Space(dict.fromkeys(names, UNIT)), [best[name] for name in names])
    prior.save(tmp_path / "prior.safetensors")
    loaded = scaml.load(tmp_path / "prior.safetensors")
    study = run(ScaMLSampler(prior=loaded, seed=0), up, 2, direction="maximize")
    assert study.trials[0].params == pytest.approx(best, abs=0.05)
    assert study.trials[0].system_attrs["scaml:weights"] == {"saved": 1.0}


def test_a_prior_of_another_space_is_refused_by_the_names() -> None:
    prior = prior_of(Space({"x": UNIT, "y": UNIT}), [0.5, 0.5])
    other = {"x": FloatDistribution(0.0, 2.0), "z": UNIT}
    sampler = ScaMLSampler(prior=prior, seed=0, search_space=other)
    with pytest.raises(SpaceError, match="differ in 'x', 'y', 'z'; give the past studies"):
        run(sampler, lambda t: t.suggest_float("z", 0.0, 1.0), 1)


def test_a_prior_may_know_a_parameter_that_cannot_vary() -> None:
    prior = prior_of(Space({"c": FloatDistribution(2.0, 2.0), "x": UNIT}), [0.7])

    def objective(trial: optuna.Trial) -> float:
        return -valley(trial) - trial.suggest_float("c", 2.0, 2.0)

    study = run(ScaMLSampler(prior=prior, seed=0), objective, 2, direction="maximize")
    assert study.trials[0].params == pytest.approx({"x": 0.7, "c": 2.0}, abs=0.05)


def test_a_prior_without_a_space_takes_the_study_s() -> None:
    prior = prior_of(None, [0.1, 0.9])
    space: dict[str, BaseDistribution] = {"b": UNIT, "a": UNIT}
    study = run(ScaMLSampler(prior=prior, seed=0, search_space=space), up, 1, direction="maximize")
    assert study.trials[0].params == pytest.approx({"a": 0.1, "b": 0.9}, abs=0.05)  # by name
    sampler = ScaMLSampler(prior=prior, seed=0, warn_independent_sampling=False)
    study = run(sampler, up, 2, direction="maximize")
    assert ["scaml:weights" in trial.system_attrs for trial in study.trials] == [False, True]
    with pytest.raises(SpaceError, match="1 column but the past tasks have 2"):
        run(ScaMLSampler(prior=prior, seed=0, search_space={"x": UNIT}), valley, 1)


# Bad input


def test_a_study_of_two_objectives_is_refused() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=ScaMLSampler(valleys(), seed=0))
    with pytest.raises(ValueError, match=r"has 2 objectives.*TPESampler, GPSampler or NSGAIISampler"):
        study.optimize(lambda t: (valley(t), valley(t)), n_trials=1)


def test_past_studies_of_the_other_direction_are_refused_and_can_be_negated() -> None:
    past = valleys()
    sampler = ScaMLSampler(past, seed=0)
    with pytest.raises(SettingError, match=r"to maximize, but the past 'valley' is.*scaml\.negated"):
        run(sampler, lambda t: -valley(t), 1, direction="maximize")
    sampler = ScaMLSampler([scaml.negated(study) for study in past], seed=0)
    study = run(sampler, lambda t: -valley(t), 1, direction="maximize")
    assert params(study) == params(run(ScaMLSampler(past, seed=0), valley, 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"meta_studies": 5}, "meta_studies is a int; give a list"),
        ({"meta_studies": 0}, "meta_studies is a int; give a list"),
        ({"meta_studies": study_of(valley, 2)}, "meta_studies is a Study; give a list"),
        ({"meta_studies": ["past"]}, "A past study is a str; give Optuna studies"),
        ({"meta_studies": [optuna.create_study(directions=["minimize"] * 2)]}, "has 2 objectives"),
        ({"method": "scaml"}, "The method is 'scaml'; give one of scaml.methods"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": 2**62}, "seed is 4611686018427387904"),
        ({"prior": "prior.safetensors"}, "The prior is a str; give what scaml.load returns"),
        ({"fixed": ["y"]}, "fixed"),
        ({"search_space": ["x"]}, "The space is a list; give a dictionary"),
        ({"search_space": {"x": (0, 1)}}, "Parameter 'x' of the space"),
        ({"independent_sampler": "random"}, "independent_sampler"),
    ],
)
def test_bad_settings_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((SettingError, SpaceError), match=message):
        ScaMLSampler(**settings)


@pytest.mark.parametrize(
    "settings",
    [{"meta_studies": []}, {"method": ScaML()}, {"fixed": {"x": 1}}, {"cache": "folder"}],
)
def test_a_prior_is_given_alone(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="give the prior alone"):
        ScaMLSampler(prior=prior_of(None, [0.5]), **settings)


def test_past_studies_of_constant_values_or_one_name_are_no_trouble() -> None:
    past = [study_of(lambda t: 0.0 * t.suggest_float("x", 0.0, 1.0), 4, seed=i) for i in range(2)]
    study = run(ScaMLSampler([*past, *valleys()], seed=0), valley, 3)
    assert set(study.trials[0].system_attrs["scaml:weights"]) == {"past", "past (2)", "valley"}
    assert study.best_value < 0.05


def test_a_past_study_of_one_point_again_and_again_is_no_trouble() -> None:
    past = optuna.create_study()
    for value in (1.0, 2.0, 3.0):
        past.add_trial(create_trial(params={"x": 0.5}, distributions={"x": UNIT}, value=value))
    assert len(run(ScaMLSampler([past], seed=0), valley, 3).trials) == 3


def test_a_storage_that_is_no_database_any_more_is_named(tmp_path: Path) -> None:
    storage = RDBStorage(f"sqlite:///{tmp_path / 'past.db'}")
    past = study_of(valley, 2, storage=storage)
    sampler = ScaMLSampler([past], seed=0)
    storage.engine.dispose()
    (tmp_path / "past.db").write_text("no database\n" * 1000)
    with pytest.raises(StorageError, match=r"sqlite:.*past\.db of study 'past' does not answer"):
        ScaMLSampler([past], seed=0)
    assert len(run(sampler, valley, 1).trials) == 1  # what was read was read
    storage.remove_session()
    storage.engine.dispose()
