r"""MAP of the test-task's θ_t: weights w, residual kernel k_t, noise σ_t² and scale.

Lines 3 and 4 of Algorithm 1, equation 9. The likelihood of y_t under the prior of Theorem 1 needs
the meta-tasks only through the cached $\mu_m(X_t)$ and $\Sigma_m(X_t, X_t)$, so that one evaluation
costs $O(M n_t^2 + n_t^3)$:

$$\partial / \partial w_m = w_m \langle A, \Sigma_m \rangle - \alpha^T \mu_m.$$

Where the scale of y_t is learned, $z_t = e^{-s} z$ and the level has variance $e^{-2s} \lambda$:

$$\partial / \partial s = n_t - \alpha^T z_t - e^{-2s} \lambda\, 1^T A 1.$$
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from scaml.errors import FitError
from scaml.gp.hyperpriors import TEST_TASK, KernelPriors
from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import negative_log_likelihood
from scaml.gp.map_fit import STARTS
from scaml.gp.minimize import minimize
from scaml.model.weight_priors import WeightPrior

__all__ = [
    "Beliefs",
    "Cache",
    "Found",
    "Hyperparameters",
    "fit_weights",
    "most_probable",
    "negative_log_posterior",
    "parts",
]


# The solver sees the weights this much enlarged: the likelihood bends faster in them than in
# logarithms, and steps of one size should mean as much in either. Measured for M = 8 to 256 and
# n_t = 5 to 40: half of the evaluations.
_WEIGHT_UNIT = 5.0
# Weights of different solutions can lie close together, so only starts that have all but met merge.
_SAME_BASIN = 0.01
_FARTHEST = 5.0  # spreads that a scale may be off


def _zero() -> Tensor:
    return torch.zeros((), dtype=torch.float64)


@dataclass(frozen=True)
class Hyperparameters:
    """θ_t of the test-task, in standardized units."""

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
class Beliefs:
    """p(θ_t): what holds of the test-task before its data.

    Args:
        weights: Prior of the weights.
        kernel: Priors of the residual kernel and the noise.
        level: λ, the variance of the test-task's level, in squared scales.
        spread: Deviation of s, the logarithm of what its scale is off by; 0 if it is known.
    """

    weights: WeightPrior
    kernel: KernelPriors = TEST_TASK
    level: float = 0.0
    spread: float = 0.0


@dataclass(frozen=True)
class Cache:
    """What the test-task likelihood knows of the meta-tasks: line 3 of Algorithm 1."""

    X: Tensor  # n x d
    z: Tensor  # n
    mean: Tensor  # M x n, μ_m(X_t)
    covariance: Tensor  # M x n², Σ_m(X_t, X_t)


class Found(NamedTuple):
    """The most probable x = (w, c, s, log ℓ, log o, log σ²), the sign of w, and the bounds of x."""

    x: Tensor
    sign: float
    lower: Tensor
    upper: Tensor


def negative_log_posterior(
    kernel: KernelName, cache: Cache, beliefs: Beliefs, x: Tensor, sign: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """-log p(y_t | D_1:M, θ_t) - log p(θ_t) and its slope at (w, c, s, log ℓ, log o, log σ²).

    Args:
        kernel: The residual kernel's name.
        cache: The test data and the meta-tasks' posteriors there.
        beliefs: The priors.
        x: `batch x (M + 2 + d + 2)`.
        sign: `batch`, -1 where the weights are those of a mirrored past; None for 1.

    Returns:
        `batch` values and `batch x (M + 2 + d + 2)` slopes.
    """
    tasks, n = cache.mean.shape
    w, c, s, theta = x[:, :tasks], x[:, tasks], x[:, tasks + 1], x[:, tasks + 2 :]
    signed = w if sign is None else sign.unsqueeze(-1) * w
    shrink = torch.exp(-s)
    z = shrink.unsqueeze(-1) * cache.z
    level = beliefs.level * shrink.square()
    covariance = (w.square() @ cache.covariance).view(-1, n, n)
    if beliefs.level:
        covariance = covariance + level[:, None, None]
    evaluation = negative_log_likelihood(
        kernel, theta, cache.X.expand(len(x), -1, -1), z - signed @ cache.mean, covariance=covariance
    )
    by_weight, by_common = beliefs.weights.slope(w, c)
    by_weight = w * (evaluation.inner.reshape(-1, n * n) @ cache.covariance.mT) - by_weight
    by_mean = evaluation.alpha @ cache.mean.mT
    by_weight = by_weight - (by_mean if sign is None else sign.unsqueeze(-1) * by_mean)
    by_scale = n - (evaluation.alpha * z).sum(-1) - level * evaluation.inner.sum((-2, -1))
    value = evaluation.value - beliefs.weights.log_prob(w, c) - beliefs.kernel.log_prob(theta) + n * s
    if sign is not None:
        odds = beliefs.weights.mirrored / (1.0 - beliefs.weights.mirrored)
        value = value - math.log(odds) * (sign < 0)
    if beliefs.spread:
        value = value + 0.5 * (s / beliefs.spread).square()
        by_scale = by_scale + s / beliefs.spread**2
    by_kernel = evaluation.slope - beliefs.kernel.slope(theta)
    slope = torch.cat([by_weight, -by_common[:, None], by_scale[:, None], by_kernel], dim=-1)
    return value, slope


def fit_weights(
    kernel: KernelName, cache: Cache, beliefs: Beliefs, *, seed: int, n_starts: int = STARTS
) -> tuple[Hyperparameters, Tensor]:
    """θ_t* and e^s. Without data there is nothing to fit: equal weights and the priors' centers."""
    found = most_probable(kernel, cache, beliefs, seed=seed, n_starts=n_starts)
    return parts(found.x, found.sign, len(cache.mean), beliefs)


def most_probable(
    kernel: KernelName, cache: Cache, beliefs: Beliefs, *, seed: int, n_starts: int = STARTS
) -> Found:
    """The best of several searches for θ_t."""
    tasks, n = cache.mean.shape
    d = cache.X.shape[-1]
    starts = _starts(cache, beliefs, torch.Generator().manual_seed(seed), n_starts)
    lower, upper = _bounds(tasks, d, beliefs, starts[0, tasks])
    if n == 0:
        return Found(starts[0], 1.0, lower, upper)
    unit = torch.ones(tasks + 2 + d + 2, dtype=torch.float64)
    unit[:tasks] = _WEIGHT_UNIT

    # A mirrored past is a search of its own, from what holds without data: the same weights with
    # another sign are not the same solution.
    mirrored = torch.zeros(len(starts), dtype=torch.long)
    # Where the level is fixed, a past that is mirrored looks like one of another level.
    may_be = beliefs.weights.mirrored > 0 and beliefs.level > 0
    if may_be:
        starts, mirrored = torch.cat([starts, starts[:1]]), torch.cat([mirrored, mirrored[:1] + 1])
    sign = 1.0 - 2.0 * mirrored.double() if may_be else None

    def objective(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        signs = None if sign is None else sign[problem]
        value, slope = negative_log_posterior(kernel, cache, beliefs, x / unit, signs)
        return value / n, slope / (n * unit)

    with torch.inference_mode():
        best = minimize(
            objective, starts * unit, lower * unit, upper * unit, mirrored, same_basin=_SAME_BASIN
        )
    which = int(best.value.argmin())
    if not best.value[which].isfinite():
        raise FitError(
            "No start gave a positive definite kernel matrix for the test-task; look for values of "
            "its X or y that dwarf the others."
        )
    return Found(best.x[which].clone() / unit, 1.0 - 2.0 * which, lower, upper)


def parts(x: Tensor, sign: float, tasks: int, beliefs: Beliefs) -> tuple[Hyperparameters, Tensor]:
    """θ_t and e^s of x."""
    kernel, scale = x[tasks + 2 :].exp(), x[tasks + 1].exp()
    level = beliefs.level / scale.square()
    return Hyperparameters(sign * x[:tasks], kernel[:-2], kernel[-2], kernel[-1], level), scale


def _bounds(tasks: int, d: int, beliefs: Beliefs, common: Tensor) -> tuple[Tensor, Tensor]:
    """Of (w, c, s, log ℓ, log o, log σ²); c and s stay where they are unless they are learned."""
    lower, upper = beliefs.kernel.bounds(d)
    far = torch.tensor([torch.inf if beliefs.weights.learns_common else 0.0], dtype=torch.float64)
    off = torch.tensor([_FARTHEST * beliefs.spread], dtype=torch.float64)
    weights = torch.full((tasks,), beliefs.weights.lower, dtype=torch.float64)
    lower = torch.cat([weights, common - far, -off, lower])
    return lower, torch.cat([torch.full_like(weights, torch.inf), common + far, off, upper])


def _starts(cache: Cache, beliefs: Beliefs, generator: torch.Generator, n: int = STARTS) -> Tensor:
    """`n x (M + 2 + d + 2)`: what holds without data first, then draws from the priors."""
    theta = beliefs.kernel.starts(n, cache.X.shape[-1], generator)
    w, c = beliefs.weights.starts(n, _explains(cache), generator)
    s = torch.zeros(n, 1, dtype=torch.float64)
    return torch.cat([w, c.unsqueeze(-1), s, theta], dim=-1)


def _explains(cache: Cache) -> Tensor:
    """M correlations of the tasks' means with the data; 0 where either is constant."""
    if len(cache.z) < 2:
        return torch.zeros(len(cache.mean), dtype=torch.float64)
    a, z = cache.mean - cache.mean.mean(-1, keepdim=True), cache.z - cache.z.mean()
    return torch.nan_to_num(a @ z / (a.norm(dim=-1) * z.norm()))
