"""How often `ScaMLSampler` fits: once for each space, and with a cache only what is new."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from scaml import ScaMLSampler
from tests.sampler_cases import bowl, bowls, params, run, study_of, valley, valleys

pytestmark = pytest.mark.usefixtures("quiet")

ROOT = Path(__file__).parents[3]


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
from tests.sampler_cases import valley

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
