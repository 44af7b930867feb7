"""Theorem 1 at single points against its reference form and autograd, in blocks of any size."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from scaml.gp.kernels import KernelName
from scaml.model import past_at_points
from scaml.model.past_at_data import PastAtData
from scaml.model.past_at_points import Block, OfPast
from tests.cases import pair, query

WEIGHTS = torch.tensor([[0.5, 0.0, -1.2], [0.0, 0.3, 0.8]], dtype=torch.float64)


@pytest.mark.parametrize("block", [1, 2**17])
@pytest.mark.parametrize("n", [0, 4])
@pytest.mark.parametrize("kernel", get_args(KernelName))
def test_like_the_sums_over_tasks(
    kernel: KernelName, n: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, and slopes of a random linear function of them."""
    monkeypatch.setattr(past_at_points, "_NUMBERS", block)
    tasks = pair(kernel, (6, 9, 4), 0, d=2, seed=2).task_gps
    at, X = query(n + 1, 2)[:n], query(7, 2).requires_grad_()
    squares = WEIGHTS.square()
    expected = OfPast(
        WEIGHTS @ tasks.mean(X),
        squares @ tasks.covariance(X).diagonal(dim1=-2, dim2=-1),
        (squares @ tasks.covariance(X, at).flatten(1)).view(2, 7, n),
    )
    points, kept = PastAtData.of(tasks, at).points, list[Block]()
    found = points(X.detach(), WEIGHTS, kept)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    bars = OfPast(query(2, 7), query(2, 7), query(2, 7, n + 1)[..., :n])
    pairs = zip(bars, expected, strict=True)
    total = torch.stack([(bar * part).sum() for bar, part in pairs]).sum()
    (slope,) = torch.autograd.grad(total, X)
    torch.testing.assert_close(
        points.slope(X.detach(), bars, WEIGHTS, kept), slope, rtol=1e-8, atol=1e-9
    )
    assert len(kept) == (3 if block == 1 else 1)
