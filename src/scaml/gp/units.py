"""The units of one task's values: y = offset + scale * z, with z standardized."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["SMALLEST_SCALE", "Units", "deviation_of", "first_positive", "rounded", "standardize"]

# A deviation below this share of the largest magnitude is a rounding error: the values are constant.
_ROUNDING = 1e-13
# float64 cannot represent the square of a much smaller scale.
SMALLEST_SCALE = 1e-100


class Units(NamedTuple):
    """y = offset + scale * z."""

    offset: Tensor
    scale: Tensor


def deviation_of(y: Tensor) -> Tensor:
    """Sample standard deviation; exactly 0 if all values are equal, or if there are fewer than two."""
    if len(y) < 2:
        return torch.zeros((), dtype=torch.float64)
    return rounded(y.std(), y.abs().max())


def rounded(deviation: Tensor, largest: Tensor) -> Tensor:
    """The deviation; exactly 0 if it is a rounding error of values as large as `largest`."""
    return torch.where(deviation > _ROUNDING * largest, deviation, 0.0)


def standardize(y: Tensor) -> Units:
    """Mean and deviation of one task; the scale of constant values is their magnitude."""
    if not len(y):
        return Units(torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64))
    return Units(y.mean(), first_positive(deviation_of(y), y.abs().max()))


def first_positive(*scales: Tensor) -> Tensor:
    """The first scale above `SMALLEST_SCALE`; 1 if there is none."""
    one = torch.ones((), dtype=torch.float64)
    return next((scale for scale in scales if scale > SMALLEST_SCALE), one)
