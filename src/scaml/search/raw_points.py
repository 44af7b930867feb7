"""The raw points of a search: spread over the space, and the same for all steps of all studies.

A prior that keeps its past tasks' posteriors at them gets their values almost for free. They depend on
nothing but the space and their number, so that a prior that was saved and loaded has the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scaml.search.valid_points import valid_points
from scaml.spaces.space import Space

__all__ = ["RawPoints"]

_SEED = 0


class RawPoints:
    """Keeps the raw points of the space that was asked for last; a pickled copy starts empty."""

    def __init__(self) -> None:
        self._kept: tuple[Space | None, Tensor] | None = None

    def __reduce__(self) -> tuple[type[RawPoints], tuple[()]]:
        return RawPoints, ()

    def of(self, space: Space | None, d: int, n: int) -> Tensor:
        """`n x d` scrambled Sobol points; nobody may change them.

        Args:
            space: What the columns mean; None for the unit cube.
            d: Number of columns.
            n: Number of points.
        """
        kept = self._kept
        if kept is None or kept[0] is not space or kept[1].shape != (n, d):
            if space is None or space.continuous:
                sobol = torch.quasirandom.SobolEngine(d, scramble=True, seed=_SEED)
                points = sobol.draw(n, dtype=torch.float64)
            else:
                points = valid_points(space.blocks, n, _SEED)
            kept = self._kept = (space, points)
        return kept[1]
