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
        mean = 0.0 if self.total is None else z.sum(-1, keepdims=True) / z.shape[-1]
        along: Floats = (self.alpha * (z - mean)).sum(-1)
        if self.total is not None:
            along += np.reshape(mean, np.shape(mean)[:-1]) * self.total
        return along


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
        n, batch = self.points, len(theta)
        scale, outputscale, noise = (
            np.exp(-2.0 * theta[:, :-2]),
            np.exp(theta[:, -2]),
            np.exp(theta[:, -1]),
        )
        R, W = _correlation_and_slope(self.kernel, product(scale, self.squares))
        R *= outputscale[:, None]
        K = torch.from_numpy(unpacked(R if covariance is None else R + covariance, n))
        K.diagonal(dim1=-2, dim2=-1).add_(torch.from_numpy(noise).unsqueeze(-1))
        inverse, half_log_det, info = inverse_and_half_log_det(K)
        columns = np.ones((batch, n, 2))
        mean = np.zeros(batch) if level is None else residual.sum(-1) / n
        columns[..., 0] = residual - mean[:, None]
        # α and, where the level is unknown, u √τ: what is taken off K^-1.
        off = inverse.numpy() @ columns
        quadratic, more, by_level, total = _taken_off(off, columns[..., 0], mean, level)
        alpha = off[..., 0]
        off_A = torch.from_numpy(off)
        A = torch.baddbmm(inverse, off_A, off_A.mT, alpha=-1.0)
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        slope = np.empty_like(theta)
        slope[:, -1] = 0.5 * noise * diagonal.sum(-1).numpy()
        diagonal.mul_(0.5)
        half = packed(A)
        value = 0.5 * quadratic + half_log_det.numpy() + more + 0.5 * _LOG_2PI * n
        # Where the factorization failed, the value means nothing: infinity keeps the line search out.
        value[info.numpy() != 0] = np.inf
        R *= half
        slope[:, -2] = R.sum(-1)
        if W is not None:
            W *= half
            W *= outputscale[:, None]
            R = W
        slope[:, :-2] = scale * product(R, self.squares.T)
        return PackedEvaluation(value, slope, alpha, half, by_level, total)


def _taken_off(
    off: Floats, apart: Floats, mean: Floats, level: Floats | None
) -> tuple[Floats, Floats | float, Floats | None, Floats | None]:
    """r^T α, the change of ½ log det K by the level, its slope, and 1^T α.

    Args:
        off: K^-1 times the residual without its mean and times 1, `batch x n x 2`; becomes α and u √τ.
        apart: The residual without its mean, `batch x n`.
        mean: That mean, `batch`.
        level: λ, `batch`; None for none.
    """
    alpha, u = off[..., 0], off[..., 1]
    if level is None:
        u[:] = 0.0
        return (apart * alpha).sum(-1), 0.0, None, None
    t = np.maximum(u.sum(-1), 0.0)  # below 0 only where K is not positive definite
    kept = 1.0 / (1.0 + level * t)  # the share of a level that the data leave unknown
    tau, along = level * kept, (u * apart).sum(-1)
    alpha += (kept * mean - tau * along)[:, None] * u
    total = kept * (mean * t + along)
    quadratic = (apart * alpha).sum(-1) + mean * total
    u *= np.sqrt(tau)[:, None]
    return quadratic, 0.5 * np.log1p(level * t), 0.5 * (tau * t - level * np.square(total)), total


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


@lru_cache(maxsize=32)
def _pairs(n: int) -> tuple[Places, Places]:
    """Rows and columns of the entries of a packed matrix."""
    i, j = np.tril_indices(n)
    return i, j


@lru_cache(maxsize=32)
def _lower(n: int) -> Places:
    """The places of the lower triangle in a flat `n x n` matrix."""
    i, j = _pairs(n)
    return i * n + j


@lru_cache(maxsize=32)
def _both(n: int) -> Places:
    """The place of each entry of a flat `n x n` symmetric matrix in the packed one."""
    i, j = np.indices((n, n))
    places: Places = np.where(i >= j, i * (i + 1) // 2 + j, j * (j + 1) // 2 + i).ravel()
    return places
