r"""Offset and scale of y: $y = \text{offset} + \text{scale} \cdot z$.

A meta-task is standardized by its own mean and standard deviation. The few values of the test-task do
not determine either. Appendix C.1 computes both from all data together ("union"); if tasks differ in
level, y_t then covers a small part of the range of z. With W the mean within-task variance and B the
variance of the tasks' means:

- "pooled" scales by √W and centers on the test-task's mean, shrunk towards the mean of the tasks' means
  by $B / (B + W / n_t)$: the best linear estimate of its level if its points were drawn at random.
- "level" makes the level a random effect of the model, $b \sim N(0, B)$, and integrates it out: a
  search chooses promising points, and their mean is not the level of the task.
- "learned" also learns the scale. Its logarithm is normal with the mean and variance of the tasks' log
  deviations: the scales of real tasks differ by factors of ten.
- "clipped" is "learned" with bad values of the past tasks clipped (`clip_tail`). Level and scale are
  those of the tasks' best thirds.

One past task does not determine B; W is used instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.gaussian_copula import gaussian_copula
from scaml.gp.units import SMALLEST_SCALE, Units, deviation_of, first_positive, rounded
from scaml.tasks.meta_data import MetaData

__all__ = [
    "Clipped",
    "Levels",
    "NormalizationName",
    "Scaling",
    "SeenPast",
    "check_normalization",
    "clip_tail",
    "normalize",
]

NormalizationName = Literal["clipped", "learned", "level", "pooled", "union"]

_UNKNOWN_LEVEL = 100.0  # variance, in squared scales, of an unknown level
_ONE_TASK_SPREAD = 1.0  # standard deviation of the log scale if there is one past task
_LEAST_SPREAD = 0.3
# A smaller share would forget the points that are best for some past tasks and terrible for others;
# with a larger one the long tails of real losses hide the best points.
_BEST_THIRD = 2.0 / 3.0  # the quantile at which the best third begins
_Z_BEST_THIRD = 0.430727299295457  # the same quantile of the standard normal


class Scaling(NamedTuple):
    """Prior of the units before the fit: y = offset + e^s scale * (z + level).

    s ~ N(0, spread²), or s = 0 if the spread is 0. The level has variance `level`, in units of scale²,
    and is integrated out.
    """

    offset: Tensor
    scale: Tensor
    level: Tensor = torch.zeros((), dtype=torch.float64)
    spread: float = 0.0


def check_normalization(normalization: str) -> None:
    """Refuse an unknown normalization."""
    if normalization not in get_args(NormalizationName):
        names = ", ".join(map(repr, get_args(NormalizationName)))
        raise SettingError(f"normalization is {normalization!r}; choose one of {names}.")


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
            torch.stack([deviation_of(y) for y in values]),
        )

    def within_and_between(self) -> tuple[Tensor, Tensor]:
        """W and B; B is W if there is one past task."""
        within = self.deviation.square().mean()
        return within, deviation_of(self.mean).square() if len(self.mean) > 1 else within


def normalize(normalization: NormalizationName, y: Tensor, levels: Levels) -> Scaling:
    """Units of the test-task from its own n_t values and the levels of the meta-tasks."""
    if normalization == "union":
        return Scaling(*_union(y, levels))
    if normalization == "pooled":
        return Scaling(*_pooled(y, levels))
    return _random_effect(y, levels, learned=normalization != "level")


class Clipped(NamedTuple):
    """One task's values in the units of its best third, clipped: y = least + slope (z - z_0)."""

    z: Tensor  # n
    least: Tensor  # where the best third begins
    slope: Tensor  # of y over its Gaussian copula above that

    @property
    def values(self) -> Tensor:
        """The clipped values in the units of y, n."""
        return self.least + self.slope * (self.z - _Z_BEST_THIRD)


def clip_tail(y: Tensor) -> Clipped:
    """Clip the values below the best third at their normal score.

    Losses of real tasks have long tails that hide the differences between good points, and other tasks
    have peaks that ranks would level. So distances between good points are kept.
    """
    copula, least = gaussian_copula(y), torch.quantile(y, _BEST_THIRD)
    better = (y > least) & (copula > _Z_BEST_THIRD)
    above = copula[better] - _Z_BEST_THIRD
    slope = (above * (y[better] - least)).sum() / above.square().sum().clamp_min(SMALLEST_SCALE)
    slope = rounded(slope, y.abs().max())
    z = _Z_BEST_THIRD + (y - least) / first_positive(slope, deviation_of(y), y.abs().max())
    ranked = copula.clamp_max(_Z_BEST_THIRD)
    clipped = torch.where(z < _Z_BEST_THIRD, torch.maximum(z, ranked), z)
    return Clipped(clipped, least, slope)


@dataclass(frozen=True, eq=False)
class SeenPast:
    """The past tasks as their GPs see them.

    Args:
        meta: The past tasks as they are.
        seen: The same tasks with the values that the GPs are fitted to.
        values: Every task's values in units of y, from which a new task's level and scale are learned.
    """

    meta: MetaData
    seen: MetaData
    values: Sequence[Tensor]

    @classmethod
    def of(cls, meta: MetaData) -> SeenPast:
        """As they are."""
        return cls(meta, meta, [task.y for task in meta])

    @classmethod
    def clipped(cls, meta: MetaData) -> SeenPast:
        """With bad values clipped."""
        tasks = [clip_tail(task.y) for task in meta]
        seen = meta.with_values([task.z for task in tasks])
        return cls(meta, seen, [task.values for task in tasks])

    @cached_property
    def levels(self) -> Levels:
        """Size, mean and deviation of every task."""
        return Levels.of(self.values)


def _union(y: Tensor, levels: Levels) -> Units:
    """Mean and deviation of all values together (appendix C.1)."""
    size, mean, deviation = levels
    total = size.sum() + len(y)
    offset = ((size * mean).sum() + y.sum()) / total
    within = ((size - 1.0) * deviation.square()).sum()
    between = (size * (mean - offset).square()).sum()
    deviation = ((within + between + (y - offset).square().sum()) / (total - 1.0)).sqrt()
    largest = torch.cat([mean, y]).abs().max()
    return Units(offset, first_positive(rounded(deviation, largest), offset.abs()))


def _pooled(y: Tensor, levels: Levels) -> Units:
    within, between = levels.within_and_between()
    offset = levels.mean.mean()
    if len(y):
        # If neither varies, any trust gives the same offset.
        trust = between / (between + within / len(y)) if between + within > 0 else 1.0
        offset = offset + trust * (y.mean() - offset)
    # If all past tasks are constant they have no scale: take the next that is positive.
    return Units(offset, first_positive(within.sqrt(), between.sqrt(), deviation_of(y), offset.abs()))


def _random_effect(y: Tensor, levels: Levels, *, learned: bool) -> Scaling:
    within, between = levels.within_and_between()
    if len(levels.mean) > 1 and between > 0:
        between = _one_more(levels.mean)
    scale = first_positive(within.sqrt(), between.sqrt(), deviation_of(y), levels.mean.mean().abs())
    spread = 0.0
    varied = levels.deviation[levels.deviation > SMALLEST_SCALE].log()
    if learned:
        spread = _ONE_TASK_SPREAD
        if len(varied):
            scale = varied.mean().exp()
        if len(varied) > 1:
            spread = float((_one_more(varied) + _LEAST_SPREAD**2).sqrt())
    # A larger variance of the level would only cost digits of K: the mean of y_t, shrunk as in
    # "pooled", settles the rest.
    known = torch.minimum(between, _UNKNOWN_LEVEL * scale.square())
    offset = levels.mean.mean()
    if len(y):
        offset = offset + (between - known) / (between + scale.square()) * (y.mean() - offset)
    return Scaling(offset, scale, known / scale.square(), spread)


def _one_more(values: Tensor) -> Tensor:
    """The predictive variance of one more value: few values do not determine their mean well."""
    n = len(values)
    return values.var() * (1.0 + 1.0 / n) * (n + 1.0) / (n - 1.0)
