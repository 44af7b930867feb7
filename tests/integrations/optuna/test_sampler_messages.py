"""The log lines of `ScaMLSampler`: trials left out, parameters sampled independently, no past."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial

from scaml import ScaMLSampler
from tests.sampler_cases import UNIT, Ear, run, study_of, valley, valleys

pytestmark = pytest.mark.usefixtures("quiet")


def test_what_was_left_out_is_said_in_one_line(ear: Ear) -> None:
    study = study_of(valley, 3)
    for state in (TrialState.FAIL, TrialState.RUNNING, TrialState.WAITING):
        study.add_trial(create_trial(state=state))
    study.add_trial(create_trial(state=TrialState.PRUNED, params={"x": 0.5}, distributions={"x": UNIT}))
    study.add_trial(create_trial(params={"x": 0.5}, distributions={"x": UNIT}, value=math.inf))
    ScaMLSampler([study], seed=0)
    assert ear.said() == [
        "ScaMLSampler: 1 past study, 3 trials used; left out: 1 failed, 1 not finite, 1 pruned, "
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
    assert "'y' is sampled independently by RandomSampler" in ear.warned()[0]


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
