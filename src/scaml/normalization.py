r"""How y is brought to the units of the model: $y = \text{offset} + \text{scale} \cdot z$.

A meta-task is standardized by its own mean and deviation. The test-task cannot be, because its few
values say little about either; appendix C.1 takes both from all data together ("union"). Where
tasks differ in level, that squeezes y_t into a corner, so that the default is "pooled":

- scale is the root of the mean within-task variance W,
- offset is the test-task's mean, shrunk towards the mean of the meta-tasks' means by
  $B / (B + W / n_t)$ with B the variance of those means: the best linear guess of the test-task's
  level under a random effect of variance B.

One past task says nothing of B; it is then taken as W.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from scaml.errors import SettingError

__all__ = ["Levels", "NormalizationName", "Units", "check_normalization", "normalize", "standardize"]

NormalizationName = Literal["pooled", "union"]

# A deviation below this share of the values' magnitude is rounding: the values are constant.
_ROUNDING = 1e-13
# The square of a smaller scale is no number that float64 can hold.
_SMALLEST_SCALE = 1e-100


class Units(NamedTuple):
    """y = offset + scale * z."""

    offset: Tensor
    scale: Tensor


def check_normalization(normalization: str) -> None:
    """Refuse a normalization that scaml does not have."""
    if normalization not in get_args(NormalizationName):
        raise SettingError(f"normalization is {normalization!r}; choose 'pooled' or 'union'.")


def _deviation(y: Tensor) -> Tensor:
    """Sample standard deviation; exactly 0 for constant, single or no values."""
    if len(y) < 2:
        return torch.zeros((), dtype=torch.float64)
    return _rounded(y.std(), y.abs().max())


def _rounded(deviation: Tensor, largest: Tensor) -> Tensor:
    return torch.where(deviation > _ROUNDING * largest, deviation, 0.0)


def standardize(y: Tensor) -> Units:
    """Mean and deviation of one task. Constant values keep their magnitude as scale."""
    if not len(y):
        return Units(torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64))
    return Units(y.mean(), _first_positive(_deviation(y), y.abs().max()))


class Levels(NamedTuple):
    """What normalization needs of the M meta-tasks' y."""

    size: Tensor  # M, N_m
    mean: Tensor  # M
    deviation: Tensor  # M, 0 for a constant task

    @classmethod
    def of(cls, values: Sequence[Tensor]) -> Levels:
        """From every task's y."""
        return cls(
            torch.tensor([len(y) for y in values], dtype=torch.float64),
            torch.stack([y.mean() for y in values]),
            torch.stack([_deviation(y) for y in values]),
        )


def normalize(normalization: NormalizationName, y: Tensor, levels: Levels) -> Units:
    """Units of the test-task from its own n_t values and the levels of the meta-tasks."""
    return _union(y, levels) if normalization == "union" else _pooled(y, levels)


def _union(y: Tensor, levels: Levels) -> Units:
    """Mean and deviation of all values together (appendix C.1)."""
    size, mean, deviation = levels
    total = size.sum() + len(y)
    offset = ((size * mean).sum() + y.sum()) / total
    within = ((size - 1.0) * deviation.square()).sum()
    between = (size * (mean - offset).square()).sum()
    deviation = ((within + between + (y - offset).square().sum()) / (total - 1.0)).sqrt()
    largest = torch.cat([mean, y]).abs().max()
    return Units(offset, _first_positive(_rounded(deviation, largest), offset.abs()))


def _pooled(y: Tensor, levels: Levels) -> Units:
    within = levels.deviation.square().mean()
    between = _deviation(levels.mean).square() if len(levels.mean) > 1 else within
    offset = levels.mean.mean()
    if len(y):
        # Where neither varies, any trust gives the same offset.
        trust = between / (between + within / len(y)) if between + within > 0 else 1.0
        offset = offset + trust * (y.mean() - offset)
    # Past tasks that are all constant have no scale to give: take what else there is.
    return Units(offset, _first_positive(within.sqrt(), between.sqrt(), _deviation(y), offset.abs()))


def _first_positive(*scales: Tensor) -> Tensor:
    one = torch.ones((), dtype=torch.float64)
    return next((scale for scale in scales if scale > _SMALLEST_SCALE), one)
