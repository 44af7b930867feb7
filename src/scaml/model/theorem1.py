r"""Theorem 1: the prior of the test-task given the meta-data (equation 6).

$$m(x) = \sum_m w_m \mu_m(x), \qquad k(x, x') = k_t(x, x') + \sum_m w_m^2 \Sigma_m(x, x').$$

This is the reference form, as the theorem states it. `ScaMLGP` computes the same prior through
whitened features, `PastAtPoints` at single points, `table_cache` at the rows of a table: all are tested
against it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs
from scaml.model.hyperparameters import Hyperparameters

__all__ = ["prior_covariance", "prior_mean", "residual_kernel"]


def prior_mean(tasks: TaskGPs, theta: Hyperparameters, X: Tensor) -> Tensor:
    """m(x), `batch x q`, standardized, at X, `batch x q x d`."""
    mean: Tensor = torch.tensordot(theta.weights, tasks.mean(X), dims=1)
    return mean


def prior_covariance(
    tasks: TaskGPs, theta: Hyperparameters, X: Tensor, Z: Tensor | None = None
) -> Tensor:
    """k(x, z), `batch x q x k`, standardized.

    Args:
        tasks: The meta-tasks' posteriors.
        theta: θ_t.
        X: `batch x q x d`.
        Z: `batch x k x d`; X itself by default.
    """
    past: Tensor = torch.tensordot(theta.weights.square(), tasks.covariance(X, Z), dims=1)
    return residual_kernel(tasks, theta, X, X if Z is None else Z) + past


def residual_kernel(tasks: TaskGPs, theta: Hyperparameters, X: Tensor, Z: Tensor) -> Tensor:
    """k_t(x, z), `batch x q x k`; our level is a constant in it."""
    R = correlation(tasks.kernel, squared_distance(X / theta.lengthscale, Z / theta.lengthscale))
    return theta.outputscale * R + theta.level
