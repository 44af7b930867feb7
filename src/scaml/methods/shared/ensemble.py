r"""`Ensemble`: the sum of weighted task GPs and of the test-task's own GP, all independent.

$$\mu(x) = \sum_m w_m \mu_m(x) + w_t \mu_t(x), \qquad
\Sigma(x, x') = \sum_m w_m^2 \Sigma_m(x, x') + s_t^2 \Sigma_t(x, x')$$

The first sum of each is the prior of Theorem 1 without its residual, which `ScaMLGP` without data
computes. Methods that propagate means alone leave out the first sum of the covariance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scaml.gp.moments_model import MomentsModel
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.past_parts import PastParts
from scaml.model.scaml_gp import ScaMLGP
from scaml.tasks.task import Task

__all__ = ["Ensemble"]


class Ensemble(MomentsModel):
    """The sum of task GPs and of the test-task's GP, in the units of the test-task.

    Args:
        task_gps: The meta-tasks' posteriors.
        own: The GP of the test data alone.
        weights: w_m, M.
        own_weight: w_t.
        own_spread: s_t; w_t by default.
        means_alone: Whether the meta-tasks add to the mean only.
    """

    def __init__(
        self,
        task_gps: TaskGPs,
        own: ScaMLGP,
        weights: Tensor,
        own_weight: float,
        *,
        own_spread: float | None = None,
        means_alone: bool = False,
    ) -> None:
        super().__init__(Units(own.y_offset, own.y_scale), own.noise)
        self.task_gps = task_gps
        self.own = own
        self.weights = weights
        self.own_weight = own_weight
        self.own_spread = own_weight if own_spread is None else own_spread
        self.means_alone = means_alone
        self._past = _weighted(task_gps, weights)

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        past_mean, past_covariance = self._past.moments(X)
        mean, covariance = self.own.moments(X)
        covariance = self.own_spread**2 * covariance
        if not self.means_alone:
            covariance = covariance + past_covariance
        return past_mean + self.own_weight * mean, covariance

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        covariance = self.own_spread**2 * self.own.cross(X, Z)
        return covariance if self.means_alone else covariance + self._past.cross(X, Z)

    def past_parts(self) -> PastParts:
        """The terms of both sums, in the units of y."""

        def rest(X: Tensor) -> tuple[Tensor, Tensor]:
            mean, variance = self.own.moments(X.unsqueeze(-2))
            return self.own_weight * mean.squeeze(-1), self.own_spread**2 * variance.reshape(-1)

        return PastParts(
            self.task_gps,
            self.weights,
            self.units,
            rest,
            of_prior=False,
            means_alone=self.means_alone,
        )


def _weighted(task_gps: TaskGPs, weights: Tensor) -> ScaMLGP:
    """Σ w_m f_m: Theorem 1's prior with a residual of variance 0."""
    zero, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    residual = torch.ones(task_gps.d, dtype=torch.float64)
    theta = Hyperparameters(weights.double(), residual, zero, one)
    return ScaMLGP(task_gps, Task.empty(d=task_gps.d), Units(zero, one), theta)
