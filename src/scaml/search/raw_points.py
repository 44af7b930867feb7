"""The raw points of a search: spread over the cube, and the same for all steps of all studies.

A prior that keeps its past tasks' posteriors at them gets their values almost for free. They depend on
nothing but the dimension and their number, so that a prior that was saved and loaded has the same.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

__all__ = ["RAW_SEED", "raw_points"]

RAW_SEED = 0


@lru_cache(maxsize=8)
def raw_points(d: int, n: int) -> Tensor:
    """`n x d` scrambled Sobol points; nobody may change them."""
    sobol = torch.quasirandom.SobolEngine(d, scramble=True, seed=RAW_SEED)
    points: Tensor = sobol.draw(n, dtype=torch.float64)
    return points
