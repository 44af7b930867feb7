"""Suggestions from kept raw points: the same bits, whatever was asked before, by whom, from where."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

from scaml import ScaML, Task, load, suggest
from scaml.methods.scaml import ScaMLPrior
from scaml.model import table_cache
from scaml.model.weight_priors import WeightsName
from tests.cases import meta_data, task_of

WHOLE = task_of(9, 2)


def first(n: int) -> Task:
    return Task(WHOLE.X[:n], WHOLE.y[:n])


def prior_of(weights: WeightsName) -> ScaMLPrior:
    return ScaML(weights=weights).meta_fit(meta_data((10, 14, 8), 2))


@pytest.mark.parametrize("weights", ["shared", "explained"])
def test_the_history_of_a_prior_does_not_matter(weights: WeightsName, tmp_path: Path) -> None:
    prior = prior_of(weights)
    fresh = pickle.loads(pickle.dumps(prior))
    prior.save(tmp_path / "prior.safetensors")
    for n in (2, 5, 9):
        suggest(prior, first(n), q=2, seed=n)
    suggest(prior, Task(WHOLE.X.flip(0), WHOLE.y.flip(0)), seed=1)
    expected = suggest(fresh, first(7), seed=3)
    assert torch.equal(suggest(prior, first(7), seed=3), expected)
    assert torch.equal(suggest(load(tmp_path / "prior.safetensors"), first(7), seed=3), expected)


def test_threads_may_share_a_prior() -> None:
    prior, alone = prior_of("shared"), prior_of("shared")
    models = [prior.condition(first(n)) for n in range(1, 9)]

    def moments(number: int) -> Tensor:
        found = prior.on_table(models[number % 8], prior.raw_points())
        assert found is not None
        return torch.stack(found)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(moments, range(32)))
    for number, ours in enumerate(together):
        theirs = alone.on_table(alone.condition(first(number % 8 + 1)), alone.raw_points())
        assert theirs is not None
        assert torch.equal(ours, torch.stack(theirs))


def test_rows_that_no_longer_fit_are_computed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    prior, fresh = prior_of("shared"), prior_of("shared")
    monkeypatch.setattr(table_cache, "_MOST_NUMBERS", 3 * 14 * len(prior.raw_points()))
    for n in (9, 4, 9):
        other = Task(1.0 - WHOLE.X[:n], WHOLE.y[:n])
        assert prior.on_table(prior.condition(other), prior.raw_points()) is not None
    ours = prior.on_table(prior.condition(first(9)), prior.raw_points())
    theirs = fresh.on_table(fresh.condition(first(9)), fresh.raw_points())
    assert ours is not None
    assert theirs is not None
    assert torch.equal(ours[0], theirs[0])
    assert torch.equal(ours[1], theirs[1])


def test_many_past_tasks_get_fewer_raw_points(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = prior_of("shared")
    assert len(prior.raw_points()) == 1024
    monkeypatch.setattr("scaml.methods.scaml._MOST_KEPT", 200 * 3 * 14)
    assert len(prior.raw_points()) == 200
