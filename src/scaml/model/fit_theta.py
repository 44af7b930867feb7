r"""MAP estimate of θ_t: line 4 of Algorithm 1, equation 9 with the priors of appendix C.

The likelihood of y_t under the prior of Theorem 1 needs the meta-tasks only through the cached
$\mu_m(X_t)$ and $\Sigma_m(X_t, X_t)$, so that one evaluation costs $O(M n_t^2 + n_t^3)$. With α and A
of `gp.likelihood`:

$$\partial / \partial w_m = w_m \langle A, \Sigma_m \rangle - \alpha^T \mu_m.$$

We add, where the priors ask for it:

- a level with variance λ, which is a constant in the kernel and stays outside K (`gp.likelihood`);
- a factor $e^s$ on the scale of y: $z_t = e^{-s} z$, the level has variance $e^{-2s} \lambda$, and
  $\partial / \partial s = n_t - \alpha^T z_t - e^{-2s} \lambda\, 1^T A 1$;
- a mirrored past: one more search in which all weights change their sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from scaml.errors import FitError
from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import negative_log_likelihood
from scaml.gp.linalg import keep_freed_memory
from scaml.gp.map_fit import STARTS
from scaml.gp.minimize import Flags, Floats, Places, minimize
from scaml.gp.packed_likelihood import packed, unpacked
from scaml.model.hyperparameters import Coordinates, Hyperparameters, Split, ThetaPriors
from scaml.model.packed_posterior import PackedPosterior

__all__ = [
    "Cache",
    "MapEstimate",
    "fit_theta",
    "hyperparameters_at",
    "most_probable",
    "negative_log_posterior",
]

# Different solutions can have similar weights, so starts merge only when they have almost met.
_SAME_BASIN = 0.05
_FARTHEST = 5.0  # bound of |s|, in its prior's standard deviations


@dataclass(frozen=True)
class Cache:
    """What the likelihood of θ_t knows of the meta-tasks: line 3 of Algorithm 1."""

    X: Tensor  # n x d
    z: Tensor  # n
    mean: Tensor  # M x n, μ_m(X_t)
    covariance: Tensor  # M x P, Σ_m(X_t, X_t), packed: lower triangles, row by row

    @classmethod
    def of(cls, X: Tensor, z: Tensor, mean: Tensor, covariance: Tensor) -> Cache:
        """From covariances `M x n x n`."""
        return cls(X, z, mean, torch.from_numpy(packed(covariance)))

    def covariances(self) -> Tensor:
        """Σ_m(X_t, X_t), `M x n²`."""
        n = len(self.z)
        return torch.from_numpy(unpacked(self.covariance.numpy(), n)).view(len(self.mean), n * n)


class MapEstimate(NamedTuple):
    """The most probable vector x, the sign of its weights, and the bounds of x."""

    x: Tensor
    sign: float
    lower: Tensor
    upper: Tensor


def negative_log_posterior(
    kernel: KernelName, cache: Cache, priors: ThetaPriors, x: Tensor, sign: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """-log p(y_t | D_1:M, θ_t) - log p(θ_t) and its slope: the reference of `PackedPosterior`.

    Args:
        kernel: The residual kernel's name.
        cache: The test data and the meta-tasks' posteriors there.
        priors: p(θ_t).
        x: `batch x size`, in the `Coordinates` of the priors.
        sign: `batch`, -1 where the past is mirrored; None for the paper's model.

    Returns:
        `batch` values and `batch x size` slopes.
    """
    tasks, n = cache.mean.shape
    coordinates = Coordinates.of(tasks, cache.X.shape[-1], priors)
    w, c, s, theta = coordinates.split(x)
    mean, z = cache.mean, cache.z
    signed = w if sign is None else sign.unsqueeze(-1) * w
    covariances = cache.covariances()
    covariance = (w.square() @ covariances).view(-1, n, n)
    level = x.new_full((len(x),), priors.level) if priors.level else None
    if s is not None:
        shrink = torch.exp(-s)
        z = shrink.unsqueeze(-1) * z
        level = None if level is None else level * shrink.square()
    residual, X = z - signed @ mean, cache.X.expand(len(x), -1, -1)
    evaluation = negative_log_likelihood(kernel, theta, X, residual, covariance=covariance, level=level)
    by_weight, by_common = priors.weights.slope(w, c)
    by_weight = w * (evaluation.inner.reshape(-1, n * n) @ covariances.mT) - by_weight
    by_mean = evaluation.alpha @ mean.mT
    by_weight = by_weight - (by_mean if sign is None else sign.unsqueeze(-1) * by_mean)
    value = evaluation.value - priors.weights.log_prob(w, c) - priors.kernel.log_prob(theta)
    by_scale = None
    if s is not None:
        by_scale = n - evaluation.along(z) + s / priors.spread**2
        if evaluation.level is not None:
            by_scale = by_scale - 2.0 * evaluation.level.slope
        value = value + n * s
    if sign is not None:
        value = value - _log_odds_of_mirrored(priors) * (sign < 0).to(value)
    if s is not None:
        value = value + 0.5 * (s / priors.spread).square()
    by_kernel = evaluation.slope - priors.kernel.slope(theta)
    slope = Split(by_weight, None if by_common is None else -by_common, by_scale, by_kernel)
    return value, coordinates.join(slope)


def _log_odds_of_mirrored(priors: ThetaPriors) -> float:
    return math.log(priors.weights.mirrored / (1.0 - priors.weights.mirrored))


def fit_theta(
    kernel: KernelName, cache: Cache, priors: ThetaPriors, *, seed: int, n_starts: int = STARTS
) -> tuple[Hyperparameters, Tensor]:
    """θ_t* and e^s. Without data, nothing is fitted: equal weights and the centers of the priors."""
    found = most_probable(kernel, cache, priors, seed=seed, n_starts=n_starts)
    return hyperparameters_at(found.x, found.sign, len(cache.mean), priors)


def most_probable(
    kernel: KernelName, cache: Cache, priors: ThetaPriors, *, seed: int, n_starts: int = STARTS
) -> MapEstimate:
    """The best of several searches for θ_t, all in lock step."""
    n = len(cache.z)
    coordinates = Coordinates.of(len(cache.mean), cache.X.shape[-1], priors)
    starts = _starts(cache, priors, torch.Generator().manual_seed(seed), n_starts)
    lower, upper = _bounds(coordinates, priors)
    if n == 0:
        return MapEstimate(starts[0], 1.0, lower, upper)
    # The mirrored past is a group of its own: equal weights of opposite sign are different solutions.
    mirrored = torch.zeros(len(starts), dtype=torch.long)
    # With a fixed level, a mirrored past cannot be told from one of another level.
    may_be = priors.weights.mirrored > 0 and priors.level > 0
    if may_be:
        starts, mirrored = torch.cat([starts, starts[:1]]), torch.cat([mirrored, mirrored[:1] + 1])
    sign = 1.0 - 2.0 * mirrored.double().numpy() if may_be else None
    density = PackedPosterior.of(kernel, cache, priors)

    def objective(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = density(x.numpy(), None if sign is None else sign[problem.numpy()])
        return torch.from_numpy(value / n), torch.from_numpy(slope / n)

    def metric(x: Floats, free: Flags, problem: Places) -> Callable[[Floats], Floats]:
        multiplied = density.metric(x, free)
        return lambda v: n * multiplied(v)

    keep_freed_memory()
    with torch.inference_mode():
        best = minimize(
            objective, starts, lower, upper, mirrored, same_basin=_SAME_BASIN, metric=metric
        )
    which = int(best.value.argmin())
    if not best.value[which].isfinite():
        raise FitError(
            "No start gave a positive definite kernel matrix for the test-task; look for values of "
            "its X or y that are far larger than the others."
        )
    return MapEstimate(best.x[which].clone(), 1.0 - 2.0 * which, lower, upper)


def hyperparameters_at(
    x: Tensor, sign: float, tasks: int, priors: ThetaPriors
) -> tuple[Hyperparameters, Tensor]:
    """θ_t and e^s at the vector x."""
    d = len(x) - Coordinates.of(tasks, 0, priors).size
    w, _, s, theta = Coordinates.of(tasks, d, priors).split(x)
    kernel = theta.exp()
    scale = torch.ones((), dtype=x.dtype) if s is None else s.exp()
    level = priors.level / scale.square()
    return Hyperparameters(sign * w, kernel[:-2], kernel[-2], kernel[-1], level), scale


def _bounds(coordinates: Coordinates, priors: ThetaPriors) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds of x; c is free."""
    lower, upper = priors.kernel.bounds(coordinates.d)
    weights = torch.full((coordinates.tasks,), priors.weights.lower, dtype=torch.float64)
    infinite = torch.tensor(torch.inf, dtype=torch.float64)
    farthest = torch.tensor(_FARTHEST * priors.spread, dtype=torch.float64)
    c = infinite if coordinates.common else None
    s = farthest if coordinates.scale else None
    below = Split(weights, None if c is None else -c, None if s is None else -s, lower)
    above = Split(torch.full_like(weights, torch.inf), c, s, upper)
    return coordinates.join(below), coordinates.join(above)


def _starts(cache: Cache, priors: ThetaPriors, generator: torch.Generator, n: int = STARTS) -> Tensor:
    """`n x size`: first the values without data, then draws from the priors."""
    coordinates = Coordinates.of(len(cache.mean), cache.X.shape[-1], priors)
    theta = priors.kernel.starts(n, cache.X.shape[-1], generator)
    w, c = priors.weights.starts(n, _explains(cache), generator)
    s = torch.zeros(n, dtype=torch.float64) if coordinates.scale else None
    return coordinates.join(Split(w, c, s, theta))


def _explains(cache: Cache) -> Tensor:
    """M correlations of the tasks' means with the data; 0 where either is constant."""
    if len(cache.z) < 2:
        return torch.zeros(len(cache.mean), dtype=torch.float64)
    a, z = cache.mean - cache.mean.mean(-1, keepdim=True), cache.z - cache.z.mean()
    return torch.nan_to_num(a @ z / (a.norm(dim=-1) * z.norm()))
