r"""Priors of the weights w_m, as densities of w itself: the bound w = 0 matters.

The paper's Γ(1, 1) does not depend on M: thirty tasks that agree weigh thirty times as much as one. On
tables of real tuning, the MAP weights after one observation are mostly those of one task or of none.
"shared" puts the weights around a common value c instead:

$$w_m = (c + \delta_m) / M, \qquad \delta_m \sim \text{Cauchy}(0, 0.2), \quad
c \sim N(c_0, \tau^2), \quad w_m \ge 0.$$

Before any data, the test-task is then the average of the past. The number c says how much the past
counts, and the heavy tail of δ lets a single task stand out. With a small probability the past is
mirrored as a whole: all weights change their sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.hyperpriors import Gamma

__all__ = ["Independent", "Shared", "WeightPrior", "WeightsName", "check_weights", "weight_prior"]

Floats = NDArray[np.float64]

WeightsName = Literal["past", "explained", "shared", "positive", "signed"]

_APART = 0.2  # scale of δ: most tasks keep an equal share, a few get much more


class WeightPrior(Protocol):
    """A prior of M weights and, if it has one, of their common value c."""

    @property
    def lower(self) -> float:
        """Lower bound of a weight."""

    @property
    def learns_common(self) -> bool:
        """Whether the weights have a common value c. Elsewhere in this protocol c is None if not."""

    def log_prob(self, w: Tensor, c: Tensor | None) -> Tensor:
        """log p, `batch`, of w, `batch x M`, and c, `batch`."""

    def slope(self, w: Tensor, c: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """d log p / dw, `batch x M`, and d log p / dc, `batch`."""

    def evaluate(self, w: Floats, c: Floats | None) -> tuple[Floats, Floats, Floats | None]:
        """log p, d log p / dw and d log p / dc at once, in NumPy: a third of the time."""

    def curvature(self, w: Floats, c: Floats | None) -> tuple[Floats, Floats | None, Floats | None]:
        """Second derivatives of -log p, made positive: by w_m, `batch x M`, by w_m and c, and by c."""

    @property
    def mirrored(self) -> float:
        """The prior probability that all weights change their sign."""

    def starts(
        self, n: int, likely: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Starts of a search: w, `n x M`, and c, n. The first is the value without data.

        Args:
            n: Their number.
            likely: M, how well each task alone explains the data; larger is better.
            generator: Decides the draws.
        """


@dataclass(frozen=True)
class Independent:
    """Independent weights.

    `signed=False` is the paper's Γ(1, 1) on w ≥ 0: log p = -w, an L1 penalty that sets many weights to
    exactly 0. `signed=True` is N(0, 1) on all of R: Lemma 1 allows negative weights, the paper does not
    use them.
    """

    signed: bool
    learns_common = False
    mirrored = 0.0

    @property
    def lower(self) -> float:
        return -math.inf if self.signed else 0.0

    def log_prob(self, w: Tensor, c: Tensor | None = None) -> Tensor:
        del c
        if self.signed:
            return (-0.5 * w.square() - 0.5 * math.log(2.0 * math.pi)).sum(-1)
        return -w.sum(-1)

    def slope(self, w: Tensor, c: Tensor | None = None) -> tuple[Tensor, None]:
        del c
        return -w if self.signed else -torch.ones_like(w), None

    def evaluate(self, w: Floats, c: Floats | None = None) -> tuple[Floats, Floats, None]:
        del c
        if self.signed:
            normal: Floats = (-0.5 * np.square(w) - 0.5 * math.log(2.0 * math.pi)).sum(-1)
            return normal, -w, None
        value = -w.sum(-1)
        return value, np.full_like(w, -1.0), None

    def curvature(self, w: Floats, c: Floats | None = None) -> tuple[Floats, None, None]:
        del c
        return np.full_like(w, 1.0 if self.signed else 0.0), None, None

    def sample(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Draws of w."""
        if self.signed:
            return torch.randn(shape, generator=generator, dtype=torch.float64)
        return Gamma(1, 1.0).sample(shape, generator)

    def starts(self, n: int, likely: Tensor, generator: torch.Generator) -> tuple[Tensor, None]:
        tasks = len(likely)
        # The sum of M draws would be M times too large.
        drawn = self.sample((n - 1, tasks), generator) / max(tasks, 1)
        equal = torch.full((1, tasks), 1.0 / max(tasks, 1), dtype=torch.float64)
        return torch.cat([equal, drawn]), None


@dataclass(frozen=True)
class Shared:
    """Weights around a common value c.

    Args:
        center: c_0.
        spread: τ.
    """

    center: float = 1.0
    spread: float = 1.0
    lower = 0.0
    learns_common = True
    mirrored = 0.05

    def _apart(self, w: Tensor, c: Tensor | None) -> Tensor:
        """δ, in units of its scale."""
        assert c is not None  # learns_common
        return (w.shape[-1] * w - c.unsqueeze(-1)) / _APART

    def log_prob(self, w: Tensor, c: Tensor | None) -> Tensor:
        # Up to a constant, and not normalized for the Cauchy's mass at w < 0: with that factor the most
        # probable c would be the one whose weights are nearest to the bound.
        apart = torch.log1p(self._apart(w, c).square()).sum(-1)
        assert c is not None
        return -apart - 0.5 * ((c - self.center) / self.spread).square()

    def slope(self, w: Tensor, c: Tensor | None) -> tuple[Tensor, Tensor]:
        apart = self._apart(w, c)
        assert c is not None
        pull = 2.0 * apart / (1.0 + apart.square()) / _APART
        return -w.shape[-1] * pull, pull.sum(-1) - (c - self.center) / self.spread**2

    def evaluate(self, w: Floats, c: Floats | None) -> tuple[Floats, Floats, Floats]:
        assert c is not None  # learns_common
        apart, away = self._apart_numpy(w, c), (c - self.center) / self.spread
        heavy = 1.0 + np.square(apart)
        pull = apart / heavy
        pull *= 2.0 / _APART
        value = -np.log(heavy).sum(-1) - 0.5 * np.square(away)
        return value, -w.shape[-1] * pull, pull.sum(-1) - away / self.spread

    def curvature(self, w: Floats, c: Floats | None) -> tuple[Floats, Floats, Floats]:
        # Of the parabola that touches the Cauchy's logarithm at δ and -δ, and is never above it.
        assert c is not None
        tasks, bend = w.shape[-1], 2.0 / _APART**2 / (1.0 + np.square(self._apart_numpy(w, c)))
        return tasks**2 * bend, -tasks * bend, bend.sum(-1) + self.spread**-2

    @staticmethod
    def _apart_numpy(w: Floats, c: Floats) -> Floats:
        apart: Floats = (w.shape[-1] * w - c[:, None]) / _APART
        return apart

    def starts(self, n: int, likely: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Equal weights; none; the task that explains most, alone; draws around equal weights."""
        tasks = len(likely)
        c = torch.full((n,), max(self.center, 0.0), dtype=torch.float64)
        c[1:3] = 0.0
        w = (c / max(tasks, 1)).unsqueeze(-1).repeat(1, tasks)
        if tasks and n > 2:
            w[2, likely.argmax()] = 1.0
        w[3:] *= Gamma(1, 1.0).sample((max(n - 3, 0), tasks), generator)
        return w, c


def weight_prior(weights: WeightsName, center: float = 1.0, spread: float = 1.0) -> WeightPrior:
    """A prior by its name; center and spread are those of "shared".

    "past" is "shared" where one model has all weights. "explained" is no density of M weights:
    `explanations` has its prior.
    """
    if weights in ("past", "shared", "explained"):
        return Shared(center, spread)
    return Independent(signed=weights == "signed")


def check_weights(weights: str) -> None:
    """Refuse an unknown prior of the weights."""
    if weights not in get_args(WeightsName):
        raise SettingError(
            f"weights is {weights!r}; choose 'past', 'shared', 'positive', 'signed' or 'explained'."
        )
