"""The largest value of a smooth function on the unit cube."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from scaml.gp.minimize import minimize

__all__ = ["largest"]

# Enough that every local maximum of every function, also of Hartmann 6, has starts nearby.
_RAW_POINTS = 4096
_STARTS = 256
_TOLERANCE = 1e-13  # as a share of the range of the raw values


def largest(function: Callable[[Tensor], Tensor], d: int) -> float:
    """The maximum over [0, 1]^d of a differentiable function of `n x d` points."""
    raw = torch.quasirandom.SobolEngine(d).draw(_RAW_POINTS, dtype=torch.float64)
    values = function(raw)
    starts = raw[values.argsort(stable=True, descending=True)[:_STARTS]]
    unit = values.max() - values.min()

    def objective(x: Tensor, _problem: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        value = -function(x) / unit
        (slope,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), slope

    lower, upper = torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
    # Every start is a group of its own: no search ends early because another is ahead.
    alone = torch.arange(_STARTS)
    found = minimize(objective, starts, lower, upper, alone, same_basin=0.0, tolerance=_TOLERANCE)
    return float(function(found.x).max())
