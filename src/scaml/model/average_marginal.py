r"""Means and variances of all members of an `AverageGP` at single points.

The members differ in weights, residual kernel, noise, level and scale. The posteriors $\mu_m, \Sigma_m$
of the past tasks are the same in all of them, and are the dear part. So they are computed once, and
Theorem 1 and equation 1 are applied to all members together. With $\Sigma_m(x, X_t)$ as rows of one
matrix, that is a product with the `E x M` weights and their squares:

$$\mu_e(x) = \sum_m w_{em} \mu_m(x), \qquad
k_e(x, X_t) = k_{t,e}(x, X_t) + \sum_m w_{em}^2 \Sigma_m(x, X_t).$$
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from scaml.gp.kernels import KernelName, correlation, left_factor, right_factor
from scaml.model.unknown_level import LevelGiven

if TYPE_CHECKING:
    from scaml.model.scaml_gp import ScaMLGP

__all__ = ["AverageMarginal", "Observed"]


class Observed(NamedTuple):
    """What equation 1 keeps of D_t, in standardized units."""

    X: Tensor  # `n x d`
    alpha: Tensor  # `batch x n`
    root: Tensor  # L_t^-1, `n x n`
    level: LevelGiven
    floor: float  # least variance


@dataclass(frozen=True, eq=False)
class AverageMarginal:
    """What means and variances at a point need, in standardized units.

    M counts the tasks that have a weight in some member, E the members.
    """

    kernel: KernelName
    inverse: Tensor  # (M + E) x 1 x d, inverse lengthscales, the residuals' last
    past: Tensor  # M x (N + n) x (d + 2), factor of the squared distances to X_m and X_t
    own: Tensor  # E x n x (d + 2), the same of the residuals' to X_t
    whitener: Tensor  # M x N x N
    linear: Tensor  # M x N x (1 + n): targets and features of X_t
    outputscale: Tensor  # M
    weights: Tensor  # E x M
    residual: Tensor  # E, o
    gamma: Tensor  # E x s x n, of s vectors of values at X_t
    root: Tensor  # E x n x n, L_t^-1
    level_mean: Tensor  # E x 1 x s
    level_variance: Tensor  # E x 1
    level_one: Tensor  # E x n x 1
    floor: Tensor  # E x 1, least variances
    offset: Tensor  # E x 1
    scale: Tensor  # E x 1

    @classmethod
    def of(cls, members: Sequence[ScaMLGP]) -> AverageMarginal:
        """From members with the same past tasks and the same X_t, `n x d`."""
        first = members[0]
        weights = torch.stack([member.weights for member in members])
        active = weights.any(0).nonzero().flatten()
        tasks = first.task_gps.subset(active.tolist())
        given = [member.observed for member in members]
        X = given[0].X
        M, _, D = tasks.X.shape
        widths = tasks.lengthscale.reciprocal().unsqueeze(1)
        points = torch.cat([tasks.X, torch.nn.functional.pad(X, (0, D - tasks.d)).expand(M, -1, -1)], 1)
        right = right_factor(points * widths)
        own = torch.stack([member.lengthscale.reciprocal() for member in members]).unsqueeze(1)
        phi = tasks.whiten(X)  # n x M x N
        return cls(
            kernel=tasks.kernel,
            inverse=torch.cat([widths[..., : tasks.d], own]),
            # Queries are 0 in the columns that only past tasks have, which enter |b|² alone.
            past=torch.cat([right[..., : tasks.d], right[..., D:]], dim=-1),
            own=right_factor(X * own),
            whitener=tasks.whitener,
            linear=torch.cat([tasks.targets.unsqueeze(-1), phi.permute(1, 2, 0)], dim=-1).contiguous(),
            outputscale=tasks.outputscale,
            weights=weights[:, active],
            residual=torch.stack([member.outputscale for member in members]),
            gamma=torch.stack([torch.atleast_2d(one.alpha) for one in given]),
            root=torch.stack([one.root for one in given]),
            level_mean=torch.stack([torch.atleast_1d(one.level.mean)[None] for one in given]),
            level_variance=torch.stack([one.level.variance.reshape(1) for one in given]),
            level_one=torch.stack([one.level.one.unsqueeze(-1) for one in given]),
            floor=torch.tensor([[one.floor] for one in given], dtype=X.dtype),
            offset=torch.stack([member.y_offset.reshape(1) for member in members]),
            scale=torch.stack([member.y_scale.reshape(1) for member in members]),
        )

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means, `n x E x s`, and variances, `n x E`, at `n x d`, in the units of y; differentiable."""
        M, N, _ = self.whitener.shape
        left = left_factor(X * self.inverse)
        R = correlation(self.kernel, torch.matmul(left[:M], self.past.mT).clamp_min_(0.0))
        u = torch.matmul(R[..., :N], self.whitener.mT)
        linear = torch.matmul(u, self.linear)
        # Σ_m(x, X_t) and Σ_m(x, x) of all past tasks, `M x q x n` and `M x q`.
        covariance = self.outputscale[:, None, None] * R[..., N:] - linear[..., 1:]
        variance = self.outputscale[:, None] - u.square().sum(-1)
        squares = self.weights.square()
        near = correlation(self.kernel, torch.matmul(left[M:], self.own.mT).clamp_min_(0.0))
        near = self.residual[:, None, None] * near
        near = near + (squares @ covariance.flatten(1)).view_as(near)
        mean = (self.weights @ linear[..., 0]).unsqueeze(-1) + near @ self.gamma.mT + self.level_mean
        further = near @ self.root.mT
        total = self.residual[:, None] + squares @ variance - further.square().sum(-1)
        level = (1.0 - (further @ self.level_one).squeeze(-1)).square()
        total = torch.maximum(total, self.floor) + self.level_variance * level
        mean = self.offset.unsqueeze(-1) + self.scale.unsqueeze(-1) * mean
        return mean.transpose(0, 1), (self.scale.square() * total).mT
