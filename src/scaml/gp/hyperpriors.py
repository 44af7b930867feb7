"""Every kernel prior and bound of the paper's appendix C ("Choices of Prior Distributions").

A prior is the density of the hyperparameter x itself, not of log x, as in GPyTorch: the density of a
log-normal has the factor 1/x. The fits optimize u = log x, so the functions here take u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = [
    "LENGTHSCALE_BOUNDS",
    "META_TASK",
    "NOISE_BOUNDS",
    "OUTPUTSCALE_BOUNDS",
    "TEST_TASK",
    "Coefficients",
    "Gamma",
    "KernelPriors",
    "LogNormal",
    "LogScale",
]

LENGTHSCALE_BOUNDS = (1e-4, 1e2)
OUTPUTSCALE_BOUNDS = (1e-4, 1e2)
NOISE_BOUNDS = (1e-8, 1e-2)


Number = TypeVar("Number")


class Coefficients(NamedTuple, Generic[Number]):
    """log p(x) = constant + linear u - rate e^u - ½ precision (u - mean)² at u = log x.

    All priors here are of this form. Each coefficient is a number, or a vector with one per column.
    """

    constant: Number
    linear: Number
    rate: Number
    mean: Number
    precision: Number


class Prior(Protocol):
    """A prior on one positive hyperparameter x, as a function of u = log x."""

    @property
    def center(self) -> float | Tensor:
        """A typical x: the default start of a fit."""

    def log_prob(self, u: Tensor) -> Tensor:
        """log p(x) at x = exp(u)."""

    def slope(self, u: Tensor) -> Tensor:
        """d log p(x) / du."""

    def sample(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Random draws of x."""

    def coefficients(self) -> Coefficients[float | Tensor]:
        """The same log p(x) by its coefficients, for code that evaluates it without torch."""


@dataclass(frozen=True)
class Gamma:
    """Γ(shape, rate) with an integer shape."""

    shape: int
    rate: float

    @property
    def center(self) -> float:
        return self.shape / self.rate

    def log_prob(self, u: Tensor) -> Tensor:
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return (self.shape - 1.0) * u - self.rate * u.exp() + constant

    def slope(self, u: Tensor) -> Tensor:
        return (self.shape - 1.0) - self.rate * u.exp()

    def sample(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        # A sum of exponentials is exact for an integer shape. Torch's gamma sampler takes no generator.
        uniform = torch.rand((self.shape, *shape), generator=generator, dtype=torch.float64)
        return -torch.log1p(-uniform).sum(0) / self.rate

    def coefficients(self) -> Coefficients[float | Tensor]:
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return Coefficients(constant, self.shape - 1.0, self.rate, 0.0, 0.0)


@dataclass(frozen=True)
class LogNormal:
    """log x ~ N(mu, sigma²)."""

    mu: float
    sigma: float

    @property
    def center(self) -> float:
        return math.exp(self.mu)

    def log_prob(self, u: Tensor) -> Tensor:
        constant = -math.log(self.sigma) - 0.5 * math.log(2.0 * math.pi)
        return -u - 0.5 * ((u - self.mu) / self.sigma).square() + constant

    def slope(self, u: Tensor) -> Tensor:
        return -1.0 - (u - self.mu) / self.sigma**2

    def sample(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        normal = torch.randn(shape, generator=generator, dtype=torch.float64)
        return (self.mu + self.sigma * normal).exp()

    def coefficients(self) -> Coefficients[float | Tensor]:
        constant = -math.log(self.sigma) - 0.5 * math.log(2.0 * math.pi)
        return Coefficients(constant, -1.0, 0.0, self.mu, self.sigma**-2)


@dataclass(frozen=True, eq=False)
class LogScale:
    """log x ~ N(mu, sigma²) as a density of log x: the mode is the center. mu and sigma may be vectors.

    The mode of a log-normal, a density of x, is exp(mu - sigma²). For the paper's residual variance
    this is below the lower bound: with few data, the most probable residual would be zero.
    """

    mu: Tensor
    sigma: Tensor

    @property
    def center(self) -> Tensor:
        return self.mu.exp()

    def log_prob(self, u: Tensor) -> Tensor:
        constant = -self.sigma.log() - 0.5 * math.log(2.0 * math.pi)
        return -0.5 * ((u - self.mu) / self.sigma).square() + constant

    def slope(self, u: Tensor) -> Tensor:
        return -(u - self.mu) / self.sigma.square()

    def sample(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        normal = torch.randn(shape, generator=generator, dtype=torch.float64)
        return (self.mu + self.sigma * normal).exp()

    def coefficients(self) -> Coefficients[float | Tensor]:
        constant = -self.sigma.log() - 0.5 * math.log(2.0 * math.pi)
        return Coefficients(constant, 0.0, 0.0, self.mu, self.sigma**-2)


@dataclass(frozen=True)
class KernelPriors:
    """Priors of one GP's θ = (log lengthscales, log outputscale, log noise variance), d + 2 long.

    The last `free` lengthscales, those of extra columns, have a flat prior within their bounds
    (`column_selection` says why).
    """

    lengthscale: Prior
    outputscale: Prior
    noise: Prior
    free: int = 0

    def log_prob(self, theta: Tensor) -> Tensor:
        """log p(θ), `batch`, of θ, `batch x (d + 2)`."""
        ell, out, noise = theta[..., : -2 - self.free], theta[..., -2], theta[..., -1]
        kernel = self.lengthscale.log_prob(ell).sum(-1) + self.outputscale.log_prob(out)
        return kernel + self.noise.log_prob(noise)

    def slope(self, theta: Tensor) -> Tensor:
        """d log p / dθ, `batch x (d + 2)`."""
        split = (theta.shape[-1] - 2 - self.free, self.free, 1, 1)
        ell, free, out, noise = theta.split(split, dim=-1)
        return torch.cat(
            [
                self.lengthscale.slope(ell),
                torch.zeros_like(free),
                self.outputscale.slope(out),
                self.noise.slope(noise),
            ],
            dim=-1,
        )

    def coefficients(self, d: int) -> Coefficients[NDArray[np.float64]]:
        """The coefficients of all columns of θ, d + 2 long each."""
        free: Coefficients[float | Tensor] = Coefficients(0.0, 0.0, 0.0, 0.0, 0.0)
        priors = self.lengthscale.coefficients(), free
        parts = (*priors, self.outputscale.coefficients(), self.noise.coefficients())
        widths = (d - self.free, self.free, 1, 1)
        columns = [
            np.concatenate([np.broadcast_to(v, w) for v, w in zip(values, widths, strict=True)])
            for values in zip(*parts, strict=True)
        ]
        return Coefficients(*columns)

    def starts(self, n: int, d: int, generator: torch.Generator) -> Tensor:
        """`n x (d + 2)` starts of a fit: the default first, then random draws from the priors."""
        lower, upper = self.bounds(d)
        one = torch.ones(1, d, dtype=torch.float64)
        centers = (self.lengthscale.center * one, self.outputscale.center * one[:, :1])
        center = torch.cat([*centers, self.noise.center * one[:, :1]], dim=-1)
        drawn = (
            self.lengthscale.sample((n - 1, d), generator),
            self.outputscale.sample((n - 1, 1), generator),
            self.noise.sample((n - 1, 1), generator),
        )
        values = torch.cat([center, torch.cat(drawn, dim=-1)])
        return values.log().clamp(lower, upper)

    @staticmethod
    def bounds(d: int) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds of θ, each d + 2 long."""
        pairs = [LENGTHSCALE_BOUNDS] * d + [OUTPUTSCALE_BOUNDS, NOISE_BOUNDS]
        lower, upper = torch.tensor(pairs, dtype=torch.float64).log().T
        return lower, upper


META_TASK = KernelPriors(
    lengthscale=Gamma(3, 6.0), outputscale=Gamma(2, 0.15), noise=LogNormal(-8.0, 2.0)
)
TEST_TASK = KernelPriors(
    lengthscale=LogNormal(0.5, 1.5), outputscale=LogNormal(-2.0, 3.0), noise=LogNormal(-8.0, 2.0)
)
