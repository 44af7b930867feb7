r"""Lemma 1: the joint kernel over all tasks (equation 5), as a dense GP.

$$k\big((x, \nu), (x', \nu')\big) = \delta_{\nu = t}\, \delta_{\nu' = t}\, k_t(x, x')
+ \sum_m g_m(\nu)\, g_m(\nu')\, k_m(x, x'), \qquad
g_m(\nu) = \begin{cases} w_m & \nu = t \\ 1 & \nu = m \\ 0 & \text{else.} \end{cases}$$

Its cost is cubic in the number of all points. It is for small data, and the reference that Theorem 1
and the decomposition of the likelihood are tested against.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.linalg import cholesky
from scaml.gp.task_gps import TaskGPs
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.theorem1 import residual_kernel
from scaml.tasks.meta_data import MetaData

__all__ = ["JointGP", "joint_kernel"]


def joint_kernel(
    tasks: TaskGPs, theta: Hyperparameters, left: tuple[Tensor, int], right: tuple[Tensor, int]
) -> Tensor:
    """k((x, ν), (z, μ)), `n x k`: the kernel of Lemma 1.

    Args:
        tasks: The kernels k_m of the meta-tasks.
        theta: The weights and the residual kernel k_t.
        left: x, `n x D`, and ν, the number of its task; M is that of the test-task t.
        right: z, `k x D`, and μ.
    """
    (X, nu), (Z, mu), t, d = left, right, len(tasks), tasks.d
    K = torch.zeros(len(X), len(Z), dtype=torch.float64)
    if nu == mu == t:
        K += residual_kernel(tasks, theta, X[:, :d], Z[:, :d])
    for m in range(t):
        g = [theta.weights[m] if task == t else float(task == m) for task in (nu, mu)]
        inverse = tasks.lengthscale[m].reciprocal()
        R = correlation(tasks.kernel, squared_distance(X * inverse, Z * inverse))
        K += g[0] * g[1] * tasks.outputscale[m] * R
    return K


@dataclass(frozen=True, eq=False)
class JointGP:
    """The GP of all meta-tasks and the test-task together, in standardized units.

    Args:
        meta: The meta-data, as their GPs have seen them.
        tasks: Kernels and noise of the meta-tasks.
        theta: θ_t.
        X: `n x d`, the inputs of the test-task.
        z: n, its standardized values.
    """

    meta: MetaData
    tasks: TaskGPs
    theta: Hyperparameters
    X: Tensor
    z: Tensor

    def kernel(self, X: Tensor, nu: int, Z: Tensor, mu: int) -> Tensor:
        """`joint_kernel` of these tasks."""
        return joint_kernel(self.tasks, self.theta, (X, nu), (Z, mu))

    def _blocks(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Inputs, `n x D`, standardized values and noise variance of every task, the test-task last."""
        tasks = self.tasks
        meta = [
            (tasks.X[m, : task.n], (task.y - tasks.y_mean[m]) / tasks.y_std[m], tasks.noise[m])
            for m, task in enumerate(self.meta)
        ]
        return [*meta, (self._padded(self.X), self.z, self.theta.noise)]

    def _padded(self, X: Tensor) -> Tensor:
        """Points of the new space are 0 in the columns that only meta-tasks have."""
        return torch.nn.functional.pad(X, (0, self.tasks.X.shape[-1] - self.tasks.d))

    def gram(self) -> Tensor:
        """The kernel matrix of all data, with noise."""
        blocks = list(enumerate(self._blocks()))
        rows = [
            torch.cat([self.kernel(A, i, B, j) for j, (B, _, _) in blocks], 1) for i, (A, *_) in blocks
        ]
        noise = torch.cat([noise.expand(len(z)) for _, (_, z, noise) in blocks])
        return torch.cat(rows) + noise.diag()

    def posterior(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean, q, and covariance, `q x q`, of f_t at `q x d`, given all data (equation 1)."""
        t, X, blocks = len(self.tasks), self._padded(X), self._blocks()
        cross = torch.cat([self.kernel(A, i, X, t) for i, (A, _, _) in enumerate(blocks)])
        z = torch.cat([z for _, z, _ in blocks])
        solved = torch.cholesky_solve(cross, cholesky(self.gram(), "all tasks"))
        return solved.T @ z, self.kernel(X, t, X, t) - cross.T @ solved

    def log_likelihood(self) -> Tensor:
        """log p(y_t, y_1:M), of standardized values: the left side of equation 8."""
        z = torch.cat([z for _, z, _ in self._blocks()])
        density: Tensor = MultivariateNormal(torch.zeros_like(z), self.gram()).log_prob(z)
        return density
