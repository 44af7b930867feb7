"""Climbing in mixed spaces: local maxima, and ridges beyond them."""

from __future__ import annotations

import torch
from botorch.acquisition import AcquisitionFunction
from optuna.distributions import FloatDistribution, IntDistribution
from torch import Tensor

from scaml.search.cube import evaluate
from scaml.search.local_search import LocalSearch
from scaml.search.valid_points import first_points, valid_points
from scaml.spaces.space import Space

SPACE = Space(
    {"n": IntDistribution(0, 10), "m": IntDistribution(0, 10), "a": FloatDistribution(0.0, 1.0)}
)


class Ridge(AcquisitionFunction):
    """Rises slowly along n = m = 10 a, and falls steeply on either side."""

    def __init__(self) -> None:
        super().__init__(torch.nn.Module())

    def forward(self, X: Tensor) -> Tensor:
        n, m, a = X.squeeze(-2).unbind(-1)
        value: Tensor = n - 100.0 * ((a - n).square() + (m - n).square()) - 2.0 * (n - 0.8).square()
        return value


def test_local_maxima_cannot_be_improved_by_a_change_or_a_small_step() -> None:
    acquisition = Ridge()
    search = LocalSearch(acquisition, SPACE.blocks, SPACE.d, 1.0)
    starts = valid_points(SPACE.blocks, 20, 0)
    X, values = search.climb(starts, evaluate(acquisition, starts))
    torch.testing.assert_close(values, evaluate(acquisition, X), rtol=0, atol=1e-12)
    assert torch.equal(values, values.sort(descending=True).values)
    torch.testing.assert_close(X[0, 2], X[0, 0], rtol=0, atol=1e-4)


def test_beyond_a_local_maximum_discrete_parameters_and_numbers_change_together() -> None:
    acquisition = Ridge()
    search = LocalSearch(acquisition, SPACE.blocks, SPACE.d, 1.0)
    start = SPACE.encode({"n": 3, "m": 3, "a": 0.3})[None]
    X, values = search.climb(start, evaluate(acquisition, start))
    stuck = SPACE.decode(X[0])
    assert (stuck["n"], stuck["m"]) == (3, 3)  # no single change is better
    x = search.beyond(X[0], values[0])
    every = first_points(SPACE.blocks[:2], 121)
    best = evaluate(acquisition, torch.cat([every, every[:, :1]], -1)).max()
    assert evaluate(acquisition, x[None])[0] >= best
