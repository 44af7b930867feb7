r"""What every past task adds to the prior of the new one, and its shares of the whole.

By Theorem 1 the prior at the learned weights has, in standardized units, mean and variance

$$m(x) = \sum_m w_m \mu_m(x), \qquad v(x) = k_t(x, x) + \sum_m w_m^2 \Sigma_m(x, x).$$

The share of the variance is the average over the space of $w_m^2 \Sigma_m(x, x)$ over that of v(x); the
residual kernel has the rest. The terms of the mean can cancel, so that no share of the sum says how
much a task matters. The share of the mean is therefore one of the distances by which the tasks move it:

$$E_x |w_m \mu_m(x)| \Big/ \sum_j E_x |w_j \mu_j(x)|.$$

Sums of GPs as RGPE and SGPT make them have the same parts, with the GP of the new data in place of the
residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.common.parallel import one_thread
from scaml.gp.task_gps import TaskGPs
from scaml.methods.shared.ensemble import Ensemble
from scaml.model.scaml_gp import ScaMLGP

__all__ = ["Parts", "Shares", "weights_of"]

_AT_ONCE = 128  # points


@dataclass(frozen=True, eq=False)
class Parts:
    """The sum that a model is, part by part, in the units of y.

    Args:
        task_gps: The meta-tasks' posteriors.
        weights: M.
        offset: What the parts of the mean are added to.
        scale: Of y.
        own: The model of what the past does not explain: the sum itself, or the GP of the new data.
    """

    task_gps: TaskGPs
    weights: Tensor
    offset: float
    scale: float
    own: ScaMLGP | Ensemble

    @classmethod
    def of(cls, model: Model) -> Parts | None:
        """The parts of a model; None if it is no weighted sum of task GPs."""
        if isinstance(model, ScaMLGP) and len(model.weights):
            offset, scale = float(model.y_offset), float(model.y_scale)
            return cls(model.task_gps, model.weights, offset, scale, model)
        if isinstance(model, Ensemble):
            offset, scale = float(model.units.offset), float(model.units.scale)
            return cls(model.task_gps, model.weights, offset, scale, model)
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the past tasks."""
        return self.task_gps.names

    @property
    def is_prior(self) -> bool:
        """Whether the parts make up a prior, rather than the prediction itself."""
        return isinstance(self.own, ScaMLGP)

    @property
    def rest(self) -> str:
        """What to call the part that is no past task."""
        return "not explained by the past" if self.is_prior else "the new data alone"

    def means(self, X: Tensor) -> Tensor:
        """`(M + 1) x n` terms of the mean at `n x d`, the last of what is no past task."""
        with torch.no_grad(), one_thread():
            return torch.cat([self._means(part) for part in X.split(_AT_ONCE)], dim=-1)

    def variances(self, X: Tensor) -> Tensor:
        """`(M + 1) x n` terms of the variance at `n x d`, the last of what is no past task."""
        with torch.no_grad(), one_thread():
            return torch.cat([self._variances(part) for part in X.split(_AT_ONCE)], dim=-1)

    @cached_property
    def _active(self) -> Tensor:
        """Tasks of weight 0 add nothing, and need not be asked."""
        return self.weights.nonzero().flatten()

    @cached_property
    def _asked(self) -> TaskGPs:
        return self.task_gps.subset(self._active.tolist())

    def _means(self, X: Tensor) -> Tensor:
        parts = torch.zeros(len(self.weights) + 1, len(X), dtype=torch.float64)
        if len(self._active):
            parts[self._active] = self.weights[self._active].unsqueeze(-1) * self._asked.mean(X)
        if isinstance(self.own, Ensemble):
            mean, _ = self.own.own.moments(X.unsqueeze(-2))
            parts[-1] = self.own.own_weight * mean.squeeze(-1)
        return self.scale * parts

    def _variances(self, X: Tensor) -> Tensor:
        parts = torch.zeros(len(self.weights) + 1, len(X), dtype=torch.float64)
        if len(self._active) and not (isinstance(self.own, Ensemble) and self.own.means_alone):
            squares = self.weights[self._active].square().unsqueeze(-1)
            parts[self._active] = squares * self._asked.variance(X)
        if isinstance(self.own, Ensemble):
            _, variance = self.own.own.moments(X.unsqueeze(-2))
            parts[-1] = self.own.own_spread**2 * variance.reshape(-1)
        else:
            parts[-1] = self.own.outputscale + self.own.level
        return self.scale**2 * parts


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the past tasks, M + 1 each: the last is of what is no past task.

    They add up to 1, or are all 0 where there is nothing to share.
    """

    mean: Tensor
    variance: Tensor

    @classmethod
    def of(cls, parts: Parts, X: Tensor) -> Shares:
        """Averages over points, `n x d`, that stand for the space."""
        return cls(_shares(parts.means(X).abs()), _shares(parts.variances(X)))


def _shares(parts: Tensor) -> Tensor:
    average = parts.mean(-1)
    total = average.sum()
    return average / total if total > 0 else torch.zeros_like(average)


def weights_of(model: Model, names: tuple[str, ...]) -> Tensor | None:
    """The weights of the past tasks, M; None for a model that has none."""
    weights = getattr(model, "weights", None)
    if not isinstance(weights, Tensor) or not names or weights.shape != (len(names),):
        return None
    return weights.detach()
