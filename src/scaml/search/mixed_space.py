"""Maximization of an acquisition function over integers, steps, categories and numbers together.

Raw points of the space, and points beside those given; then, from the best that lie apart, local search
in the discrete parameters and ascents in the numbers take turns. Every point is one of the space.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from scaml.search.cube import DISTINCT, RAW_POINTS, apart, beside, evaluate, scale
from scaml.search.discrete_moves import Moves
from scaml.search.local_search import LocalSearch
from scaml.search.valid_points import (
    all_points,
    first_points,
    fixed_columns,
    nearest_points,
    valid_points,
)
from scaml.spaces.space import Block

__all__ = ["all_points", "maximize_mixed", "valid_points"]

_CENTRES = 4  # of the points beside which the maximum may lie
_SWEEPS = 5
_SPARSE = 3  # one of so many points beside those given


def maximize_mixed(
    acquisition: AcquisitionFunction,
    blocks: Sequence[Block],
    *,
    seed: int,
    avoid: Tensor,
    around: Tensor | None = None,
    kept: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """The maximizer over the points that the blocks allow, d long.

    Args:
        acquisition: Takes `batch x 1 x d`.
        blocks: What every parameter can be, in the order of its columns.
        seed: Decides the raw points, unless they are given, and the neighbours.
        avoid: `k x d` points of which the answer must be distinct.
        around: `k x d` points beside which the maximum may lie.
        kept: Raw points of the space, `n x d`, and the values there, n, if they are known.
    """
    if kept is None:
        points = valid_points(blocks, RAW_POINTS, seed)
        values = evaluate(acquisition, points)
    else:
        points, values = kept
    if around is not None:
        near = _beside(blocks, around, seed)
        points, values = torch.cat([points, near]), torch.cat([values, evaluate(acquisition, near)])
    unit = float(scale(acquisition, values))
    if unit == 0.0:  # a plain GP without an observation
        free = _free(points, avoid)
        free = free if len(free) else _free(first_points(blocks, len(avoid) + 1), avoid)
        free = free if len(free) else points
        return free[torch.randint(len(free), (), generator=torch.Generator().manual_seed(seed))]
    order = values.argsort(descending=True, stable=True)
    points, values = points[order], values[order]
    starts, rows = _starts(points)
    search = LocalSearch(acquisition, blocks, points.shape[-1], unit)
    maxima, found = search.climb(starts, values[rows])
    best = search.beyond(maxima[0], found[0])
    if len(_free(best[None], avoid)):
        return best
    return _best_free(acquisition, blocks, torch.cat([best[None], maxima, points]), avoid)


def _beside(blocks: Sequence[Block], around: Tensor, seed: int) -> Tensor:
    """Points of the space beside some points, `n x d`."""
    centres = nearest_points(around[:_CENTRES], blocks)
    fixed = fixed_columns(blocks, around.shape[-1])
    near = [centres]
    if not fixed.all():
        near.append(beside(centres, torch.Generator().manual_seed(seed), fixed)[::_SPARSE])
    if fixed.any():
        moves = Moves.of(centres, blocks)
        near.append(moves.points[moves.valid])
    return torch.cat(near)


def _starts(points: Tensor) -> tuple[Tensor, Tensor]:
    """Points, sorted best first, that lie apart, and their places."""
    starts = apart(points)
    return starts, (points[None] == starts[:, None]).all(-1).long().argmax(-1)


def _best_free(
    acquisition: AcquisitionFunction, blocks: Sequence[Block], points: Tensor, avoid: Tensor
) -> Tensor:
    """The best point, d long, that is not taken, of some points and what single changes make of it.

    The first point is the best one, even if all are taken.
    """
    pool = torch.cat([points, Moves.changes(points[0], blocks)])
    free = _free(pool, avoid)
    if not len(free):  # as many points as are taken, and one more, have one that is free
        free = _free(first_points(blocks, len(avoid) + 1), avoid)
    if not len(free):
        return points[0]
    best = free[evaluate(acquisition, free).argmax()]
    for _ in range(_SWEEPS):
        pool = torch.cat([best[None], _free(Moves.changes(best, blocks), avoid)])
        found = pool[evaluate(acquisition, pool).argmax()]
        if torch.equal(found, best):
            break
        best = found
    return best


def _free(points: Tensor, avoid: Tensor) -> Tensor:
    """The points that differ from all of `avoid`."""
    if not len(avoid):
        return points
    distance = (points[:, None] - avoid[None]).abs().amax(-1).amin(-1)
    return points[distance >= DISTINCT]
