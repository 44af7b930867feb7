"""Mean and standard deviation of any model at points, and of ScaML-GP before it has seen new data."""

from __future__ import annotations

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.common.parallel import one_thread
from scaml.gp.units import Units
from scaml.model.scaml_gp import ScaMLGP
from scaml.tasks.task import Task

__all__ = ["BAND", "before_data", "moments"]

BAND = 2.0
"""Standard deviations on either side that a band or a ± shows."""
_AT_ONCE = 256  # points: measured for the acquisition function, more is no faster


def moments(model: Model, X: Tensor) -> tuple[Tensor, Tensor]:
    """Posterior mean and standard deviation, n each, at `n x d`, in the units of y."""
    with torch.no_grad(), one_thread():
        posteriors = [model.posterior(part.unsqueeze(-2)) for part in X.split(_AT_ONCE)]
        mean = torch.cat([posterior.mean.reshape(-1) for posterior in posteriors])
        variance = torch.cat([posterior.variance.reshape(-1) for posterior in posteriors])
    return mean, variance.clamp_min(0.0).sqrt()


def before_data(model: ScaMLGP) -> ScaMLGP:
    """The prior of Theorem 1 at the learned weights: the same model, told nothing of the test data."""
    units = Units(model.y_offset, model.y_scale)
    nothing = Task.empty(d=model.lengthscale.shape[-1])
    return ScaMLGP(model.task_gps, nothing, units, model.hyperparameters)
