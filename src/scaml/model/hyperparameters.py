"""θ_t: the hyperparameters of the test-task, their priors, and the vector that a search moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from scaml.gp.hyperpriors import TEST_TASK, KernelPriors
from scaml.model.weight_priors import WeightPrior

__all__ = ["Coordinates", "Hyperparameters", "Split", "ThetaPriors"]


def _zero() -> Tensor:
    return torch.zeros((), dtype=torch.float64)


@dataclass(frozen=True)
class Hyperparameters:
    """θ_t = (w, ℓ, o, σ²), in standardized units; `level` is ours, and 0 in the paper."""

    weights: Tensor  # M
    lengthscale: Tensor  # d
    outputscale: Tensor  # scalar
    noise: Tensor  # scalar
    level: Tensor = field(default_factory=_zero)  # scalar, variance of a constant in k_t

    @classmethod
    def from_vector(cls, x: Tensor, d: int) -> Hyperparameters:
        """From (w, log ℓ, log o, log σ²)."""
        kernel = x[-d - 2 :].exp()
        return cls(x[: -d - 2], kernel[:-2], kernel[-2], kernel[-1])


@dataclass(frozen=True)
class ThetaPriors:
    """p(θ_t), the priors of the test-task's hyperparameters.

    The paper has the first two. `level` and `spread` are ours; both are 0 where offset and scale of y
    are fixed beforehand.

    Args:
        weights: Prior of the weights.
        kernel: Priors of the residual kernel and of the noise.
        level: λ, the variance of the test-task's level, in squared scales.
        spread: Standard deviation of s, the logarithm of the factor on the scale of y.
    """

    weights: WeightPrior
    kernel: KernelPriors = TEST_TASK
    level: float = 0.0
    spread: float = 0.0


class Split(NamedTuple):
    """A batch of vectors by their parts; c and s are None where they are not searched for."""

    w: Tensor  # batch x M
    c: Tensor | None  # batch
    s: Tensor | None  # batch
    theta: Tensor  # batch x (d + 2): log ℓ, log o, log σ²


@dataclass(frozen=True)
class Coordinates:
    """The vector that a search for θ_t moves.

    In the paper's setting it is (w, log ℓ, log o, log σ²). Ours has two further coordinates behind the
    weights: c, their common value, and s, the logarithm of the factor on the scale of y.

    Args:
        tasks: M.
        d: Number of parameters.
        common: Whether c is a coordinate.
        scale: Whether s is a coordinate.
    """

    tasks: int
    d: int
    common: bool = False
    scale: bool = False

    @classmethod
    def of(cls, tasks: int, d: int, priors: ThetaPriors) -> Coordinates:
        """The coordinates that these priors need."""
        return cls(tasks, d, common=priors.weights.learns_common, scale=priors.spread > 0)

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.tasks + self.common + self.scale + self.d + 2

    def split(self, x: Tensor) -> Split:
        """The parts of `batch x size`."""
        w, ours, theta = x.split([self.tasks, self.common + self.scale, self.d + 2], dim=-1)
        c = ours[..., 0] if self.common else None
        s = ours[..., -1] if self.scale else None
        return Split(w, c, s, theta)

    def join(self, parts: Split) -> Tensor:
        """`batch x size` from its parts."""
        ours = [part.unsqueeze(-1) for part in (parts.c, parts.s) if part is not None]
        return torch.cat([parts.w, *ours, parts.theta], dim=-1)
