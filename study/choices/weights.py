r"""Further priors of the M weights, with the interface of `scaml.model.weight_priors`.

- "per-task": $w_m \sim \Gamma(1, M)$, the paper's prior with a sum that does not grow with M.
- "dirichlet": w = c p, where p has a symmetric Dirichlet density and the sum c is normal around 1.
- "spike": each weight is almost 0 with probability ½, otherwise of order 1.
- "normal": $w_m \sim N(1/M, 1/M^2)$ on w ≥ 0, around the average of the past.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.hyperpriors import Gamma
from scaml.gp.task_gps import TaskGPs
from scaml.methods.scaml import ScaMLPrior
from scaml.model.normalization import SeenPast
from scaml.model.weight_priors import Independent, WeightPrior
from study.choices.former_default import FormerDefault

__all__ = ["PRIORS", "DirichletLike", "Normal", "PerTask", "PriorName", "Spike", "Weighted"]

Floats = NDArray[np.float64]
PriorName = Literal["per-task", "dirichlet", "spike", "normal"]
_LOG_2PI = math.log(2.0 * math.pi)


class _Bounded(ABC):
    """What these priors have in common: weights ≥ 0, no common value to learn, no mirrored past."""

    lower = 0.0
    learns_common = False
    mirrored = 0.0

    @abstractmethod
    def log_density(self, w: Tensor) -> Tensor:
        """log p, `batch`, of w, `batch x M`."""

    @abstractmethod
    def by_weight(self, w: Tensor) -> Tensor:
        """d log p / dw, `batch x M`."""

    def log_prob(self, w: Tensor, c: Tensor | None = None) -> Tensor:
        del c
        return self.log_density(w)

    def slope(self, w: Tensor, c: Tensor | None = None) -> tuple[Tensor, None]:
        del c
        return self.by_weight(w), None

    def evaluate(self, w: Floats, c: Floats | None) -> tuple[Floats, Floats, None]:
        del c
        at = torch.from_numpy(w)
        return self.log_density(at).numpy(), self.by_weight(at).numpy(), None

    def curvature(self, w: Floats, c: Floats | None) -> tuple[Floats, None, None]:
        """Not known: the search learns it."""
        del c
        return np.zeros_like(w), None, None

    def starts(self, n: int, likely: Tensor, generator: torch.Generator) -> tuple[Tensor, None]:
        """The starts of the paper's prior: the study compares priors, not searches."""
        return Independent(signed=False).starts(n, likely, generator)


@dataclass(frozen=True)
class PerTask(_Bounded):
    """Γ(1, M): exponential with mean 1/M."""

    def log_density(self, w: Tensor) -> Tensor:
        tasks = w.shape[-1]
        return (math.log(tasks) - tasks * w).sum(-1)

    def by_weight(self, w: Tensor) -> Tensor:
        return torch.full_like(w, -w.shape[-1])


@dataclass(frozen=True)
class DirichletLike(_Bounded):
    """p(c, p) as a function of w = c p.

    The density of w would have another factor c^(1 - M), and would be largest where all weights vanish.

    Args:
        alpha: The parameter of the symmetric Dirichlet density. Above 1, every task gets a share.
        spread: The standard deviation of c.
    """

    alpha: float = 2.0
    spread: float = 0.5
    lower = 1e-6  # at w = 0 the density is 0, and its logarithm and slope are infinite

    def log_density(self, w: Tensor) -> Tensor:
        tasks, c = w.shape[-1], w.sum(-1)
        constant = math.lgamma(tasks * self.alpha) - tasks * math.lgamma(self.alpha)
        shares = (self.alpha - 1.0) * (w.log().sum(-1) - tasks * c.log())
        normal = 0.5 * ((c - 1.0) / self.spread).square() + math.log(self.spread) + 0.5 * _LOG_2PI
        return constant + shares - normal

    def by_weight(self, w: Tensor) -> Tensor:
        c = w.sum(-1, keepdim=True)
        shares = (self.alpha - 1.0) * (w.reciprocal() - w.shape[-1] / c)
        return shares - (c - 1.0) / self.spread**2

    def starts(self, n: int, likely: Tensor, generator: torch.Generator) -> tuple[Tensor, None]:
        """As for the other priors, but away from the bound, where searches get stuck."""
        w, _ = super().starts(n, likely, generator)
        drawn = Gamma(2, 1.0).sample((n - 1, len(likely)), generator)
        w[1:] = drawn / drawn.sum(-1, keepdim=True)
        return w, None


@dataclass(frozen=True)
class Spike(_Bounded):
    """An equal mixture of two exponential distributions.

    Args:
        rate: The rate of the distribution close to 0; the other one has rate 1.
    """

    rate: float = 100.0

    def _parts(self, w: Tensor) -> Tensor:
        """The log densities of both distributions, stacked in the first dimension."""
        return torch.stack([math.log(0.5 * self.rate) - self.rate * w, math.log(0.5) - w])

    def log_density(self, w: Tensor) -> Tensor:
        return self._parts(w).logsumexp(0).sum(-1)

    def by_weight(self, w: Tensor) -> Tensor:
        share = self._parts(w).softmax(0)
        return -self.rate * share[0] - share[1]


@dataclass(frozen=True)
class Normal(_Bounded):
    """N(1/M, 1/M²), truncated at 0."""

    def log_density(self, w: Tensor) -> Tensor:
        tasks = w.shape[-1]
        inside = 0.5 * math.erfc(-math.sqrt(0.5))  # Φ(1): the mean is one standard deviation above 0
        constant = math.log(tasks) - 0.5 * _LOG_2PI - math.log(inside)
        return (constant - 0.5 * (tasks * w - 1.0).square()).sum(-1)

    def by_weight(self, w: Tensor) -> Tensor:
        tasks = w.shape[-1]
        return -tasks * (tasks * w - 1.0)


PRIORS: dict[PriorName, WeightPrior] = {
    "per-task": PerTask(),
    "dirichlet": DirichletLike(),
    "spike": Spike(),
    "normal": Normal(),
}
"""The priors by name."""


@dataclass(frozen=True)
class Weighted(FormerDefault):
    """ScaML-GP with one of the priors above.

    Args:
        prior_name: The name of the prior, which replaces `weights`.
    """

    prior_name: PriorName = "per-task"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior_name not in PRIORS:
            names = ", ".join(map(repr, get_args(PriorName)))
            raise SettingError(f"prior_name is {self.prior_name!r}; choose one of {names}.")

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> ScaMLPrior:
        """A prior with another prior of the weights."""
        prior = super().prior(past, task_gps)
        priors = replace(prior.theta_priors, weights=PRIORS[self.prior_name])
        return replace(prior, theta_priors=priors)
