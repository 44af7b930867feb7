"""Test-task likelihoods written out: problems, points, the dense posterior, and SciPy's search."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize as scipy_minimize
from torch import Tensor
from torch.distributions import Cauchy, Exponential, LogNormal, MultivariateNormal, Normal

from scaml.gp.hyperpriors import TEST_TASK, KernelPriors, LogScale
from scaml.gp.kernels import KernelName
from scaml.model.fit_theta import Cache, fit_theta, negative_log_posterior
from scaml.model.hyperparameters import Hyperparameters, ThetaPriors
from scaml.model.weight_priors import weight_prior

KERNELS: tuple[KernelName, ...] = ("se", "matern52")
RESIDUAL = LogScale(torch.tensor(-1.2, dtype=torch.float64), torch.tensor(0.7, dtype=torch.float64))
BELIEFS = {
    "positive": ThetaPriors(weight_prior("positive")),
    "signed": ThetaPriors(weight_prior("signed")),
    "learned": ThetaPriors(weight_prior("positive"), level=0.8, spread=0.6),
    "shared": ThetaPriors(
        weight_prior("shared", 0.9, 0.4),
        KernelPriors(TEST_TASK.lengthscale, RESIDUAL, TEST_TASK.noise),
        level=2.0,
        spread=0.5,
    ),
}

OURS = {"positive": "", "signed": "", "learned": "s", "shared": "cs"}  # coordinates behind the weights


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def correlations(kernel: KernelName, X: Tensor, Z: Tensor, lengthscale: Tensor) -> Tensor:
    """R from its definition; 1 where points coincide, also for autograd."""
    squared = ((X[:, None] - Z[None]) / lengthscale).square().sum(-1)
    if kernel == "se":
        return torch.exp(-squared / 2)
    equal = squared == 0
    r = torch.where(equal, 1.0, squared).sqrt() * 5**0.5
    return torch.where(equal, 1.0, (1 + r + r.square() / 3) * torch.exp(-r))


def posterior(X: Tensor, y: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """μ_m and Σ_m at the test inputs, of a meta-task's GP with fixed hyperparameters."""
    lengthscale = torch.full((X.shape[1],), 0.4, dtype=torch.float64)
    K = correlations("se", X, X, lengthscale) + 1e-3 * torch.eye(len(X), dtype=torch.float64)
    k = correlations("se", X, at, lengthscale)
    solved = torch.linalg.solve(K, k)
    return solved.T @ y, correlations("se", at, at, lengthscale) - k.T @ solved


def problem(tasks: int, n: int, d: int, seed: int = 0, sign: float = 1.0) -> Cache:
    """Meta-tasks are shifted waves; the test-task is `sign` times the first of them, with noise."""
    generator = random(seed)
    frequency = 1.0 + 3.0 * torch.rand(tasks, d, generator=generator, dtype=torch.float64)
    shift = 6.0 * torch.rand(tasks, generator=generator, dtype=torch.float64)
    at = torch.rand(n, d, generator=generator, dtype=torch.float64)
    means, covariances = [], []
    for m in range(tasks):
        X = torch.rand(6 + 4 * d, d, generator=generator, dtype=torch.float64)
        mean, covariance = posterior(X, 1.4 * torch.sin(X @ frequency[m] + shift[m]), at)
        means.append(mean)
        covariances.append(covariance)
    noise = 0.05 * torch.randn(n, generator=generator, dtype=torch.float64)
    z = sign * 1.4 * torch.sin(at @ frequency[0] + shift[0]) + noise
    return Cache.of(at, z, torch.stack(means), torch.stack(covariances))


def points(cache: Cache, kind: str, batch: int, seed: int = 0) -> Tensor:
    """Random (w, log ℓ, log o, log σ²), with c and s behind w where they are learned."""
    tasks, d = len(cache.mean), cache.X.shape[1]
    size = tasks + OURS[kind].count("c") + OURS[kind].count("s") + d + 2
    x = torch.randn(batch, size, generator=random(seed), dtype=torch.float64) * 0.6
    if kind != "signed":
        x[:, :tasks].abs_()
    x[:, -1] -= 5.0
    return x


def ours(kind: str, tasks: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """c and s of a vector; 1 and 0 where they are no coordinates of it."""
    c = x[tasks] if "c" in OURS[kind] else tensor(1.0)
    s = x[tasks + OURS[kind].index("s")] if "s" in OURS[kind] else tensor(0.0)
    return c, s


def dense(kernel: KernelName, cache: Cache, kind: str, x: Tensor) -> Tensor:
    """-log p(y_t | D_1:M, θ_t) - log p(θ_t) at one x, from Theorem 1 and the priors' names alone.

    Densities of y_t, not of z: a scale that is learned must pay for itself.
    """
    tasks, n = cache.mean.shape
    w, (c, s), d = x[:tasks], ours(kind, tasks, x), cache.X.shape[1]
    lengthscale, outputscale, noise = x[-d - 2 : -2].exp(), x[-2].exp(), x[-1].exp()
    mean = sum((w[m] * cache.mean[m] for m in range(tasks)), torch.zeros(n, dtype=torch.float64))
    covariance = outputscale * correlations(kernel, cache.X, cache.X, lengthscale)
    for m in range(tasks):
        covariance = covariance + w[m].square() * cache.covariances()[m].view(n, n)
    covariance = covariance + noise * torch.eye(n, dtype=torch.float64)
    beliefs = BELIEFS[kind]
    scaled = MultivariateNormal(s.exp() * mean, (2 * s).exp() * covariance + beliefs.level)
    likelihood = scaled.log_prob(cache.z)
    one = tensor(1.0)
    prior = LogNormal(tensor(0.5), tensor(1.5)).log_prob(lengthscale).sum()
    prior = prior + LogNormal(tensor(-8.0), tensor(2.0)).log_prob(noise)
    if beliefs.spread:
        prior = prior - 0.5 * (s / beliefs.spread).square()  # up to a constant
    if kind == "shared":
        # Up to constants: the Cauchy's and the normal's.
        apart = Cauchy(0.0 * one, 0.2 * one)
        prior = prior + (apart.log_prob(tasks * w - c) - apart.log_prob(0.0 * one)).sum()
        prior = prior - 0.5 * ((c - 0.9) / 0.4).square()
        prior = prior + Normal(tensor(-1.2), tensor(0.7)).log_prob(x[-2])
    else:
        weights: Any = Normal(0.0 * one, one) if kind == "signed" else Exponential(one)
        prior = prior + weights.log_prob(w).sum()
        prior = prior + LogNormal(tensor(-2.0), tensor(3.0)).log_prob(outputscale)
    result: Tensor = -likelihood - prior
    return result


def fitted(kernel: KernelName, cache: Cache, kind: str, seed: int = 0) -> Hyperparameters:
    return fit_theta(kernel, cache, BELIEFS[kind], seed=seed)[0]


def as_vector(kernel: KernelName, cache: Cache, kind: str, seed: int = 0) -> Tensor:
    """The fit as a vector; c at its best for these weights."""
    found, scale = fit_theta(kernel, cache, BELIEFS[kind], seed=seed)
    theta = torch.cat([found.lengthscale, found.outputscale.view(1), found.noise.view(1)]).log()
    parts = {"c": tensor([1.0]), "s": scale.log().view(1)}
    x = torch.cat([found.weights, *(parts[name] for name in OURS[kind]), theta])
    if "c" in OURS[kind]:
        grid = torch.linspace(-3.0, 5.0, 8001, dtype=torch.float64)
        w = found.weights.expand(len(grid), -1)
        x[len(found.weights)] = grid[BELIEFS[kind].weights.log_prob(w, grid).argmax()]
    return x


def bounds(cache: Cache, kind: str) -> list[tuple[float, float]]:
    """Of appendix C, in the order of x."""
    beliefs = BELIEFS[kind]
    weights = (-np.inf, np.inf) if kind == "signed" else (0.0, np.inf)
    added = {"c": (-np.inf, np.inf), "s": (-5 * beliefs.spread, 5 * beliefs.spread)}
    kernel = (np.log(1e-4), np.log(1e2))
    d = cache.X.shape[1]
    noise = (np.log(1e-8), np.log(1e-2))
    ours = [added[name] for name in OURS[kind]]
    return [weights] * len(cache.mean) + ours + [kernel] * (d + 1) + [noise]


def scipy_best(kernel: KernelName, cache: Cache, kind: str, starts: Tensor) -> float:
    """The lowest value per point that L-BFGS-B finds from any of the starts."""
    n = len(cache.z)

    def function(x: Any) -> tuple[float, Any]:
        value, slope = negative_log_posterior(kernel, cache, BELIEFS[kind], tensor(x)[None])
        return value.item() / n, slope[0].numpy() / n

    options = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-7}
    box = bounds(cache, kind)
    return min(
        float(
            scipy_minimize(
                function, start.numpy(), jac=True, method="L-BFGS-B", bounds=box, options=options
            ).fun
        )
        for start in starts
    )
