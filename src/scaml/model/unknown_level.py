r"""The unknown level of the test-task, given D_t.

A level of variance λ is a constant in the kernel. It can be a million times the rest of k, in which K
would lose its digits, so it stays outside K. With $L_t L_t^T = K$, $e = L_t^{-1} 1$ and
$\tau = \lambda / (1 + \lambda e^T e)$, the level has given D_t

- the mean $\beta = \tau\, e^T L_t^{-1} r$ with $r = z - m(X_t)$, and the variance τ.

Then $\alpha = K^{-1} (r - \beta 1)$, the mean of f_t gains β, and its covariance gains

$$\tau\, g(x)\, g(x'), \qquad g(x) = 1 - \psi(x)^T e, \quad \psi(x) = L_t^{-1} k(X_t, x).$$
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

__all__ = ["LevelGiven", "level_given"]


class LevelGiven(NamedTuple):
    """The level given D_t; without a level, β and τ are 0."""

    mean: Tensor  # β, `batch`
    variance: Tensor  # τ
    one: Tensor  # e, n

    def covariance(self, psi: Tensor, other: Tensor) -> Tensor:
        """What it adds to covariances, `batch x q x k`, at points with features ψ, `batch x q x n`."""
        left, right = (1.0 - part @ self.one.unsqueeze(-1) for part in (psi, other))
        return self.variance[..., None, None] * left @ right.mT

    def at_points(self, psi: Tensor) -> Tensor:
        """What it adds to variances, `batch`, at points with features ψ, `batch x n`."""
        return self.variance * (1.0 - psi @ self.one).square()


def level_given(root: Tensor, residual: Tensor, level: Tensor) -> tuple[LevelGiven, Tensor]:
    """The level, and r - β 1.

    Args:
        root: L_t^-1, `batch x n x n`.
        residual: r, `batch x n`.
        level: λ.
    """
    one = root.sum(-1)
    kept = 1.0 / (1.0 + level * one.square().sum(-1))
    tau = level * kept
    if not level > 0 or not residual.shape[-1]:
        return LevelGiven(residual.new_zeros(residual.shape[:-1]), tau, one), residual
    # The mean of r is taken apart: it can be large, and α does not see it.
    mean = residual.mean(-1)
    apart = residual - mean.unsqueeze(-1)
    along = tau * (one * (root @ apart.unsqueeze(-1)).squeeze(-1)).sum(-1)
    beta = (1.0 - kept) * mean + along
    return LevelGiven(beta, tau, one), apart + (kept * mean - along).unsqueeze(-1)
