"""Mean and standard deviation of any model at points."""

from __future__ import annotations

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.common.parallel import one_thread
from scaml.gp.posterior import mean_and_variance
from scaml.model.protocols import AverageModel, MarginalModel

__all__ = ["BAND", "moments", "predicts_values"]

BAND = 2.0
"""Standard deviations on either side of the mean that a band or a ± shows."""
_AT_ONCE = 256  # points per call of the model: measured for the acquisition function, more is no faster


def predicts_values(model: Model) -> bool:
    """Whether a model predicts y itself, not a rank or a score of y."""
    return bool(getattr(model, "predicts_y", True))


def moments(model: Model, X: Tensor) -> tuple[Tensor, Tensor]:
    """Posterior mean and standard deviation, n each, at `n x d`, in the units of y.

    Of an ensemble, those of the mixture of its members.
    """
    with torch.no_grad(), one_thread():
        found = [_at_points(model, part.unsqueeze(-2)) for part in X.split(_AT_ONCE)]
        mean = torch.cat([mean.reshape(-1) for mean, _ in found])
        variance = torch.cat([variance.reshape(-1) for _, variance in found])
    return mean, variance.clamp_min(0.0).sqrt()


def _at_points(model: Model, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance at `n x 1 x d`, of n values each.

    Only models without marginals are asked for a posterior: the first distribution of GPyTorch makes
    torch import SymPy, which takes half a second.
    """
    if isinstance(model, AverageModel):
        means, variances = model.marginal(X)
        p = model.probability
        mean = means @ p
        return mean, (variances + (means - mean.unsqueeze(-1)).square()) @ p
    if isinstance(model, MarginalModel):
        return model.marginal(X)
    return mean_and_variance(model.posterior(X))
