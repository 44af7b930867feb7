"""Local maxima in mixed spaces: single changes of discrete parameters and ascents in the numbers.

All starts take turns together, so that each turn evaluates one batch. A change of a discrete parameter
is tried alone; where several of them help, all of them together, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from scaml.search.cube import ascend, evaluate
from scaml.search.discrete_moves import Moves
from scaml.search.valid_points import fixed_columns, nearest_points
from scaml.spaces.space import Block

__all__ = ["LocalSearch"]

_TURNS = 20
_SWEEPS = 4  # of the discrete parameters, per turn
# Starts that go on after the first sweep, in the first turn, and later. Twice as many found no better
# maxima on 179 models of 3 to 10 parameters.
_AFTER_SWEEP, _FIRST_TURN, _LATER = 8, 6, 4
_MET = 1e-3  # starts that are so close end at the same point
_FOLLOWED = 8  # changes of a local maximum after which the numbers ascend
_TOLERANCE = 1e-7  # in the unit of the values
_LOOSE = 2  # a grid of more values is a number for once


@dataclass
class _Climbers:
    """The k starts that are left, best first after every step."""

    X: Tensor  # `k x d`
    values: Tensor  # k
    sweeping: Tensor  # k, whether changes may still help
    moved: Tensor  # k, whether the numbers may have to follow

    def take(self, rows: Tensor, X: Tensor, values: Tensor, tolerance: float) -> Tensor:
        """Move some of them where that helps; whether it helped by more than the tolerance."""
        better = values > self.values[rows]
        gained = values > self.values[rows] + tolerance
        self.X[rows[better]], self.values[rows[better]] = X[better], values[better]
        return gained

    def thin(self, most: int) -> None:
        """Keep the best, and of those that have met only one."""
        order = self.values.argsort(descending=True, stable=True)
        X = self.X[order]
        met = (X[:, None] - X[None]).abs().amax(-1) < _MET
        order = order[~met.tril(-1).any(-1)][:most]
        self.X, self.values = self.X[order], self.values[order]
        self.sweeping, self.moved = self.sweeping[order], self.moved[order]


@dataclass(frozen=True)
class LocalSearch:
    """Climbs an acquisition function on the points of a space.

    Args:
        acquisition: Takes `batch x 1 x d`.
        blocks: What every parameter can be, in the order of its columns.
        d: Number of columns.
        unit: Of the values.
    """

    acquisition: AcquisitionFunction
    blocks: Sequence[Block]
    d: int
    unit: float

    @property
    def tolerance(self) -> float:
        """A step that gains no more was the last one."""
        return _TOLERANCE * self.unit

    @cached_property
    def fixed(self) -> Tensor:
        """Which of the d columns belong to discrete parameters."""
        return fixed_columns(self.blocks, self.d)

    def climb(self, X: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The best local maxima, `k x d`, best first, and their values, k.

        Args:
            X: Starts, `s x d`, points of the space.
            values: The values there, s.
        """
        yes = torch.ones(len(X), dtype=torch.bool)
        left = _Climbers(X.clone(), values.clone(), yes, yes.clone())
        for turn in range(_TURNS):
            if self.fixed.any():
                self._sweep(left, first=turn == 0)
            rows = left.moved.nonzero().flatten()
            if self.fixed.all() or not len(rows):
                break
            left.moved[:] = False
            higher = self._ascend(left.X[rows], self.fixed)
            left.sweeping[rows] = left.take(rows, *higher, self.tolerance)
            left.thin(_LATER)
        left.thin(len(left.X))
        return left.X, left.values

    def beyond(self, x: Tensor, value: Tensor) -> Tensor:
        """The best point, d long, that can be had from a local maximum, d long.

        Along a ridge, discrete parameters and numbers must change together. So the numbers follow the
        changes that lose least, and once, from where all grids are taken for numbers.
        """
        if not self.fixed.any():
            return x
        follow = self._loosely(x)
        for _ in range(_TURNS):
            points = Moves.changes(x, self.blocks)
            values = evaluate(self.acquisition, points)
            least = values.topk(min(_FOLLOWED, len(values))).indices
            points, values = points[least], values[least]
            if len(follow):
                points = torch.cat([points, follow])
                values = torch.cat([values, evaluate(self.acquisition, follow)])
                follow = follow[:0]
            if not self.fixed.all():
                points, values = self._ascend(points, self.fixed)
            if not bool(values.max() > value + self.tolerance):
                break
            points, values = self.climb(points, values)
            x, value = points[0], values[0]
        return x

    def _sweep(self, left: _Climbers, *, first: bool) -> None:
        """Change discrete parameters for the better, some sweeps long."""
        for sweep in range(_SWEEPS):
            rows = left.sweeping.nonzero().flatten()
            if not len(rows):
                break
            gained = left.take(rows, *self._changed(left.X[rows], left.values[rows]), self.tolerance)
            left.sweeping[rows] = gained
            left.moved[rows] |= gained
            left.thin((_AFTER_SWEEP if sweep == 0 else _FIRST_TURN) if first else _LATER)

    def _changed(self, X: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The points after their best change, and the values there."""
        moves = Moves.of(X, self.blocks)
        found = torch.full(moves.valid.shape, -torch.inf, dtype=torch.float64)
        found[moves.valid] = evaluate(self.acquisition, moves.points[moves.valid])
        best, which = found.max(-1)
        points = moves.points[torch.arange(len(X)), which]
        together, helpful = moves.together(X, found, values)
        several = (helpful > 1).nonzero().flatten()
        if len(several):
            jointly = evaluate(self.acquisition, together[several])
            higher = jointly > best[several]
            several = several[higher]
            points[several], best[several] = together[several], jointly[higher]
        return points, best

    def _ascend(self, X: Tensor, fixed: Tensor) -> tuple[Tensor, Tensor]:
        """Local maxima in the columns that are not fixed, and their values."""
        return ascend(self.acquisition, X, fixed, self.unit)

    def _loosely(self, x: Tensor) -> Tensor:
        """The point, `1 x d`, nearest to where an ascent goes that takes grids for numbers; or none."""
        tight = self.fixed.clone()
        for block in self.blocks:
            if block.kind == "grid" and len(block.values) > _LOOSE:
                tight[list(block.columns)] = False
        if torch.equal(tight, self.fixed):
            return x[None][:0]
        return nearest_points(self._ascend(x[None], tight)[0], self.blocks)
