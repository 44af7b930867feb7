"""`ScaMLSampler` learns: what it takes from the past, in which storages, with which weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from scaml import ScaMLSampler
from tests.sampler_cases import BOX, UNIT, bowl, bowls, params, run, study_of, valley

pytestmark = pytest.mark.usefixtures("quiet")


def mixed(trial: optuna.Trial, shift: float = 0.0) -> float:
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    step = trial.suggest_float("step", 0.0, 1.0, step=0.25)
    n = trial.suggest_int("n", 1, 9)
    width = trial.suggest_int("width", 1, 64, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    value = (math.log10(rate) + 2 - shift) ** 2 + (step - 0.5) ** 2 + 0.1 * (n - 4) ** 2
    return value + 0.2 * (math.log2(width) - 3) ** 2 + (0.0 if kind == "b" else 2.0)


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
    first = study.trials[0].system_attrs["scaml:weights"]
    assert list(first) == ["past-0", "past-1", "past-2"]
    assert len(set(first.values())) == 1
    assert 0.2 < first["past-0"] < 0.4
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
