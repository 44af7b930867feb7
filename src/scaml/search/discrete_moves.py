"""Points that differ from others in a single integer, step or category, for many points at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from scaml.spaces.space import Block

__all__ = ["Moves", "nearest_places"]

_DENSE = 8  # values on either side of the present one that a thorough search tries, beside far ones
_SHORT = 32  # a thorough search tries all values of shorter grids
_MOST_CHOICES = 64


@dataclass(frozen=True)
class Moves:
    """The single changes of s points: of all discrete parameters, one after the other."""

    points: Tensor  # `s x c x d`
    valid: Tensor  # `s x c`; a grid ends somewhere
    parts: tuple[slice, ...]  # of the c changes, those of each discrete parameter
    columns: tuple[tuple[int, ...], ...]  # of X, those of each discrete parameter

    @classmethod
    def of(cls, X: Tensor, blocks: Sequence[Block], *, thorough: bool = False) -> Moves:
        """The changes of the points, `s x d`, of a space.

        A category can become any other one. An integer or a step moves by 1, 2, 4, 8 ... values.

        Args:
            X: Points of the space.
            blocks: What every parameter can be, in the order of its columns.
            thorough: Whether to try all values of short grids, and more of long ones.
        """
        points, valid, parts, columns, start = [], [], [], [], 0
        for block in blocks:
            if block.kind == "number":
                continue
            k, here = len(block.values), list(block.columns)
            place = nearest_places(X[:, here], block.values)
            if block.kind == "choice":
                to = (place[:, None] + _shifts(k)) % k
                possible = torch.ones_like(to, dtype=torch.bool)
            else:
                to = place[:, None] + _distances(k, thorough)
                possible = (to >= 0) & (to < k)
            changed = X[:, None].repeat(1, to.shape[1], 1)
            changed[:, :, here] = block.values[to.clamp(0, k - 1)]
            points.append(changed)
            valid.append(possible)
            parts.append(slice(start, start + to.shape[1]))
            columns.append(block.columns)
            start += to.shape[1]
        return cls(torch.cat(points, 1), torch.cat(valid, 1), tuple(parts), tuple(columns))

    def together(self, X: Tensor, found: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The points after the best helpful change of each parameter, and how many changes these are.

        Args:
            X: The points before, `s x d`.
            found: The values after the changes, `s x c`.
            values: The values before, s.
        """
        together, helpful = X.clone(), torch.zeros(len(X), dtype=torch.long)
        for part, columns in zip(self.parts, self.columns, strict=True):
            gain, which = found[:, part].max(-1)
            helps = (gain > values).nonzero().flatten()
            changed = self.points[:, part][helps, which[helps]]
            together[helps[:, None], torch.tensor(columns)] = changed[:, list(columns)]
            helpful[helps] += 1
        return together, helpful

    @classmethod
    def changes(cls, x: Tensor, blocks: Sequence[Block]) -> Tensor:
        """`k x d`: a point, d long, with one of its discrete parameters at another value; thorough."""
        if all(block.kind == "number" for block in blocks):
            return x[None][:0]
        moves = cls.of(x[None], blocks, thorough=True)
        return moves.points[moves.valid]


def nearest_places(X: Tensor, values: Tensor) -> Tensor:
    """Places, s, of the values, `k x columns`, that are nearest to the rows of X, `s x columns`.

    One column has ascending values.
    """
    if values.shape[-1] > 1:
        return torch.cdist(X, values).argmin(-1)
    grid, x = values[:, 0].contiguous(), X[:, 0].contiguous()
    right = torch.searchsorted(grid, x).clamp(1, len(grid) - 1)
    return right - ((x - grid[right - 1]) <= (grid[right] - x)).long()


def _shifts(k: int) -> Tensor:
    """Distances in the circle of k categories; of very many categories, every few one."""
    return torch.arange(1, k, max(1, (k - 1) // _MOST_CHOICES))


def _distances(k: int, thorough: bool) -> Tensor:
    """Distances along a grid of k values."""
    if thorough and k <= _SHORT:
        up = list(range(1, k))
    else:
        far = {2**i for i in range((k - 1).bit_length()) if 2**i < k}
        if thorough:
            far |= {*range(1, _DENSE), *(3 * step // 2 for step in far if 3 * step // 2 < k)}
        up = sorted(far)
    return torch.tensor([-step for step in reversed(up)] + up)
