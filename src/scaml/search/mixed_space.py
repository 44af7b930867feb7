"""Maximization of an acquisition function over integers, steps, categories and numbers together.

BoTorch alternates between gradient steps in the numbers and local search in the rest, in coordinates
with one column per parameter. The result is a point of the space.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.utils.sampling import manual_seed
from torch import Tensor

from scaml.search.cube import (
    DISTINCT,
    RAW_POINTS,
    RESTARTS,
    apart,
    ascend,
    beside,
    evaluate,
    scale,
    without_warnings,
)
from scaml.spaces.space import Block

__all__ = ["all_points", "maximize_mixed"]

# BoTorch searches long grids as if they were continuous, then rounds: we try the values around its
# result.
_NEIGHBOURS = 64  # on either side
_SWEEPS = 5
_CENTRES = 4  # of the points beside which the maximum may lie
_SCALING_POINTS = 256


def all_points(blocks: Sequence[Block], most: int) -> Tensor | None:
    """Every point of a space that has no continuous parameter; None if there are more than `most`."""
    grids = [block.values for block in blocks]
    if any(block.kind == "number" for block in blocks) or math.prod(map(len, grids)) > most:
        return None
    return torch.stack([torch.cat(rows) for rows in itertools.product(*grids)])


def maximize_mixed(
    acquisition: AcquisitionFunction,
    blocks: Sequence[Block],
    *,
    seed: int,
    avoid: Tensor,
    around: Tensor | None = None,
) -> Tensor:
    """The maximizer over the points that the blocks allow, d long.

    Args:
        acquisition: Takes `batch x 1 x d`.
        blocks: What every parameter can be, in the order of its columns.
        seed: Decides the raw points.
        avoid: `k x d` points of which the answer must be distinct.
        around: `k x d` points beside which the maximum may lie.
    """
    from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating  # imports scipy.optimize

    compact = _Compact(acquisition, blocks, seed)
    if compact.flat:  # a plain GP without an observation
        free = _apart(compact.raw(RAW_POINTS), avoid)
        return free[0] if len(free) else compact.raw(1)[0]
    grids = {j: b.values.flatten().tolist() for j, b in enumerate(blocks) if b.kind == "grid"}
    choices = {j: list(range(len(b.values))) for j, b in enumerate(blocks) if b.kind == "choice"}
    with without_warnings(), manual_seed(seed):
        point, _ = optimize_acqf_mixed_alternating(
            compact,
            compact.bounds,
            discrete_dims=grids,
            cat_dims=choices,
            raw_samples=RAW_POINTS,
            num_restarts=RESTARTS,
        )
    best = compact.expand(_snapped(point.detach(), blocks)).flatten()
    if around is not None:
        other = torch.stack([best, _beside(acquisition, blocks, around, seed)])
        best = other[evaluate(acquisition, other).argmax()]
    for _ in range(_SWEEPS):
        pool = torch.cat([best[None], _changes(best, blocks)])
        pool = _apart(pool, avoid)
        if not len(pool):
            break
        found = pool[evaluate(acquisition, pool).argmax()]
        if torch.equal(found, best):
            return best
        best = found
    if len(_apart(best[None], avoid)):
        return best
    # All neighbours are taken: take the best free raw point.
    free = _apart(compact.raw(RAW_POINTS), avoid)
    return free[evaluate(acquisition, free).argmax()] if len(free) else best


def _beside(
    acquisition: AcquisitionFunction, blocks: Sequence[Block], around: Tensor, seed: int
) -> Tensor:
    """The best point that a search beside some points finds, d long."""
    centres = _allowed(around[:_CENTRES], blocks)
    fixed = torch.ones(around.shape[-1], dtype=torch.bool)
    for block in blocks:
        fixed[list(block.columns)] = block.kind != "number"
    changed = [_changes(x, blocks) for x in centres]
    points = torch.cat([beside(centres, torch.Generator().manual_seed(seed), fixed), *changed])
    values = evaluate(acquisition, points)
    if not fixed.all():
        starts = apart(points[values.argsort(descending=True, stable=True)])
        refined, found = ascend(acquisition, starts, fixed)
        points, values = torch.cat([refined, points]), torch.cat([found, values])
    return points[values.argmax()]


def _allowed(X: Tensor, blocks: Sequence[Block]) -> Tensor:
    """Points with every discrete parameter at the nearest of its values."""
    X = X.clone()
    for block in blocks:
        if block.kind != "number":
            columns = list(block.columns)
            X[:, columns] = block.values[torch.cdist(X[:, columns], block.values).argmin(-1)]
    return X


class _Compact(AcquisitionFunction):
    """The acquisition function with one column per parameter; a category is its place in the list.

    Scaled, so that the solver's tolerances do not depend on the unit of y.
    """

    def __init__(self, acquisition: AcquisitionFunction, blocks: Sequence[Block], seed: int) -> None:
        super().__init__(acquisition.model)
        self.acquisition = acquisition
        self.blocks = blocks
        self.seed = seed
        values = evaluate(acquisition, self.raw(_SCALING_POINTS))
        self.flat = bool(values.max() == values.min())
        self.top, self.spread = values.max(), scale(acquisition, values).clamp_min(1e-300)

    def raw(self, n: int) -> Tensor:
        """`n x d` points that are spread over the space."""
        sobol = torch.quasirandom.SobolEngine(len(self.blocks), scramble=True, seed=self.seed)
        low, high = self.bounds
        return self.expand(
            _snapped(low + (high - low) * sobol.draw(n, dtype=torch.float64), self.blocks)
        )

    @property
    def bounds(self) -> Tensor:
        """`2 x parameters`."""
        upper = [
            float(len(block.values) - 1) if block.kind == "choice" else 1.0 for block in self.blocks
        ]
        high = torch.tensor(upper, dtype=torch.float64)
        return torch.stack([torch.zeros_like(high), high])

    def expand(self, X: Tensor) -> Tensor:
        """`... x d` points of the cube from `... x parameters`."""
        columns = [
            block.values[X[..., j].round().long()] if block.kind == "choice" else X[..., j : j + 1]
            for j, block in enumerate(self.blocks)
        ]
        return torch.cat(columns, dim=-1)

    def forward(self, X: Tensor) -> Tensor:
        value: Tensor = (self.acquisition(self.expand(X)) - self.top) / self.spread
        return value


def _snapped(X: Tensor, blocks: Sequence[Block]) -> Tensor:
    """Compact points with every number of a grid at the nearest of its values."""
    X = X.clone()
    for j, block in enumerate(blocks):
        if block.kind == "grid":
            X[..., j] = block.values[_nearest(block.values, X[..., j]), 0]
    return X


def _nearest(values: Tensor, x: Tensor) -> Tensor:
    """Places of the values, `k x 1` and ascending, that are nearest to x."""
    grid = values[:, 0].contiguous()
    right = torch.searchsorted(grid, x.contiguous()).clamp(1, len(grid) - 1)
    return right - ((x - grid[right - 1]) <= (grid[right] - x)).long()


def _changes(x: Tensor, blocks: Sequence[Block]) -> Tensor:
    """`k x d`: x with one of its discrete parameters at another value."""
    changed = []
    for block in blocks:
        if block.kind == "number":
            continue
        values, columns = block.values, list(block.columns)
        if block.kind == "grid" and len(values) > 2 * _NEIGHBOURS:
            place = int(_nearest(values, x[columns]))
            values = values[max(place - _NEIGHBOURS, 0) : place + _NEIGHBOURS + 1]
        rows = x.repeat(len(values), 1)
        rows[:, columns] = values
        changed.append(rows)
    return torch.cat(changed)


def _apart(points: Tensor, avoid: Tensor) -> Tensor:
    """The points that differ from all of `avoid`."""
    if not len(avoid):
        return points
    distance = (points[:, None] - avoid[None]).abs().amax(-1).amin(-1)
    return points[distance >= DISTINCT]
