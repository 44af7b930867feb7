"""Shared meta-fits: the same priors to the last bit, made once, and still counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from scaml import MetaData, Task
from scaml.bench import FAMILIES, shared_fits
from scaml.bench.shared_fits import RecentFits, timed_meta_fit
from scaml.gp.task_gps import TaskGPs
from scaml.methods import GPBO, RGPE, SGPT, Method, ScaML
from scaml.methods.scaml import ScaMLPrior
from tests.cases import ONE_MODEL

META = FAMILIES["branin"].meta_data(3, 8, 0)
TASK = Task([[0.2, 0.4], [0.7, 0.1]], [-30.0, -12.0])

PLAIN = replace(ONE_MODEL, normalization="learned")  # whose past values are as they are


@pytest.fixture(autouse=True)
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fits that are made."""
    made: list[Any] = []
    fit = TaskGPs.fit

    def counted(meta: MetaData, **keywords: Any) -> TaskGPs:
        made.append(keywords["kernel"])
        return fit(meta, **keywords)

    monkeypatch.setattr(TaskGPs, "fit", counted)
    monkeypatch.setattr(shared_fits, "_RECENT", RecentFits())
    return made


@pytest.mark.parametrize("method", [ONE_MODEL, ScaML.paper(), RGPE(), SGPT(), GPBO(), PLAIN])
def test_priors_are_those_of_the_method(method: Method) -> None:
    for _ in range(2):
        prior, seconds = timed_meta_fit(method, META, 3)
        X = torch.rand(4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        ours = prior.condition(TASK, seed=1).posterior(X)
        theirs = method.meta_fit(META, seed=3).condition(TASK, seed=1).posterior(X)
        assert torch.equal(ours.mean, theirs.mean)
        assert torch.equal(ours.variance, theirs.variance)
        assert seconds > 0


def test_methods_share_a_fit_and_its_time(fits: list[Any]) -> None:
    _, first = timed_meta_fit(ScaML.paper(), META, 0)
    for method in (PLAIN, RGPE(), SGPT()):
        _, seconds = timed_meta_fit(method, META, 0)
        assert seconds > 0.5 * first
    assert fits == ["se"]


@pytest.mark.parametrize(
    ("method", "meta", "seed"),
    [
        (replace(ONE_MODEL, kernel="matern52", normalization="union"), META, 0),
        (ONE_MODEL, META, 0),
        (PLAIN, META, 1),
        (PLAIN, FAMILIES["branin"].meta_data(3, 8, 1), 0),
        (PLAIN, META.with_values([task.y + 1.0 for task in META]), 0),
    ],
)
def test_what_differs_is_fitted_again(
    method: ScaML, meta: MetaData, seed: int, fits: list[Any]
) -> None:
    timed_meta_fit(PLAIN, META, 0)
    timed_meta_fit(method, meta, seed)
    assert len(fits) == 2


def test_only_the_last_tasks_are_kept(fits: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_fits, "_KEPT", 4 * len(META))
    for seed in range(6):
        timed_meta_fit(ONE_MODEL, META, seed)
    timed_meta_fit(ONE_MODEL, META, 5)
    assert len(fits) == 6
    timed_meta_fit(ONE_MODEL, META, 0)
    assert len(fits) == 7


@dataclass(frozen=True)
class Own(ScaML):
    """A method that does something else than one GP a task."""

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> ScaMLPrior:
        return super().meta_fit(MetaData([meta[0]]), seed=seed, n_jobs=n_jobs)


def test_a_meta_fit_of_its_own_is_called() -> None:
    timed_meta_fit(ONE_MODEL, META, 0)
    prior, _ = timed_meta_fit(Own(), META, 0)
    assert len(prior.names) == 1
