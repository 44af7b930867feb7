"""Initial points: how to find a set that is good on the past tasks, and have it evaluated first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from torch import Tensor

from scaml.gp.moments_model import MomentsModel

__all__ = ["Nearest", "Started", "evolve"]

_POPULATION = 64
_GENERATIONS = 100
_MOVES = (0.3, 0.01)  # standard deviation of a move in the first and in the last generation


class Started(MomentsModel):
    """A model with points that are to be evaluated first. Each observation uses up one of them.

    Args:
        inner: The model.
        points: The points that are left, `k x d`, k at least 1.
    """

    def __init__(self, inner: MomentsModel, points: Tensor) -> None:
        super().__init__(inner.units, inner.noise)
        self.inner = inner
        self.points_left = points

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self.inner.moments(X)

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        return self.inner.cross(X, Z)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any
    ) -> MomentsModel:
        inner = self.inner.condition_on_observations(X, Y, noise=noise, **kwargs)
        left = self.points_left[X.shape[-2] :]
        return Started(inner, left) if len(left) else inner

    @property
    def batch_shape(self) -> torch.Size:
        return self.inner.batch_shape


class Nearest(AnalyticAcquisitionFunction):
    """-|x - p|², where p is the first point of a `Started` model: p, or the nearest row, is best."""

    def forward(self, X: Tensor) -> Tensor:
        """Values, `batch`, at `batch x 1 x d`."""
        squared: Tensor = (X - self.model.points_left[0]).square().sum((-2, -1))
        return -squared


def evolve(fitness: Callable[[Tensor], Tensor], n: int, d: int, *, seed: int) -> Tensor:
    """A set of n points of the cube, `n x d`, with a large fitness, found by evolution.

    In every generation, the better half of the sets survives. A child takes each of its points from one
    of two parents at random, and moves about half of them. The moves shrink from generation to
    generation.

    Args:
        fitness: Maps sets, `k x n x d`, to k values.
        n: Number of points in a set.
        d: Number of parameters.
        seed: Decides every draw.
    """
    generator, half = torch.Generator().manual_seed(seed), _POPULATION // 2

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    sets = draw(_POPULATION, n, d)
    values = fitness(sets)
    for generation in range(_GENERATIONS):
        best = values.argsort(descending=True, stable=True)[:half]
        sets, values = sets[best], values[best]
        first, last = _MOVES
        size = first * (last / first) ** (generation / (_GENERATIONS - 1))
        mothers, fathers = sets[torch.randint(half, (2, half), generator=generator)]
        children = torch.where(draw(half, n, 1) < 0.5, mothers, fathers)
        moves = size * torch.randn(half, n, d, generator=generator, dtype=torch.float64)
        children = (children + moves * (draw(half, n, 1) < 0.5)).clamp(0.0, 1.0)
        sets, values = torch.cat([sets, children]), torch.cat([values, fitness(children)])
    return sets[values.argmax()]
