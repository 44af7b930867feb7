"""The paper's grids of hyperparameters, and which rows of a grid a table has."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["GRIDS", "Grid", "kept_rows", "ranks"]

Grid = dict[str, tuple[float, ...]]
"""The values of every parameter in rising order. Row by row, the last parameter changes fastest."""

# Of larger grids, only a fixed random part was trained.
_MOST_ROWS, _KEPT_ROWS, _SEED = 2000, 1000, 0


def _powers(low: float, high: float, count: int, base: float) -> tuple[float, ...]:
    return tuple(np.logspace(low, high, count, base=base).tolist())


_DEPTHS = (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 32.0, 50.0)

GRIDS: dict[str, Grid] = {
    "svm": {"C": _powers(-10, 10, 21, 2), "gamma": _powers(-10, 10, 21, 2)},
    "lr": {"alpha": _powers(-5, 0, 25, 10), "eta0": _powers(-5, 0, 25, 10)},
    "rf": {
        "max_depth": _DEPTHS,
        "max_features": tuple(np.linspace(0, 1, 10).tolist()),
        "min_samples_leaf": (1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 20.0),
        "min_samples_split": (2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 32.0, 50.0, 80.0, 128.0),
    },
    "xgb": {
        "colsample_bytree": tuple(np.linspace(0.1, 1, 10).tolist()),
        "eta": _powers(-10, 0, 10, 2),
        "max_depth": _DEPTHS,
        "reg_lambda": _powers(-10, 10, 10, 2),
    },
}
"""The search spaces of the paper's appendix, for the models of scaml's own tables."""


def kept_rows(grid: Grid) -> NDArray[np.int64]:
    """The numbers of the grid's rows that a table has: all, or a fixed random 1000 of a large grid."""
    size = math.prod(map(len, grid.values()))
    if size <= _MOST_ROWS:
        return np.arange(size)
    return np.sort(np.random.default_rng(_SEED).choice(size, _KEPT_ROWS, replace=False))


def ranks(grid: Grid, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """`n x d`: the rank, from 0, of every parameter's value in the rows."""
    return np.stack(np.unravel_index(rows, tuple(map(len, grid.values()))), axis=1)
