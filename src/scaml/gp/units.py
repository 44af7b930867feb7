"""The units of one task: y = offset + scale * z."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["SMALLEST_SCALE", "Units", "deviation_of", "first_positive", "rounded", "standardize"]

# A deviation below this share of the values' magnitude is rounding: the values are constant.
_ROUNDING = 1e-13
# The square of a smaller scale is no number that float64 can hold.
SMALLEST_SCALE = 1e-100


class Units(NamedTuple):
    """y = offset + scale * z."""

    offset: Tensor
    scale: Tensor


def deviation_of(y: Tensor) -> Tensor:
    """Sample standard deviation; exactly 0 for constant, single or no values."""
    if len(y) < 2:
        return torch.zeros((), dtype=torch.float64)
    return rounded(y.std(), y.abs().max())


def rounded(deviation: Tensor, largest: Tensor) -> Tensor:
    """A deviation; exactly 0 where it is a rounding error of values as large as `largest`."""
    return torch.where(deviation > _ROUNDING * largest, deviation, 0.0)


def standardize(y: Tensor) -> Units:
    """Mean and deviation of one task. Constant values keep their magnitude as scale."""
    if not len(y):
        return Units(torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64))
    return Units(y.mean(), first_positive(deviation_of(y), y.abs().max()))


def first_positive(*scales: Tensor) -> Tensor:
    """The first scale that is not 0 for float64; 1 if there is none."""
    one = torch.ones((), dtype=torch.float64)
    return next((scale for scale in scales if scale > SMALLEST_SCALE), one)
