r"""The density of θ_t for one task's data, in NumPy: what the search of line 4 evaluates.

It is the same as `fit_theta.negative_log_posterior`, the reference, in a fraction of the time. What
does not depend on θ_t is prepared once, symmetric matrices are packed (`gp.packed_likelihood`), and
sums over the M past tasks are matrix products for all searches at once. With H of
`gp.packed_likelihood`,

$$\partial / \partial w_m = 2 w_m \langle H, \Sigma_m \rangle - \alpha^T \mu_m.$$
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scaml.gp.hyperpriors import Coefficients
from scaml.gp.packed_likelihood import PackedLikelihood, product
from scaml.model.hyperparameters import Coordinates, ThetaPriors

if TYPE_CHECKING:
    from scaml.gp.kernels import KernelName
    from scaml.model.fit_theta import Cache

__all__ = ["PackedPosterior"]

Floats = NDArray[np.float64]

# Rough curvatures of the likelihood per observation, on which the search's first steps are based:
# of log ℓ, log o and log σ², and of the mean, in units of z. Any values of this order do; measured on
# Branin, Hartmann 6, SVM and the families with a misleading past.
_BY_LENGTHSCALE, _BY_OUTPUTSCALE, _BY_NOISE = 0.1, 0.3, 0.1
_BY_MEAN = 3.0


@dataclass(frozen=True, eq=False)
class PackedPosterior:
    """-log p(y_t | D_1:M, θ_t) - log p(θ_t), up to a constant, at a batch of θ_t.

    Args:
        likelihood: Of the test data.
        z: n.
        mean: `n x M`, μ_m(X_t).
        covariance: `P x M`, Σ_m(X_t, X_t), packed.
        priors: p(θ_t).
        coordinates: The vector that is searched for.
        kernel: The prior of (log ℓ, log o, log σ²), by its coefficients.
    """

    likelihood: PackedLikelihood
    z: Floats
    mean: Floats
    covariance: Floats
    priors: ThetaPriors
    coordinates: Coordinates
    kernel: Coefficients[Floats]

    @classmethod
    def of(cls, kernel: KernelName, cache: Cache, priors: ThetaPriors) -> PackedPosterior:
        """For the test data and the meta-tasks' posteriors there."""
        d = cache.X.shape[-1]
        return cls(
            PackedLikelihood.at(kernel, cache.X),
            cache.z.numpy(),
            cache.mean.numpy().T,
            cache.covariance.numpy().T,
            priors,
            Coordinates.of(len(cache.mean), d, priors),
            priors.kernel.coefficients(d),
        )

    def __call__(self, x: Floats, sign: Floats | None) -> tuple[Floats, Floats]:
        """Values, `batch`, and slopes, `batch x size`.

        Args:
            x: `batch x size`.
            sign: `batch`, -1 where the past is mirrored; None for the paper's model.
        """
        w, c, s, theta = self._split(x)
        signed = w if sign is None else sign[:, None] * w
        z, level = self._at_scale(s, len(x))
        covariance = product(np.square(w), self.covariance.T)
        found = self.likelihood(theta, z - signed @ self.mean.T, covariance, level)
        log_prior, by_w, by_c = self.priors.weights.evaluate(w, c)
        slope = np.empty_like(x)
        by_weight, by_common, by_scale, by_kernel = self._split(slope)
        by_mean = found.alpha @ self.mean
        if sign is not None:
            by_mean *= sign[:, None]
        np.multiply(product(found.half, self.covariance), 2.0 * w, out=by_weight)
        by_weight -= by_mean
        by_weight -= by_w
        if by_common is not None and by_c is not None:
            by_common[:] = -by_c
        value, by_kernel[:] = self._with_kernel_prior(found.value, found.slope, theta)
        value -= log_prior
        if s is not None and by_scale is not None:
            n, spread = len(self.z), self.priors.spread
            by_scale[:] = n - found.along(z) + s / spread**2
            if found.by_level is not None:
                by_scale -= 2.0 * found.by_level
            value += n * s + 0.5 * np.square(s / spread)
        if sign is not None:
            mirrored = self.priors.weights.mirrored
            value -= math.log(mirrored / (1.0 - mirrored)) * (sign < 0)
        return value, slope

    def _split(self, x: Floats) -> tuple[Floats, Floats | None, Floats | None, Floats]:
        """Views of w, c, s and (log ℓ, log o, log σ²)."""
        tasks, common, scale = self.coordinates.tasks, self.coordinates.common, self.coordinates.scale
        c = x[:, tasks] if common else None
        s = x[:, tasks + common] if scale else None
        return x[:, :tasks], c, s, x[:, tasks + common + scale :]

    def _at_scale(self, s: Floats | None, batch: int) -> tuple[Floats, Floats | None]:
        """z at the learned scale, `batch x n`, and λ in its units, `batch`."""
        level = np.full(batch, self.priors.level) if self.priors.level else None
        if s is None:
            return np.broadcast_to(self.z, (batch, len(self.z))), level
        shrink = np.exp(-s)
        return shrink[:, None] * self.z, None if level is None else level * np.square(shrink)

    def _with_kernel_prior(self, value: Floats, slope: Floats, theta: Floats) -> tuple[Floats, Floats]:
        prior, e = self.kernel, np.exp(theta)
        away = theta - prior.mean
        pull = prior.precision * away
        log_prior = prior.linear * theta - prior.rate * e - 0.5 * pull * away + prior.constant
        return value - log_prior.sum(-1), slope - (prior.linear - prior.rate * e - pull)

    def metric(self, x: Floats, free: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        """A rough inverse Hessian at x on the free coordinates.

        The prior's curvature by w and c is an arrow: diagonal but for the row of c. It is far larger
        than that of the likelihood, unless M is small, and no diagonal metric does it justice.
        """
        tasks, d = self.coordinates.tasks, self.coordinates.d
        w, c, s, _ = self._split(x)
        bends, crossed, common = self.priors.weights.curvature(w, c)
        of_mean = _BY_MEAN * np.square(self.mean).sum(0)
        diagonal = np.where(free[:, :tasks], bends + of_mean, 1.0)
        n, rest = len(self.z), x.shape[1] - tasks - (c is not None)
        others = np.empty(rest)
        if s is not None:
            others[0] = 2.0 * n + self.priors.spread**-2
        likelihood = np.array([_BY_LENGTHSCALE] * d + [_BY_OUTPUTSCALE, _BY_NOISE])
        others[-d - 2 :] = n * likelihood + self.kernel.precision
        if crossed is not None and common is not None:
            crossed = np.where(free[:, :tasks], crossed, 0.0) / diagonal
            common = common - (np.square(crossed) * diagonal).sum(-1)

        def multiplied(v: Floats) -> Floats:
            out = np.empty_like(v)
            if crossed is not None and common is not None:
                out[:, tasks] = (v[:, tasks] - (crossed * v[:, :tasks]).sum(-1)) / common
                out[:, :tasks] = v[:, :tasks] / diagonal - crossed * out[:, tasks, None]
            else:
                np.divide(v[:, :tasks], diagonal, out=out[:, :tasks])
            out[:, -rest:] = v[:, -rest:] / others
            return out

        return multiplied
