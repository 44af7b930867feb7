"""Optuna's own conformance classes, with and without past studies."""

from __future__ import annotations

from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)
from torch import Tensor

from scaml import ScaMLSampler
from scaml.gp.kernels import KernelName
from scaml.model.fit_theta import Cache, fit_theta
from scaml.model.hyperparameters import Hyperparameters, ThetaPriors


@pytest.fixture(autouse=True)
def quick_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of fits and searches, of which only the manners are looked at."""
    monkeypatch.setattr("scaml.gp.map_fit.STARTS", 2)
    monkeypatch.setattr("scaml.ask._DOUBLINGS", 1)
    monkeypatch.setattr("scaml.model.algorithm1.fit_theta", one_start)
    monkeypatch.setattr("scaml.search.cube.RESTARTS", 1)
    for module in ("cube", "mixed_space"):
        monkeypatch.setattr(f"scaml.search.{module}.RAW_POINTS", 64)


def one_start(
    kernel: KernelName, cache: Cache, beliefs: ThetaPriors, *, seed: int, n_starts: int
) -> tuple[Hyperparameters, Tensor]:
    return fit_theta(kernel, cache, beliefs, seed=seed, n_starts=min(n_starts, 1))


def past_studies() -> list[optuna.Study]:
    """Of parameters that Optuna's tests use, in one range of theirs."""

    def objective(trial: optuna.Trial) -> float:
        return abs(trial.suggest_float("x", 0.0, 10.0) - 3.0) + trial.suggest_float("y", -1.0, 1.0)

    studies = [
        optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=i), study_name=f"past-{i}")
        for i in range(3)
    ]
    for study in studies:
        study.optimize(objective, n_trials=6)
    return studies


class TestWithoutPast(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: ScaMLSampler(seed=0)


class TestWithPast(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: ScaMLSampler(meta_studies=past_studies(), seed=0)
