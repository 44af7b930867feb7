r"""The past tasks at X_t: line 3 of Algorithm 1, computed once for all models of one test-task.

The members of an average, and a model that knows values of f at X_t (fantasies), share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs
from scaml.model.past_at_points import PastAtPoints

__all__ = ["PastAtData"]


@dataclass(frozen=True, eq=False)
class PastAtData:
    """M meta-tasks at X_t, `batch x n x d`, in standardized units."""

    tasks: TaskGPs
    X: Tensor
    u: Tensor  # batch x n x M x N, u_m(X_t)
    mean: Tensor  # M x batch x n, μ_m(X_t)
    covariance: Tensor  # M x batch x n x n, Σ_m(X_t, X_t)

    @classmethod
    def of(cls, tasks: TaskGPs, X: Tensor) -> PastAtData:
        """Of all these tasks."""
        u = tasks.whiten(X)
        inverse = tasks.lengthscale[:, : tasks.d].reciprocal()
        a = X * inverse.view(len(tasks), *[1] * (X.ndim - 1), tasks.d)
        o = tasks.outputscale.view(-1, *[1] * X.ndim)
        first = u.movedim(-2, 0)
        covariance = o * correlation(tasks.kernel, squared_distance(a, a)) - first @ first.mT
        mean = torch.einsum("...mn,mn->...m", u, tasks.targets).movedim(-1, 0)
        return cls(tasks, X, u, mean, covariance)

    def subset(self, chosen: Sequence[int]) -> PastAtData:
        """Of some of the tasks, in the given order."""
        if list(chosen) == list(range(len(self.tasks))):
            return self
        index = list(chosen)
        return PastAtData(
            self.tasks.subset(index),
            self.X,
            self.u[..., index, :],
            self.mean[index],
            self.covariance[index],
        )

    @cached_property
    def points(self) -> PastAtPoints:
        """The past tasks at single points beside one X_t, `n x d`."""
        with torch.inference_mode(False):  # the tensors outlive the caller's inference mode
            return PastAtPoints.of(self.tasks, self.X, self.u)
