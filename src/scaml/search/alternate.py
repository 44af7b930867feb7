"""Local maxima in mixed spaces: single changes of discrete parameters and ascents in the numbers.

All starts take turns together, so that each turn evaluates one batch. A change of a discrete parameter
is tried alone; where several of them help, all of them together, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from scaml.search.cube import ascend, evaluate
from scaml.search.discrete_moves import Moves
from scaml.search.valid_points import fixed_columns
from scaml.spaces.space import Block

__all__ = ["alternate"]

_TURNS = 20
_SWEEPS = 4  # of the discrete parameters, per turn
_FINALISTS = 10  # starts that go on after the first turn
_MET = 1e-3  # starts that are so close end at the same point


def alternate(
    acquisition: AcquisitionFunction,
    blocks: Sequence[Block],
    X: Tensor,
    values: Tensor,
    *,
    tolerance: float,
    thorough: bool = False,
) -> tuple[Tensor, Tensor]:
    """Local maxima, at most one per start, `k x d`, best first, and their values, k.

    Args:
        acquisition: Takes `batch x 1 x d`.
        blocks: What every parameter can be, in the order of its columns.
        X: Starts, `s x d`, points of the space.
        values: The values there, s.
        tolerance: A turn that gains no more was the last one.
        thorough: Whether discrete parameters try more values.
    """
    fixed = fixed_columns(blocks, X.shape[-1])
    X, values = X.clone(), values.clone()
    running = torch.ones(len(X), dtype=torch.bool)
    for turn in range(_TURNS):
        changed = torch.full((len(X),), turn == 0)
        if fixed.any():
            rows = running.nonzero().flatten()
            X[rows], found = _sweep(acquisition, blocks, X[rows], values[rows], tolerance, thorough)
            changed[rows] |= found > values[rows] + tolerance
            values[rows] = found
        if fixed.all():
            break
        rows = (running & changed).nonzero().flatten()
        if not len(rows):
            break
        points, found = ascend(acquisition, X[rows], fixed)
        better = found > values[rows]
        running[:] = False
        running[rows] = found > values[rows] + tolerance
        X[rows[better]], values[rows[better]] = points[better], found[better]
        X, values, running = _distinct(X, values, running)
    order = values.argsort(descending=True, stable=True)
    return X[order], values[order]


def _sweep(
    acquisition: AcquisitionFunction,
    blocks: Sequence[Block],
    X: Tensor,
    values: Tensor,
    tolerance: float,
    thorough: bool,
) -> tuple[Tensor, Tensor]:
    """The points after the best changes of their discrete parameters, and their values."""
    X, values = X.clone(), values.clone()
    rows = torch.arange(len(X))
    for _ in range(_SWEEPS):
        better, found = _change(acquisition, blocks, X[rows], values[rows], thorough)
        gained = found > values[rows] + tolerance
        rows = rows[gained]
        if not len(rows):
            break
        X[rows], values[rows] = better[gained], found[gained]
    return X, values


def _change(
    acquisition: AcquisitionFunction,
    blocks: Sequence[Block],
    X: Tensor,
    values: Tensor,
    thorough: bool,
) -> tuple[Tensor, Tensor]:
    """The best change of each point, and the values there."""
    moves = Moves.of(X, blocks, thorough=thorough)
    found = torch.full(moves.valid.shape, -torch.inf, dtype=torch.float64)
    found[moves.valid] = evaluate(acquisition, moves.points[moves.valid])
    best, single = found.max(-1)
    rows = torch.arange(len(X))
    points = moves.points[rows, single]
    together, helpful = X.clone(), torch.zeros(len(X), dtype=torch.long)
    for part, columns in zip(moves.parts, moves.columns, strict=True):
        gain, which = found[:, part].max(-1)
        helps = (gain > values).nonzero().flatten()
        own = moves.points[:, part][helps, which[helps]]
        together[helps[:, None], torch.tensor(columns)] = own[:, list(columns)]
        helpful[helps] += 1
    several = (helpful > 1).nonzero().flatten()
    if len(several):
        jointly = evaluate(acquisition, together[several])
        higher = jointly > best[several]
        points[several[higher]], best[several[higher]] = together[several[higher]], jointly[higher]
    return points, best


def _distinct(X: Tensor, values: Tensor, running: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best of the points, best first, without those that have met a better one."""
    order = values.argsort(descending=True, stable=True)
    X, values, running = X[order], values[order], running[order]
    met = (X[:, None] - X[None]).abs().amax(-1) < _MET
    first = ~met.tril(-1).any(-1)
    first &= first.cumsum(0) <= _FINALISTS
    return X[first], values[first], running[first]
