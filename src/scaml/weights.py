r"""MAP of the test-task's θ_t: weights w, residual kernel k_t and noise σ_t².

Lines 3 and 4 of Algorithm 1, equation 9. The likelihood of y_t under the prior of Theorem 1 needs
the meta-tasks only through the cached $\mu_m(X_t)$ and $\Sigma_m(X_t, X_t)$, so that one evaluation
costs $O(M n_t^2 + n_t^3)$:

$$\partial / \partial w_m = w_m \langle A, \Sigma_m \rangle - \alpha^T \mu_m.$$
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scaml.errors import FitError
from scaml.fit import STARTS
from scaml.hyperpriors import TEST_TASK, WeightPrior
from scaml.kernels import KernelName
from scaml.likelihood import negative_log_likelihood
from scaml.minimize import minimize

__all__ = ["Cache", "Hyperparameters", "fit_weights", "negative_log_posterior"]


# The solver sees the weights this much enlarged: the likelihood bends faster in them than in
# logarithms, and steps of one size should mean as much in either. Measured for M = 8 to 256 and
# n_t = 5 to 40: half of the evaluations.
_WEIGHT_UNIT = 5.0
# Weights of different solutions can lie close together, so only starts that have all but met merge.
_SAME_BASIN = 0.01


@dataclass(frozen=True)
class Hyperparameters:
    """θ_t of the test-task, in standardized units."""

    weights: Tensor  # M
    lengthscale: Tensor  # d
    outputscale: Tensor  # scalar
    noise: Tensor  # scalar

    @classmethod
    def from_vector(cls, x: Tensor, d: int) -> Hyperparameters:
        """From (w, log ℓ, log o, log σ²)."""
        kernel = x[-d - 2 :].exp()
        return cls(x[: -d - 2], kernel[:-2], kernel[-2], kernel[-1])


@dataclass(frozen=True)
class Cache:
    """What the test-task likelihood knows of the meta-tasks: line 3 of Algorithm 1."""

    X: Tensor  # n x d
    z: Tensor  # n
    mean: Tensor  # M x n, μ_m(X_t)
    covariance: Tensor  # M x n², Σ_m(X_t, X_t)


def negative_log_posterior(
    kernel: KernelName,
    cache: Cache,
    weight_prior: WeightPrior,
    x: Tensor,
) -> tuple[Tensor, Tensor]:
    """-log p(y_t | D_1:M, θ_t) - log p(θ_t) and its slope at a batch of (w, log ℓ, log o, log σ²).

    Args:
        kernel: The residual kernel's name.
        cache: The test data and the meta-tasks' posteriors there.
        weight_prior: Prior of the weights.
        x: `batch x (M + d + 2)`.

    Returns:
        `batch` values and `batch x (M + d + 2)` slopes.
    """
    tasks, n = cache.mean.shape
    w, theta = x[:, :tasks], x[:, tasks:]
    evaluation = negative_log_likelihood(
        kernel,
        theta,
        cache.X.expand(len(x), -1, -1),
        cache.z - w @ cache.mean,
        covariance=(w.square() @ cache.covariance).view(-1, n, n),
    )
    by_weight = w * (evaluation.inner.reshape(-1, n * n) @ cache.covariance.mT)
    by_weight = by_weight - evaluation.alpha @ cache.mean.mT - weight_prior.slope(w)
    value = evaluation.value - weight_prior.log_prob(w) - TEST_TASK.log_prob(theta)
    return value, torch.cat([by_weight, evaluation.slope - TEST_TASK.slope(theta)], dim=-1)


def fit_weights(
    kernel: KernelName, cache: Cache, weight_prior: WeightPrior, *, seed: int
) -> Hyperparameters:
    """θ_t*. Without data there is nothing to fit: equal weights 1/M and the priors' centers."""
    tasks, n = cache.mean.shape
    d = cache.X.shape[-1]
    starts = _starts(tasks, d, weight_prior, torch.Generator().manual_seed(seed))
    if n == 0:
        return Hyperparameters.from_vector(starts[0], d)

    unit = torch.ones(tasks + d + 2, dtype=torch.float64)
    unit[:tasks] = _WEIGHT_UNIT

    def objective(x: Tensor, _problem: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = negative_log_posterior(kernel, cache, weight_prior, x / unit)
        return value / n, slope / (n * unit)

    lower, upper = TEST_TASK.bounds(d)
    lower = torch.cat([torch.full((tasks,), weight_prior.lower, dtype=torch.float64), lower])
    upper = torch.cat([torch.full((tasks,), torch.inf, dtype=torch.float64), upper])
    one_fit = torch.zeros(len(starts), dtype=torch.long)
    with torch.inference_mode():
        best = minimize(objective, starts * unit, lower, upper, one_fit, same_basin=_SAME_BASIN)
    if not best.value.isfinite():
        raise FitError(
            "No start gave a positive definite kernel matrix for the test-task; look for values of "
            "its X or y that dwarf the others."
        )
    return Hyperparameters.from_vector(best.x[0].clone() / unit, d)


def _starts(tasks: int, d: int, weight_prior: WeightPrior, generator: torch.Generator) -> Tensor:
    """`STARTS x (M + d + 2)`: equal weights 1/M first, then draws from the priors.

    Drawn weights are divided by M: a sum of M draws would start M times too large.
    """
    theta = TEST_TASK.starts(STARTS, d, generator)
    drawn = weight_prior.sample((STARTS - 1, tasks), generator) / max(tasks, 1)
    equal = torch.full((1, tasks), 1.0 / max(tasks, 1), dtype=torch.float64)
    return torch.cat([torch.cat([equal, drawn]), theta], dim=-1)
