r"""The evidence of an explanation: p(y_t | D_1:M, e), its hyperparameters integrated by Laplace.

The hyperparameters are ξ = (c, s, log ℓ, log o, log σ²), each in units of its prior's standard
deviation around its prior's mean, so that p(ξ) = N(0, I), with c ≥ 0. With

$$f(\xi) = -\log p(y_t \mid D_{1:M}, e, \xi) + \tfrac12 |\xi|^2,$$

its minimum ξ* and its Hessian H there, Laplace's approximation is

$$\log p(y_t \mid D_{1:M}, e) \approx -f(\xi^*) - \tfrac12 \log \det H :$$

the fit at the best hyperparameters, minus how far the priors had to be left, minus what had to be tuned
(Occam's factor; H = I where the data say nothing). The likelihood needs the past only through
$a_e = \sum_m v_{em} \mu_m(X_t)$ and $C_e = \sum_m v_{em}^2 \Sigma_m(X_t, X_t)$, whatever M is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scaml.gp.hyperpriors import KernelPriors
from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import value_alone
from scaml.gp.packed_likelihood import PackedLikelihood, packed

__all__ = ["Problem", "log_evidence"]

Floats = NDArray[np.float64]

# Rough curvatures of the likelihood per observation, as in `packed_posterior`.
_BY_LENGTHSCALE, _BY_OUTPUTSCALE, _BY_NOISE, _BY_MEAN = 0.1, 0.3, 0.1, 3.0
_STEP = 1e-4
_LEAST_CURVATURE = 0.1  # of a direction of ξ: its prior alone has 1
_AT_BOUND = 1e-6
_FARTHEST = 5.0  # bound of |s|, in its prior's standard deviations


@dataclass(frozen=True, eq=False)
class Problem:
    """The negative log posterior f of E explanations, in units before the scale is learned.

    Args:
        kernel: The residual kernel's name.
        X: `n x d`.
        z: n.
        mean: `E x n`, a_e.
        covariance: `E x n x n`, C_e.
        center: `E x (d + 4)`, prior means of (c, s, log ℓ, log o, log σ²).
        spread: `E x (d + 4)`, prior standard deviations; 0 for a coordinate that is fixed.
        level: λ, the variance of the level in units of the scale before it is learned.
    """

    kernel: KernelName
    X: Tensor
    z: Tensor
    mean: Tensor
    covariance: Tensor
    center: Tensor
    spread: Tensor
    level: float

    def natural(self, xi: Tensor, which: Tensor) -> Tensor:
        """(c, s, log ℓ, log o, log σ²), `batch x (d + 4)`, of ξ of some of the explanations."""
        return self.center[which] + self.spread[which] * xi

    def bounds(self) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds of ξ, `E x (d + 4)` each: c ≥ 0, |s|, and the bounds of the kernel.

        Values that are all equal would have the scale 0.
        """
        lower, upper = KernelPriors.bounds(self.X.shape[-1])
        free = torch.tensor([-torch.inf, torch.inf], dtype=torch.float64)
        low = torch.cat([torch.zeros(1, dtype=torch.float64), free[:1], lower])
        high = torch.cat([free[1:], free[1:], upper])
        fixed = self.spread == 0
        spread = self.spread.where(~fixed, 1.0)
        below, above = (low - self.center) / spread, (high - self.center) / spread
        below[:, 1], above[:, 1] = -_FARTHEST, _FARTHEST
        return below.where(~fixed, 0.0).clamp_max(0.0), above.where(~fixed, 0.0).clamp_min(0.0)

    def __call__(self, xi: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        """f, `batch`, and its slope, `batch x (d + 4)`, at ξ, `batch x (d + 4)`.

        Args:
            xi: The points.
            which: The explanations that they belong to, `batch`.
        """
        likelihood, covariance, mean = self._packed
        rows, at, z = which.numpy(), self.natural(xi, which).numpy(), self.z.numpy()
        c, s, C, a = at[:, 0], at[:, 1], covariance[rows], mean[rows]
        shrink, n = np.exp(-s), len(z)
        z, level = shrink[:, None] * z, self.level * np.square(shrink) if self.level else None
        found = likelihood(at[:, 2:], z - c[:, None] * a, np.square(c)[:, None] * C, level)
        slope = np.empty_like(at)
        slope[:, 0] = 2.0 * c * (found.half * C).sum(-1) - (found.alpha * a).sum(-1)
        slope[:, 1] = n - found.along(z)
        if found.by_level is not None:
            slope[:, 1] -= 2.0 * found.by_level
        slope[:, 2:] = found.slope
        value = torch.from_numpy(found.value + n * s) + 0.5 * xi.square().sum(-1)
        return value, self.spread[which] * torch.from_numpy(slope) + xi

    @cached_property
    def _packed(self) -> tuple[PackedLikelihood, Floats, Floats]:
        """The likelihood of the data, C_e, `E x P`, and a_e, `E x n`."""
        likelihood = PackedLikelihood.at(self.kernel, self.X)
        return likelihood, packed(self.covariance), self.mean.numpy()

    def curvature(self) -> Floats:
        """Rough second derivatives of f, `E x (d + 4)`, from which a search starts."""
        n, d = len(self.z), self.X.shape[-1]
        rough = np.array([0.0, 2.0] + [_BY_LENGTHSCALE] * d + [_BY_OUTPUTSCALE, _BY_NOISE])
        of_data = np.repeat(n * rough[None], len(self.mean), axis=0)
        of_data[:, 0] = _BY_MEAN * np.square(self.mean.numpy()).sum(-1)
        found: Floats = 1.0 + np.square(self.spread.numpy()) * of_data
        return found

    def value(self, xi: Tensor, which: Tensor) -> Tensor:
        """f alone, in a third of the time."""
        x = self.natural(xi, which)
        _, level, residual, covariance = self._parts(x[:, 0], x[:, 1], which)
        X = self.X.expand(len(x), -1, -1)
        found = value_alone(self.kernel, x[:, 2:], X, residual, covariance=covariance, level=level)
        return found + len(self.z) * x[:, 1] + 0.5 * xi.square().sum(-1)

    def _parts(
        self, c: Tensor, s: Tensor, which: Tensor
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
        """z at the learned scale, λ in its units, z minus the prior mean, and c² C_e."""
        shrink = torch.exp(-s)
        z = shrink.unsqueeze(-1) * self.z
        level = self.level * shrink.square() if self.level else None
        residual = z - c.unsqueeze(-1) * self.mean[which]
        return z, level, residual, c.square()[:, None, None] * self.covariance[which]


def log_evidence(problem: Problem, xi: Tensor) -> Tensor:
    """log p(y_t | D_1:M, e) of all E explanations, from the minima ξ*, `E x (d + 4)`, of f."""
    E, p = xi.shape
    every = torch.arange(E)
    lower, upper = problem.bounds()
    value, slope = problem(xi, every)
    # Steps stay inside the bounds: one-sided differences at a bound.
    step = torch.where(xi + _STEP <= upper, _STEP, -_STEP)
    shifted = xi.unsqueeze(1) + torch.diag_embed(step)
    _, moved = problem(shifted.view(E * p, p), every.repeat_interleave(p))
    H = (moved.view(E, p, p) - slope.unsqueeze(1)) / step.unsqueeze(-1)
    H = 0.5 * (H + H.mT)
    held = ((xi <= lower + _AT_BOUND) & (slope > 0)) | ((xi >= upper - _AT_BOUND) & (slope < 0))
    # A coordinate at its bound is integrated by itself, and leaves the others alone.
    apart = held.unsqueeze(-1) | held.unsqueeze(-2)
    H = torch.where(apart, torch.zeros_like(H), H)
    H = torch.nan_to_num(H) + torch.diag_embed(held.double())
    curvature = torch.linalg.eigvalsh(H).clamp_min(_LEAST_CURVATURE)
    # ∫ exp(-|g| u - u²/2) du over u > 0, in units of √(2π).
    tail = torch.special.erfcx(slope.abs() / math.sqrt(2.0)).log() - math.log(2.0)
    occam = -0.5 * curvature.log().sum(-1) + tail.where(held, 0.0).sum(-1)
    # The prior of c is cut off at 0, and so is its posterior.
    inside = torch.special.log_ndtr((xi[:, 0] - lower[:, 0]) * H[:, 0, 0].clamp_min(1.0).sqrt())
    cut = inside.where(~held[:, 0], 0.0) - torch.special.log_ndtr(-lower[:, 0])
    evidence: Tensor = -value + occam + cut
    return evidence
