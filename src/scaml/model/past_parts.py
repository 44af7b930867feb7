r"""A model as a sum over past tasks, part by part, in the units of y.

By Theorem 1 the prior at the learned weights has, in standardized units, mean and variance

$$m(x) = \sum_m w_m \mu_m(x), \qquad v(x) = k_t(x, x) + \sum_m w_m^2 \Sigma_m(x, x).$$

Its parts are the terms of these sums. Ensembles such as RGPE and SGPT have the same parts, with the GP
of the new data in place of the residual kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from scaml.common.parallel import one_thread
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units

__all__ = ["PastParts"]

_CHUNK = 128  # points at once


@dataclass(frozen=True, eq=False)
class PastParts:
    """The terms of the past tasks, and the rest.

    Args:
        task_gps: The meta-tasks' posteriors.
        weights: M.
        units: Offset and scale of y: the terms of the mean add up to the distance from the offset.
        rest: Mean and variance, n each, standardized, of what is no past task, at `n x d`.
        of_prior: Whether the parts add up to a prior; if not, to the prediction itself.
        means_alone: Whether the past tasks add to the mean only.
    """

    task_gps: TaskGPs
    weights: Tensor
    units: Units
    rest: Callable[[Tensor], tuple[Tensor, Tensor]]
    of_prior: bool
    means_alone: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the past tasks."""
        return self.task_gps.names

    def means(self, X: Tensor) -> Tensor:
        """`(M + 1) x n` terms of the mean at `n x d`; the last is the rest."""
        with torch.no_grad(), one_thread():
            return torch.cat([self._means(part) for part in X.split(_CHUNK)], dim=-1)

    def variances(self, X: Tensor) -> Tensor:
        """`(M + 1) x n` terms of the variance at `n x d`; the last is the rest."""
        with torch.no_grad(), one_thread():
            return torch.cat([self._variances(part) for part in X.split(_CHUNK)], dim=-1)

    @cached_property
    def _active(self) -> Tensor:
        """Tasks with a weight: those of weight 0 add nothing and are not computed."""
        return self.weights.nonzero().flatten()

    @cached_property
    def _active_gps(self) -> TaskGPs:
        return self.task_gps.subset(self._active.tolist())

    def _means(self, X: Tensor) -> Tensor:
        parts = torch.zeros(len(self.weights) + 1, len(X), dtype=torch.float64)
        if len(self._active):
            parts[self._active] = self.weights[self._active].unsqueeze(-1) * self._active_gps.mean(X)
        parts[-1] = self.rest(X)[0]
        return self.units.scale * parts

    def _variances(self, X: Tensor) -> Tensor:
        parts = torch.zeros(len(self.weights) + 1, len(X), dtype=torch.float64)
        if len(self._active) and not self.means_alone:
            squares = self.weights[self._active].square().unsqueeze(-1)
            parts[self._active] = squares * self._active_gps.variance(X)
        parts[-1] = self.rest(X)[1]
        return self.units.scale**2 * parts
