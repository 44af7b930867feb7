r"""Theorem 1 at single points, for several vectors of weights at once, with its slope.

The posteriors of the past tasks are the same for every vector of weights $w_e$, and are the dear part.
So they are computed once, block by block of tasks in buffers of bounded size, and

$$m_e(x) = \sum_m w_{em} \mu_m(x), \quad v_e(x) = \sum_m w_{em}^2 \Sigma_m(x, x), \quad
c_e(x) = \sum_m w_{em}^2 \Sigma_m(x, X_t)$$

are summed up on the way. With $R_m$ the correlations and $u_m(x) = L_m^{-1} k_m(X_m, x)$,

$$\mu_m = u_m^T b_m, \quad \Sigma_m(x, x) = o_m - |u_m|^2, \quad
\Sigma_m(x, X_t) = o_m R_m(x, X_t) - u_m^T u_m(X_t).$$

The slope of a function of these three goes the same way backwards. From its derivatives
$\bar\mu_m = \sum_e w_{em} \bar m_e$, and $\bar v_m$ and $\bar c_m$ likewise with $w_{em}^2$,

$$\bar u_m = \bar\mu_m b_m - u_m(X_t) \bar c_m - 2 \bar v_m u_m, \qquad
\bar R_m(x, X_m) = o_m L_m^{-T} \bar u_m, \qquad \bar R_m(x, X_t) = o_m \bar c_m,$$

and $\bar x = -\ell_m^{-2} \sum_j \bar R_{mj} W_{mj} (x - x_j)$, with W the slope of the kernel (`kernels`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from scaml.gp.kernels import KernelName, correlation, correlation_and_slope, left_factor, right_factor
from scaml.gp.task_gps import TaskGPs

__all__ = ["Block", "OfPast", "PastAtPoints", "distance_slope", "scaled_points"]

_NUMBERS = 2**17  # in one buffer: what fits into a core's cache


class OfPast(NamedTuple):
    """The prior of Theorem 1 without its residual, or derivatives with respect to it, at S points."""

    mean: Tensor  # E x S
    variance: Tensor  # E x S
    covariance: Tensor  # E x S x n, with X_t


class Block(NamedTuple):
    """What the way back needs of a block of b tasks."""

    tasks: slice
    left: Tensor  # b x S x (d + 2), scaled points first
    slope: Tensor  # b x S x (N + n), W
    u: Tensor  # b x S x N


@dataclass(frozen=True, eq=False)
class PastAtPoints:
    """What the formulas need of M tasks and X_t, in standardized units."""

    kernel: KernelName
    inverse: Tensor  # M x 1 x d, 1 / ℓ_m
    right: Tensor  # M x (d + 2) x (N + n), factor of the squared distances to X_m and X_t
    points: Tensor  # M x (N + n) x (d + 1), scaled X_m and X_t, and 1
    whitener: Tensor  # M x N x N, o_m L_m^-1
    linear: Tensor  # M x N x (1 + n): b_m and -u_m(X_t)
    outputscale: Tensor  # M

    @classmethod
    def of(cls, tasks: TaskGPs, X: Tensor, u: Tensor) -> PastAtPoints:
        """From the past tasks, X_t, `n x d`, and $u_m(X_t)$, `n x M x N`."""
        M, N, D = tasks.X.shape
        widths = tasks.lengthscale.reciprocal().unsqueeze(1)
        points = X.new_zeros(M, N + len(X), D)
        torch.mul(tasks.X, widths, out=points[:, :N])
        torch.mul(X, widths[..., : tasks.d], out=points[:, N:, : tasks.d])
        right = right_factor(points)
        # Queries are 0 in the columns that only past tasks have, so these columns enter |b|² alone.
        right = torch.cat([right[..., : tasks.d], right[..., D:]], dim=-1)
        return cls(
            kernel=tasks.kernel,
            inverse=widths[..., : tasks.d],
            right=right.mT.contiguous(),
            points=scaled_points(points[..., : tasks.d]),
            whitener=tasks.whitener,
            linear=torch.cat([tasks.targets.unsqueeze(-1), -u.permute(1, 2, 0)], dim=-1),
            outputscale=tasks.outputscale,
        )

    def __call__(self, X: Tensor, weights: Tensor, kept: list[Block] | None = None) -> OfPast:
        """At `S x d`, for weights `E x M`; `kept` collects what `slope` needs."""
        E, squares = len(weights), weights.square()
        N, n = self.whitener.shape[-1], self.linear.shape[-1] - 1
        mean, variance = X.new_zeros(E, len(X)), X.new_zeros(E, len(X))
        covariance = X.new_zeros(E, len(X) * n)
        for tasks in self._blocks(len(X)):
            left = left_factor(X * self.inverse[tasks])
            squared = torch.matmul(left, self.right[tasks]).clamp_min_(0.0)
            if kept is None and self.kernel != "se":
                R, slope = correlation(self.kernel, squared), None
            else:
                R, slope = correlation_and_slope(self.kernel, squared)
            u = torch.matmul(R[..., :N], self.whitener[tasks].mT)
            linear = torch.matmul(u, self.linear[tasks])
            o = self.outputscale[tasks]
            mean.addmm_(weights[:, tasks], linear[..., 0])
            variance.addmm_(squares[:, tasks], o[:, None] - torch.linalg.vecdot(u, u))
            if n:
                near = torch.addcmul(linear[..., 1:], o[:, None, None], R[..., N:])
                covariance.addmm_(squares[:, tasks], near.flatten(1))
            if kept is not None:
                kept.append(Block(tasks, left, R if slope is None else slope, u))
        return OfPast(mean, variance, covariance.view(E, len(X), n))

    def slope(self, given: OfPast, weights: Tensor, kept: list[Block]) -> Tensor:
        """The slope, `S x d`, of a function with these derivatives, where `kept` was collected."""
        N, squares = self.whitener.shape[-1], weights.square()
        total = given.mean.new_zeros(given.mean.shape[-1], self.inverse.shape[-1])
        for tasks, left, slope, u in kept:
            mean = weights[:, tasks].mT @ given.mean
            variance = squares[:, tasks].mT @ given.variance
            covariance = (squares[:, tasks].mT @ given.covariance.flatten(1)).view(*mean.shape, -1)
            linear = torch.cat([mean.unsqueeze(-1), covariance], dim=-1)
            by_u = torch.mul(u, -2.0 * variance.unsqueeze(-1))
            by_u.baddbmm_(linear, self.linear[tasks].mT)
            by_R = torch.empty_like(slope)
            torch.matmul(by_u, self.whitener[tasks], out=by_R[..., :N])
            torch.mul(covariance, self.outputscale[tasks, None, None], out=by_R[..., N:])
            scaled = left[..., : total.shape[-1]]
            by_scaled = distance_slope(by_R.mul_(slope), scaled, self.points[tasks])
            total += (self.inverse[tasks] * by_scaled).sum(0)
        return total

    def _blocks(self, points: int) -> Iterator[slice]:
        """Tasks, so many at once that a buffer holds them."""
        tasks, columns = len(self.inverse), self.right.shape[-1]
        at_once = max(1, _NUMBERS // max(1, points * columns))
        for first in range(0, tasks, at_once):
            yield slice(first, min(first + at_once, tasks))


def scaled_points(a: Tensor) -> Tensor:
    """(a, 1), `batch x k x (d + 1)`, from scaled points."""
    return torch.cat([a, a.new_ones(()).expand(*a.shape[:-1], 1)], dim=-1)


def distance_slope(q: Tensor, a: Tensor, points: Tensor) -> Tensor:
    r"""$-\sum_j q_j (a - a_j)$, `batch x S x d`.

    Args:
        q: Derivatives with respect to the correlations times the slope of the kernel, `batch x S x k`.
        a: Scaled points, `batch x S x d`.
        points: `scaled_points` of the k others.
    """
    sums = torch.matmul(q, points)
    return torch.addcmul(sums[..., :-1], a, sums[..., -1:], value=-1.0)
