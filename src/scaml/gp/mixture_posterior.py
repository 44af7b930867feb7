"""The posterior of an average of Gaussian processes with unequal probabilities, for BoTorch.

BoTorch averages over the members of an ensemble, in dimension -3, with equal weights. So each member is
shown as often as its probability says: replica r of R is the member in whose share of [0, 1] the point
(r + ½) / R lies.
"""

from __future__ import annotations

import torch
from botorch.posteriors import GPyTorchPosterior
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

__all__ = ["REPLICAS", "MixturePosterior", "mixture_of"]

REPLICAS = 16
"""Members that a posterior shows; a probability is rounded to a multiple of 1/16 there."""


class MixturePosterior(GaussianMixturePosterior):
    """A mixture of joint normal distributions whose mixture moments are exact.

    Args:
        distribution: The replicas, `batch x REPLICAS x q`.
        mean: The mixture mean, `batch x q`.
        covariance: The mixture covariance, `batch x q x q`.
    """

    def __init__(self, distribution: MultivariateNormal, mean: Tensor, covariance: Tensor) -> None:
        # Not BoTorch's constructor: it asks GPyTorch for the variance, which raises small ones.
        GPyTorchPosterior.__init__(self, distribution=distribution)
        self._mean = distribution.mean.unsqueeze(-1)
        dense = distribution.lazy_covariance_matrix.to_dense()
        self._variance = dense.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        self._covariance_matrix = dense
        self._mixture_mean = mean.unsqueeze(-1)
        self._mixture_variance = covariance.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        self._mixture_covariance_matrix = covariance

    @property
    def variance(self) -> Tensor:
        """Of the replicas, `batch x REPLICAS x q x 1`."""
        variance: Tensor = self._variance
        return variance


def mixture_of(mean: Tensor, covariance: Tensor, probability: Tensor) -> MixturePosterior:
    """The posterior of E members.

    Args:
        mean: `batch x E x q`.
        covariance: `batch x E x q x q`.
        probability: `batch x E`, or E.
    """
    batch, q = mean.shape[:-2], mean.shape[-1]
    covariance = covariance.expand(*batch, -1, q, q)
    p = _as_deep(probability, mean)
    average = (p.unsqueeze(-1) * mean).sum(-2)
    apart = mean - average.unsqueeze(-2)
    spread = covariance + apart.unsqueeze(-1) * apart.unsqueeze(-2)
    mixed = (p[..., None, None] * spread).sum(-3)
    which = _replicas(p.expand(*batch, mean.shape[-2]))
    means = mean.gather(-2, which.unsqueeze(-1).expand(*which.shape, q))
    covariances = covariance.gather(-3, which[..., None, None].expand(*which.shape, q, q))
    return MixturePosterior(MultivariateNormal(means, to_linear_operator(covariances)), average, mixed)


def _as_deep(probability: Tensor, mean: Tensor) -> Tensor:
    """The probabilities with batch dimensions of size 1 added, as many as the mean has.

    Those of fantasies come first: a mean may have further ones behind them.
    """
    missing = mean.ndim - 1 - probability.ndim
    *batch, members = probability.shape
    return probability.view(*batch, *[1] * missing, members)


def _replicas(probability: Tensor) -> Tensor:
    """The members that are shown, `batch x REPLICAS`."""
    places = (torch.arange(REPLICAS, dtype=torch.float64) + 0.5) / REPLICAS
    until = probability.detach().cumsum(-1)[..., :-1].contiguous()
    return torch.searchsorted(until, places.expand(*until.shape[:-1], -1).contiguous())
