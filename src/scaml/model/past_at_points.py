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

and from there through the kernels (`point_kernels`) to x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from scaml.gp.task_gps import TaskGPs
from scaml.model.point_kernels import PointKernels, features, towards

__all__ = ["Block", "OfPast", "PastAtPoints"]

_NUMBERS = 2**17  # in one buffer: what fits into a core's cache


class OfPast(NamedTuple):
    """The prior of Theorem 1 without its residual, or derivatives with respect to it, at S points."""

    mean: Tensor  # E x S
    variance: Tensor  # E x S
    covariance: Tensor  # E x S x n, with X_t


class Block(NamedTuple):
    """What the way back needs of a block of b tasks."""

    tasks: slice
    slope: Tensor  # b x S x (N + n), of the kernel
    u: Tensor  # b x S x N


@dataclass(frozen=True, eq=False)
class PastAtPoints:
    """What the formulas need of M tasks and X_t, in standardized units."""

    kernels: PointKernels  # of each task, to X_m and X_t
    whitener: Tensor  # M x N x N, o_m L_m^-1
    linear: Tensor  # M x N x (1 + n): b_m and -u_m(X_t)
    linear_t: Tensor  # its transpose
    outputscale: Tensor  # M

    @classmethod
    def of(cls, tasks: TaskGPs, X: Tensor, u: Tensor) -> PastAtPoints:
        """From the past tasks, X_t, `n x d`, and $u_m(X_t)$, `n x M x N`."""
        M, N, D = tasks.X.shape
        points = X.new_zeros(M, N + len(X), D)
        points[:, :N] = tasks.X
        points[:, N:, : tasks.d] = X
        linear = torch.cat([tasks.targets.unsqueeze(-1), -u.permute(1, 2, 0)], dim=-1)
        return cls(
            kernels=PointKernels.of(tasks.kernel, tasks.lengthscale.reciprocal(), points, tasks.d),
            whitener=tasks.whitener,
            linear=linear,
            linear_t=linear.mT.contiguous(),
            outputscale=tasks.outputscale,
        )

    def __call__(self, X: Tensor, weights: Tensor, kept: list[Block] | None = None) -> OfPast:
        """At `S x d`, for weights `E x M`; `kept` collects what `slope` needs."""
        E, squares = len(weights), weights.square()
        N, n = self.whitener.shape[-1], self.linear.shape[-1] - 1
        mean, variance = X.new_zeros(E, len(X)), X.new_zeros(E, len(X))
        covariance = X.new_zeros(E, len(X) * n)
        phi = features(X)
        for tasks in self._blocks(len(X)):
            R, slope = self.kernels.at(phi, tasks)
            u = torch.bmm(R[..., :N], self.whitener[tasks].mT)
            linear = torch.bmm(u, self.linear[tasks])
            o = self.outputscale[tasks]
            mean.addmm_(weights[:, tasks], linear[..., 0])
            variance.addmm_(squares[:, tasks], o[:, None] - u.square().sum(-1))
            if n:
                near = torch.addcmul(linear[..., 1:], o[:, None, None], R[..., N:])
                covariance.addmm_(squares[:, tasks], near.flatten(1))
            if kept is not None:
                kept.append(Block(tasks, slope, u))
        return OfPast(mean, variance, covariance.view(E, len(X), n))

    def slope(self, X: Tensor, given: OfPast, weights: Tensor, kept: list[Block]) -> Tensor:
        """The slope, `S x d`, of a function with these derivatives, where `kept` was collected."""
        N, squares = self.whitener.shape[-1], weights.square()
        total = X.new_zeros(len(X), 2 * X.shape[-1])
        for tasks, slope, u in kept:
            mean = weights[:, tasks].mT @ given.mean
            variance = squares[:, tasks].mT @ given.variance
            covariance = (squares[:, tasks].mT @ given.covariance.flatten(1)).view(*mean.shape, -1)
            linear = torch.cat([mean.unsqueeze(-1), covariance], dim=-1)
            by_u = torch.mul(u, -2.0 * variance.unsqueeze(-1))
            by_u.baddbmm_(linear, self.linear_t[tasks])
            by_R = torch.bmm(by_u, self.whitener[tasks]).mul_(slope[..., :N])
            backward = self.kernels.backward[tasks]
            sums = torch.bmm(by_R, backward[:, :N])
            by_R = (covariance * self.outputscale[tasks, None, None]).mul_(slope[..., N:])
            total += sums.baddbmm_(by_R, backward[:, N:]).sum(0)
        return towards(X, total)

    def _blocks(self, points: int) -> Iterator[slice]:
        """Tasks, so many at once that a buffer holds them."""
        tasks, _, columns = self.kernels.forward.shape
        at_once = max(1, _NUMBERS // max(1, points * columns))
        for first in range(0, tasks, at_once):
            yield slice(first, min(first + at_once, tasks))
