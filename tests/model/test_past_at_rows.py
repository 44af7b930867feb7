"""What a prior keeps of the past at the observed points."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml import MetaData, Task
from scaml.gp.kernels import KernelName
from scaml.gp.packed_likelihood import unpacked
from scaml.gp.task_gps import TaskGPs
from scaml.model import past_at_rows
from scaml.model.past_at_rows import PastAtRows, PastMoments


def gps_of(kernel: KernelName, sizes: tuple[int, ...] = (7, 12, 5), d: int = 3) -> TaskGPs:
    rng = np.random.default_rng(0)
    tasks = [Task(rng.random((n, d)), rng.standard_normal(n)) for n in sizes]
    M = len(sizes)
    return TaskGPs.condition(
        MetaData(tasks),
        kernel=kernel,
        lengthscale=torch.from_numpy(0.3 + rng.random((M, d))),
        outputscale=torch.from_numpy(0.5 + rng.random(M)),
        noise=torch.full((M,), 1e-3, dtype=torch.float64),
    )


def points(n: int, seed: int = 1, d: int = 3) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random((n, d)))


def same(a: PastMoments, b: PastMoments) -> bool:
    return np.array_equal(a.mean, b.mean) and np.array_equal(a.covariance, b.covariance)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 30])
def test_they_are_the_posteriors(kernel: KernelName, n: int) -> None:
    gps, X = gps_of(kernel), points(n)
    found = PastAtRows().at(gps, X)
    mean, covariance = gps.posterior(X)
    np.testing.assert_allclose(found.mean, mean.numpy().T, rtol=1e-9, atol=1e-11)
    full = unpacked(np.ascontiguousarray(found.covariance.T), n)
    np.testing.assert_allclose(full, covariance.numpy(), rtol=1e-9, atol=1e-11)


def test_no_bit_depends_on_what_was_asked_before() -> None:
    gps, X = gps_of("matern52"), points(45)
    kept = PastAtRows()
    for n in (1, 2, 3, 9, 10, 24, 25, 45, 20, 45, 0, 17):
        assert same(kept.at(gps, X[:n]), PastAtRows().at(gps, X[:n])), n


def test_another_task_starts_where_both_are_the_same() -> None:
    gps, X = gps_of("se"), points(30)
    other = X.clone()
    other[11:] = points(19, seed=2)
    kept = PastAtRows()
    first = kept.at(gps, X)
    before = PastMoments(first.mean.copy(), first.covariance.copy())
    assert same(kept.at(gps, other), PastAtRows().at(gps, other))
    assert same(kept.at(gps, X), before)
    assert same(first, before)  # nobody has written into what was given away


def test_other_tasks_are_not_taken_for_the_kept_ones() -> None:
    X, kept = points(9), PastAtRows()
    for gps in (gps_of("se"), gps_of("matern52"), gps_of("se", sizes=(4, 4))):
        assert same(kept.at(gps, X), PastAtRows().at(gps, X))


def test_a_further_row_computes_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    gps, X, kept = gps_of("se"), points(40), PastAtRows()
    blocks: list[int] = []
    add = past_at_rows._add_block

    def counting(new: object, block: int, *rest: object) -> None:
        blocks.append(block)
        add(new, block, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(past_at_rows, "_add_block", counting)
    kept.at(gps, X[:33])
    assert blocks == [0, 1, 2, 3, 4]
    blocks.clear()
    kept.at(gps, X[:34])
    kept.at(gps, X[:34])
    assert blocks == [4]


def test_what_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_at_rows, "_MOST_NUMBERS", 100)
    gps, X, kept = gps_of("se"), points(20), PastAtRows()
    assert same(kept.at(gps, X), PastAtRows().at(gps, X))
    assert kept._kept is None
    kept.at(gps, X[:2])
    assert kept._kept is not None


def test_threads_get_what_they_asked_for() -> None:
    gps, kept = gps_of("se"), PastAtRows()
    asked = [points(20, seed=s % 3)[: 5 + s % 16] for s in range(60)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda X: kept.at(gps, X), asked))
    for X, moments in zip(asked, found, strict=True):
        assert same(moments, PastAtRows().at(gps, X))


def test_a_pickled_copy_starts_empty() -> None:
    kept = PastAtRows()
    kept.at(gps_of("se"), points(5))
    assert pickle.loads(pickle.dumps(kept))._kept is None
