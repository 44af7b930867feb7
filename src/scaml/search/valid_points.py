"""Points of a space with integers, steps and categories: spread over it, all of it, or the nearest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from scaml.search.discrete_moves import nearest_places
from scaml.spaces.space import Block

__all__ = ["all_points", "first_points", "fixed_columns", "nearest_points", "valid_points"]


def valid_points(blocks: Sequence[Block], n: int, seed: int) -> Tensor:
    """`n x d` points that are spread over the space; the same whenever space, n and seed are.

    Args:
        blocks: What every parameter can be, in the order of its columns.
        n: Number of points.
        seed: Scrambles the Sobol points.
    """
    sobol = torch.quasirandom.SobolEngine(len(blocks), scramble=True, seed=seed)
    u = sobol.draw(n, dtype=torch.float64)
    parts = []
    for j, block in enumerate(blocks):
        if block.kind == "number":
            parts.append(u[:, j : j + 1])
        elif block.kind == "choice":
            k = len(block.values)
            parts.append(block.values[(k * u[:, j]).long().clamp_max(k - 1)])
        else:  # the values at the ends have cells as wide as those beside them
            values = block.values[:, 0]
            low, high = 0.5 * (3.0 * values[0] - values[1]), 0.5 * (3.0 * values[-1] - values[-2])
            at = low + (high - low) * u[:, j : j + 1]
            parts.append(block.values[nearest_places(at, block.values)])
    return torch.cat(parts, -1)


def nearest_points(X: Tensor, blocks: Sequence[Block]) -> Tensor:
    """Points with every discrete parameter at the nearest of its values."""
    X = X.clone()
    for block in blocks:
        if block.kind != "number":
            columns = list(block.columns)
            X[:, columns] = block.values[nearest_places(X[:, columns], block.values)]
    return X


def fixed_columns(blocks: Sequence[Block], d: int) -> Tensor:
    """Which of the d columns belong to discrete parameters."""
    fixed = torch.ones(d, dtype=torch.bool)
    for block in blocks:
        fixed[list(block.columns)] = block.kind != "number"
    return fixed


def all_points(blocks: Sequence[Block], most: int) -> Tensor | None:
    """Every point of a space that has no continuous parameter; None if there are more than `most`."""
    grids = [block.values for block in blocks]
    if any(block.kind == "number" for block in blocks) or math.prod(map(len, grids)) > most:
        return None
    return first_points(blocks, most)


def first_points(blocks: Sequence[Block], most: int) -> Tensor:
    """The first points of a space in the order of its values, and no more than `most`, `n x d`.

    A continuous parameter counts as `most` values.
    """
    line = torch.linspace(0.0, 1.0, most, dtype=torch.float64).unsqueeze(-1)
    grids = [line if block.kind == "number" else block.values for block in blocks]
    rows = itertools.islice(itertools.product(*grids), most)
    return torch.stack([torch.cat(row) for row in rows])
