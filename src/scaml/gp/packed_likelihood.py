r"""The likelihood of one GP at several θ at once, in NumPy: the fast form of `gp.likelihood`.

The kernel matrices of one data set are symmetric, and their squared coordinate differences do not
depend on θ. So everything of size `n x n` is kept as its lower triangle, row by row: a packed matrix
has $P = n (n + 1) / 2$ entries, and a further point appends n + 1 of them. With the packed squares
$q_d$ of coordinate differences,

$$a_p = \sum_d e^{-2 \log \ell_d} q_{dp}, \qquad
\partial / \partial \log \ell_d = e^{-2 \log \ell_d} \sum_p H_p\, o W_p\, q_{dp},$$

where H is A with its diagonal halved, so that $\langle H, C \rangle = \tfrac12 \langle A, C \rangle$
for packed C. A NumPy operation takes a third of the time of a torch operation; only factorizations and
large products are torch's, whose LAPACK is faster and whose threads `one_thread` limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scaml.gp.kernels import KernelName
from scaml.gp.linalg import inverse_and_half_log_det

__all__ = ["PackedEvaluation", "PackedLikelihood", "packed", "product", "unpacked"]

_LOG_2PI = math.log(2.0 * math.pi)

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class PackedEvaluation(NamedTuple):
    """A batch of likelihoods; `value` is infinite where K is not positive definite."""

    value: Floats  # batch
    slope: Floats  # batch x (d + 2), with respect to (log ℓ, log o, log σ²)
    alpha: Floats  # batch x n
    half: Floats  # H, batch x P: A with its diagonal halved
    by_level: Floats | None = None  # batch, the slope with respect to log λ
    total: Floats | None = None  # batch, 1^T α without cancellation, where the level is unknown

    def along(self, z: Floats) -> Floats:
        """α^T z, `batch`, without the cancellation of a large mean of z where the level is unknown."""
        if self.total is None:
            found: Floats = (self.alpha * z).sum(-1)
            return found
        mean = z.mean(-1)
        along: Floats = (self.alpha * (z - mean[..., None])).sum(-1)
        return along + mean * self.total


@dataclass(frozen=True, eq=False)
class PackedLikelihood:
    """Likelihoods of values at n points.

    Args:
        kernel: The kernel's name.
        squares: `d x P`, squared coordinate differences of all pairs of points.
        points: n.
    """

    kernel: KernelName
    squares: Floats
    points: int

    @classmethod
    def at(cls, kernel: KernelName, X: Tensor) -> PackedLikelihood:
        """At the points X, `n x d`."""
        i, j = _pairs(len(X))
        x = X.numpy().T
        return cls(kernel, np.square(x[:, i] - x[:, j]), len(X))

    def __call__(
        self,
        theta: Floats,
        residual: Floats,
        covariance: Floats | None = None,
        level: Floats | None = None,
    ) -> PackedEvaluation:
        """Evaluate a batch of likelihoods.

        Args:
            theta: `batch x (d + 2)`: log lengthscales, log outputscale, log noise variance.
            residual: `batch x n`.
            covariance: C, `batch x P`, or None for zero.
            level: λ, `batch`, the variance of an unknown level; None for none.

        Returns:
            Value, slope, α and H, and the terms of the level.
        """
        n = self.points
        scale = np.exp(-2.0 * theta[:, :-2])
        signal_noise = np.exp(theta[:, -2:])
        outputscale, noise = signal_noise[:, :1], signal_noise[:, 1]
        R, W = _correlation_and_slope(self.kernel, product(scale, self.squares))
        R *= outputscale
        K = R.copy() if covariance is None else R + covariance
        at = _diagonal(n)
        K[:, at] += noise[:, None]
        inverse, half_log_det, failed = _factorized(K, n)
        mean = residual.mean(-1) if level is not None else np.zeros(len(theta))
        apart = residual - mean[:, None]
        columns = np.empty((len(theta), n, 2))
        columns[..., 0], columns[..., 1] = apart, 1.0
        solved = inverse @ columns
        alpha, u = solved[..., 0], solved[..., 1]
        half = inverse.reshape(len(theta), -1).take(_lower(n), 1)
        by_level = total = None
        if level is None:
            quadratic = (apart * alpha).sum(-1)
        else:
            t = np.maximum(u.sum(-1), 0.0)  # below 0 only where K is not positive definite
            kept = 1.0 / (1.0 + level * t)  # the share of a level that the data leave unknown
            tau, along = level * kept, (u * apart).sum(-1)
            alpha = alpha + (kept * mean - tau * along)[:, None] * u
            half -= _outer(np.sqrt(tau)[:, None] * u, n)
            total = kept * (mean * t + along)
            quadratic = (apart * alpha).sum(-1) + mean * total
            by_level = 0.5 * (tau * t - level * np.square(total))
            half_log_det = half_log_det + 0.5 * np.log1p(level * t)
        half -= _outer(alpha, n)
        half[:, at] *= 0.5
        value = 0.5 * quadratic + half_log_det + 0.5 * _LOG_2PI * n
        # Where the factorization failed, the value means nothing: infinity keeps the line search out.
        value[failed] = np.inf
        slope = np.empty_like(theta)
        slope[:, -1] = noise * half[:, at].sum(-1)
        R *= half
        slope[:, -2] = R.sum(-1)
        if W is not None:
            W *= half
            W *= outputscale
            R = W
        slope[:, :-2] = scale * product(R, self.squares.T)
        return PackedEvaluation(value, slope, alpha, half, by_level, total)


def packed(K: Tensor) -> Floats:
    """The lower triangles, `batch x P`, of symmetric matrices, `batch x n x n`."""
    found: Floats = K.numpy().reshape(len(K), K.shape[-1] ** 2).take(_lower(K.shape[-1]), 1)
    return found


def unpacked(K: Floats, n: int) -> Floats:
    """Symmetric matrices, `batch x n x n`, from their lower triangles, `batch x P`."""
    return K.take(_both(n), 1).reshape(len(K), n, n)


def product(a: Floats, b: Floats) -> Floats:
    """The matrix product a b, on as many threads as torch has."""
    found: Floats = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
    return found


def _factorized(K: Floats, n: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Inverses, half log determinants and which factorizations failed, of packed matrices."""
    full = torch.from_numpy(unpacked(K, n))
    inverse, half_log_det, info = inverse_and_half_log_det(full)
    return inverse.numpy(), half_log_det.numpy(), info.numpy() != 0


def _correlation_and_slope(kernel: KernelName, squared: Floats) -> tuple[Floats, Floats | None]:
    """R and W as in `kernels`; overwrites the squared distances. W is None where W = R."""
    if kernel == "se":
        squared *= -0.5
        return np.exp(squared, out=squared), None
    squared *= 5.0
    root = np.sqrt(squared)
    decay = np.exp(-root)
    root += 1.0
    root *= decay
    squared *= decay
    squared *= 1.0 / 3.0
    squared += root
    root *= 5.0 / 3.0
    return squared, root


def _outer(v: Floats, n: int) -> Floats:
    """v v^T, packed, `batch x P`, of vectors, `batch x n`."""
    i, j = _pairs(n)
    found: Floats = v.take(i, 1)
    found *= v.take(j, 1)
    return found


@lru_cache(maxsize=32)
def _pairs(n: int) -> tuple[Places, Places]:
    """Rows and columns of the entries of a packed matrix."""
    i, j = np.tril_indices(n)
    return i, j


@lru_cache(maxsize=32)
def _diagonal(n: int) -> Places:
    """The places of the diagonal in a packed matrix."""
    i = np.arange(n)
    return i * (i + 3) // 2


@lru_cache(maxsize=32)
def _lower(n: int) -> Places:
    """The places of the lower triangle in a flat `n x n` matrix."""
    i, j = _pairs(n)
    return i * n + j


@lru_cache(maxsize=32)
def _both(n: int) -> Places:
    """The place of each entry of a flat `n x n` symmetric matrix in the packed one."""
    high, low = (
        np.maximum.outer(np.arange(n), np.arange(n)),
        np.minimum.outer(np.arange(n), np.arange(n)),
    )
    return (high * (high + 1) // 2 + low).ravel()
