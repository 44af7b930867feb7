r"""Equations 8 and 9: the likelihood of all data, and how it decomposes.

$$\log p(y_t, y_{1:M}) = \log p(y_t \mid D_{1:M}, \theta_t) + \sum_m \log p(y_m \mid \theta_m).$$

The first term is a normal density with the mean and covariance of Theorem 1. These are the reference
forms; `fit_theta.negative_log_posterior` computes the first term from cached posteriors, with its
gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.theorem1 import prior_covariance, prior_mean
from scaml.tasks.meta_data import MetaData

__all__ = ["joint_log_likelihood", "log_likelihood_of_meta_tasks", "log_likelihood_of_test_task"]


def joint_log_likelihood(
    meta: MetaData, tasks: TaskGPs, theta: Hyperparameters, X: Tensor, z: Tensor
) -> Tensor:
    """The right side of equation 8, of standardized values: linear in the number of meta-tasks."""
    return (
        log_likelihood_of_test_task(tasks, theta, X, z)
        + log_likelihood_of_meta_tasks(meta, tasks).sum()
    )


def log_likelihood_of_test_task(tasks: TaskGPs, theta: Hyperparameters, X: Tensor, z: Tensor) -> Tensor:
    """log p(y_t | D_1:M, θ_t), what equation 9 maximizes, at X, `n x d`, and z, n."""
    noise = theta.noise * torch.eye(len(z), dtype=torch.float64)
    mean, covariance = prior_mean(tasks, theta, X), prior_covariance(tasks, theta, X)
    density: Tensor = MultivariateNormal(mean, covariance + noise).log_prob(z)
    return density


def log_likelihood_of_meta_tasks(meta: MetaData, tasks: TaskGPs) -> Tensor:
    """log p(y_m | θ_m) of every meta-task, M."""
    densities = []
    for m, task in enumerate(meta):
        a = tasks.X[m, : task.n] / tasks.lengthscale[m]
        K = tasks.outputscale[m] * correlation(tasks.kernel, squared_distance(a, a))
        K = K + tasks.noise[m] * torch.eye(task.n, dtype=torch.float64)
        z = (task.y - tasks.y_mean[m]) / tasks.y_std[m]
        densities.append(MultivariateNormal(torch.zeros_like(z), K).log_prob(z))
    return torch.stack(densities)
