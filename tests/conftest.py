"""Settings of all tests, and the fixtures that several files share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import optuna
import pytest
import torch
from hypothesis import settings
from torch import Tensor

from scaml import MetaData, ScaML
from scaml.methods.base import MetaPrior
from tests.sampler_cases import Ear

# Small matrices are slower on two threads than on one, and test processes share the cores.
torch.set_num_threads(1)

# The same examples every time: a failure that nobody can see again helps nobody.
settings.register_profile("scaml", derandomize=True, deadline=None)
settings.load_profile("scaml")


@pytest.fixture
def quiet() -> Iterator[None]:
    """Optuna without its lines about trials."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


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
    """The names of the tasks of every meta-fit, with or without a cache."""
    calls: list[tuple[str, ...]] = []
    meta_fit, fit_state = ScaML.meta_fit, ScaML.fit_state

    def counting(self: ScaML, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        calls.append(meta.names)
        return meta_fit(self, meta, seed=seed, n_jobs=n_jobs)

    def counting_parts(
        self: ScaML, meta: MetaData, *, seed: int = 0, n_jobs: int = 1
    ) -> dict[str, Tensor]:
        calls.append(meta.names)
        return fit_state(self, meta, seed=seed, n_jobs=n_jobs)

    monkeypatch.setattr(ScaML, "meta_fit", counting)
    monkeypatch.setattr(ScaML, "fit_state", counting_parts)
    return calls
