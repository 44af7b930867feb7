"""Mean and standard deviation of any model at points."""

from __future__ import annotations

import torch
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from torch import Tensor

from scaml.common.parallel import one_thread

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
        posteriors = [model.posterior(part.unsqueeze(-2)) for part in X.split(_AT_ONCE)]
        found = [_mean_and_variance(posterior) for posterior in posteriors]
        mean, variance = (
            torch.cat([one.reshape(-1) for one in part]) for part in zip(*found, strict=True)
        )
    return mean, variance.clamp_min(0.0).sqrt()


def _mean_and_variance(posterior: Posterior) -> tuple[Tensor, Tensor]:
    if isinstance(posterior, GaussianMixturePosterior):
        return posterior.mixture_mean, posterior.mixture_variance
    return posterior.mean, posterior.variance
