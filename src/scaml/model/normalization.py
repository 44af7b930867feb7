r"""How y is brought to the units of the model: $y = \text{offset} + \text{scale} \cdot z$.

A meta-task is standardized by its own mean and deviation. The test-task cannot be, because its few
values say little about either; appendix C.1 takes both from all data together ("union"). Where tasks
differ in level, that squeezes y_t into a corner. With W the mean within-task variance and B the
variance of the tasks' means:

- "pooled" scales by √W and centers on the test-task's mean, shrunk towards the mean of the tasks' means
  by $B / (B + W / n_t)$: the best linear guess of its level, were its points drawn at random.
- "level" makes the level a random effect of the model, $b \sim N(0, B)$, integrated out: points that a
  search has chosen because they promise much are not taken for ordinary ones.
- "learned" learns the scale as well, whose logarithm is normal with mean and variance of the tasks' log
  deviations: real tasks differ in it by factors of ten.
- "clipped" is "learned" with bad values clipped in the past tasks (`clip_tail`), whose level and scale
  are those of their best thirds.

One past task says nothing of B; it is then taken as W.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.gaussian_copula import gaussian_copula
from scaml.gp.units import SMALLEST_SCALE, Units, deviation_of, first_positive, rounded

__all__ = [
    "Levels",
    "NormalizationName",
    "Scaling",
    "check_normalization",
    "clip_tail",
    "normalize",
]

NormalizationName = Literal["clipped", "learned", "level", "pooled", "union"]

_UNKNOWN_LEVEL = 100.0  # variance, in squared scales, of a level of which nothing is known
_ONE_TASK_SPREAD = 1.0  # of log scale, where one task says nothing of it
_LEAST_SPREAD = 0.3
# The fewer values keep their distances, the less is known of places that are best for some past tasks
# and terrible for others; the more do, the more the tails of real losses hide the best points.
_BEST_THIRD = 2.0 / 3.0  # where the best third begins,
_Z_BEST_THIRD = 0.430727299295457  # and where that of a normal variable does


class Scaling(NamedTuple):
    """What is believed of the units before the fit: y = offset + e^s scale * (z + level).

    s ~ N(0, spread²), and 0 where there is no spread; the level, of variance `level` in units of
    scale², is integrated out.
    """

    offset: Tensor
    scale: Tensor
    level: Tensor = torch.zeros((), dtype=torch.float64)
    spread: float = 0.0


def check_normalization(normalization: str) -> None:
    """Refuse a normalization that scaml does not have."""
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

    @classmethod
    def of_best(cls, values: Sequence[Tensor]) -> Levels:
        """Of every task's clipped values, put back into the units of its best third.

        Those are the values that a search is about, untouched by a few terrible ones.
        """
        lines = [_best_third(y) for y in values]
        clipped = [clip_tail(y) for y in values]
        return cls.of(
            [
                least + slope * (z - _Z_BEST_THIRD)
                for (least, slope), z in zip(lines, clipped, strict=True)
            ]
        )

    def within_and_between(self) -> tuple[Tensor, Tensor]:
        """W and B. One past task says nothing of B; it is then taken as W."""
        within = self.deviation.square().mean()
        return within, deviation_of(self.mean).square() if len(self.mean) > 1 else within


def normalize(normalization: NormalizationName, y: Tensor, levels: Levels) -> Scaling:
    """Units of the test-task from its own n_t values and the levels of the meta-tasks."""
    if normalization == "union":
        return Scaling(*_union(y, levels))
    if normalization == "pooled":
        return Scaling(*_pooled(y, levels))
    return _random_effect(y, levels, learned=normalization != "level")


def _best_third(y: Tensor) -> tuple[Tensor, Tensor]:
    """Where the best third of y begins, and the slope of y over its Gaussian copula above that."""
    z, least = gaussian_copula(y), torch.quantile(y, _BEST_THIRD)
    better = (y > least) & (z > _Z_BEST_THIRD)
    above = z[better] - _Z_BEST_THIRD
    slope = (above * (y[better] - least)).sum() / above.square().sum().clamp_min(SMALLEST_SCALE)
    return least, rounded(slope, y.abs().max())


def clip_tail(y: Tensor) -> Tensor:
    """y in the units of its best third; what is worse, no further down than by its rank.

    Losses of real tasks have tails that hide all differences between good points, while those of others
    have peaks that ranks would level: distances between good points stay as they are.
    """
    least, slope = _best_third(y)
    z = _Z_BEST_THIRD + (y - least) / first_positive(slope, deviation_of(y), y.abs().max())
    ranked = gaussian_copula(y).clamp_max(_Z_BEST_THIRD)
    return torch.where(z < _Z_BEST_THIRD, torch.maximum(z, ranked), z)


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
        # Where neither varies, any trust gives the same offset.
        trust = between / (between + within / len(y)) if between + within > 0 else 1.0
        offset = offset + trust * (y.mean() - offset)
    # Past tasks that are all constant have no scale to give: take what else there is.
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
    # What exceeds a level that nobody knows is only a burden on the digits of K: that part is settled
    # by the mean of y_t, shrunk as in "pooled".
    known = torch.minimum(between, _UNKNOWN_LEVEL * scale.square())
    offset = levels.mean.mean()
    if len(y):
        offset = offset + (between - known) / (between + scale.square()) * (y.mean() - offset)
    return Scaling(offset, scale, known / scale.square(), spread)


def _one_more(values: Tensor) -> Tensor:
    """The variance to expect of one more value, which the mean of a few does not know well."""
    n = len(values)
    return values.var() * (1.0 + 1.0 / n) * (n + 1.0) / (n - 1.0)
