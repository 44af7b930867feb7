r"""Mean and variance of `ScaMLGP` at single points: a search asks for thousands of them.

One product and one pass give every kernel matrix in the formulas of `scaml_gp`: the points of meta-task
m and of the test-task are the columns of one array. So

$$\mu_t(x) = \sum_m u_m(x)^T b_m + k(x, X_t) \gamma, \qquad
\sigma_t^2(x) = k_t(x, x) + \sum_m (w_m^2 k_m(x, x) - |u_m(x)|^2) - |L_t^{-1} k(X_t, x)|^2$$

and their gradients cost less than through the general formulas. The level adds β to the mean and
$\tau g(x)^2$ to the variance (`unknown_level`). Fantasies, which are several vectors of values at X_t,
differ in γ and β alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scaml.gp.kernels import KernelName, correlation, left_factor, right_factor
from scaml.gp.task_gps import TaskGPs
from scaml.model.unknown_level import LevelGiven

__all__ = ["Marginal"]


@dataclass(frozen=True, eq=False)
class Marginal:
    """What mean and variance at a point need, in standardized units.

    M counts the tasks with a weight. K counts the stationary kernels: theirs and those of the residual.
    """

    kernel: KernelName
    inverse: Tensor  # K x 1 x d, inverse lengthscales, the residual's last
    right: Tensor  # K x (N + n) x (d + 2), factor of the squared distances to X_m and X_t
    whitener: Tensor  # M x N x N, with the weights
    linear: Tensor  # M x N x (1 + n): b_m and φ_m(X_t)
    scales: Tensor  # K, of the stationary kernels
    gamma: Tensor  # s x n, of s vectors of values at X_t
    root: Tensor  # n x n, L_t^-1
    level: LevelGiven

    @classmethod
    def of(
        cls,
        tasks: TaskGPs,
        X: Tensor,
        *,
        inverse: Tensor,
        scales: Tensor,
        phi: Tensor,
        gamma: Tensor,
        root: Tensor,
        level: LevelGiven,
    ) -> Marginal:
        """From the weighted tasks, X_t (`n x d`) and what `ScaMLGP` keeps of them."""
        M, N, D = tasks.X.shape
        widths = torch.zeros(len(inverse), 1, D, dtype=X.dtype)
        widths[:M, 0] = tasks.lengthscale.reciprocal()
        widths[M:, 0, : tasks.d] = inverse[M:]
        points = torch.zeros(len(inverse), N + len(X), D, dtype=X.dtype)
        points[:M, :N] = tasks.X
        points[:, N:, : tasks.d] = X
        right = right_factor(points * widths)
        # Queries are 0 in the columns that only past tasks have, so these columns enter |b|² alone.
        right = torch.cat([right[..., : tasks.d], right[..., D:]], dim=-1)
        linear = (
            torch.cat([tasks.targets.flatten()[None], phi])
            .view(1 + len(X), M, N)
            .permute(1, 2, 0)
            .contiguous()
        )
        return cls(
            kernel=tasks.kernel,
            inverse=inverse.unsqueeze(1),
            right=right,
            whitener=tasks.whitener,
            linear=linear,
            scales=scales,
            gamma=gamma,
            root=root,
            level=level,
        )

    def __call__(self, X: Tensor, floor: float = 0.0) -> tuple[Tensor, Tensor]:
        """Means, `n x s`, and variance, n, at `n x d`; differentiable.

        Args:
            X: The points.
            floor: The least variance without that of the level.
        """
        M, N, _ = self.whitener.shape
        squared = torch.matmul(left_factor(X * self.inverse), self.right.mT).clamp_min_(0.0)
        R = correlation(self.kernel, squared)
        u = torch.matmul(R[:M, :, :N], self.whitener.mT)
        linear = torch.matmul(u, self.linear).sum(0)
        stationary = torch.tensordot(self.scales, R[:, :, N:], dims=1)
        covariance = stationary - linear[:, 1:]  # k(x, X_t)
        mean = linear[:, :1] + covariance @ self.gamma.mT + self.level.mean
        further = covariance @ self.root.mT
        gained = u.square().sum((0, 2)) + further.square().sum(-1)
        variance = (self.scales.sum() - gained).clamp_min(floor)
        return mean, variance + self.level.at_points(further)
