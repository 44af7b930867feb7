"""Posteriors in the units of y, for BoTorch's acquisition functions."""

from __future__ import annotations

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.posteriors import GPyTorchPosterior, Posterior
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from linear_operator import to_linear_operator
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.units import Units

__all__ = [
    "LEAST_VARIANCE",
    "ScaMLPosterior",
    "check_outputs",
    "likelihood_of",
    "mean_and_variance",
    "posterior_of",
]

LEAST_VARIANCE = 1e-12
"""The smallest posterior variance, relative to the prior variance: below it is only rounding error."""


class ScaMLPosterior(GPyTorchPosterior):
    """A joint normal distribution whose variance is exact in any unit of y.

    GPyTorch raises variances below 1e-10 to 1e-10, with a warning. Whether a variance is that small
    depends on the unit of y only.
    """

    @property
    def variance(self) -> Tensor:
        covariance: Tensor = self.distribution.lazy_covariance_matrix.to_dense()
        return covariance.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)


def posterior_of(
    moments: tuple[Tensor, Tensor],
    units: Units,
    noise: Tensor,
    *,
    X: Tensor,
    observation_noise: bool | Tensor = False,
    posterior_transform: PosteriorTransform | None = None,
) -> Posterior:
    """A posterior over `batch x q x 1`.

    Args:
        moments: Mean, `batch x q`, and covariance, `batch x q x q`, standardized.
        units: Offset and scale of y.
        noise: Variance of the observation noise, standardized.
        X: The points of the moments, for the transform.
        observation_noise: True adds the noise; a tensor, `batch x q x 1`, is added as noise variance
            in the units of y².
        posterior_transform: Applied last.
    """
    mean, covariance = moments
    variance = units.scale.square()
    covariance = (covariance * variance).expand(*mean.shape, mean.shape[-1])
    if isinstance(observation_noise, Tensor):
        covariance = covariance + torch.diag_embed(observation_noise.squeeze(-1).expand(mean.shape))
    elif observation_noise:
        covariance = covariance + torch.diag_embed((noise * variance).expand(mean.shape))
    normal = MultivariateNormal(units.offset + units.scale * mean, to_linear_operator(covariance))
    posterior = ScaMLPosterior(normal)
    return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)


def mean_and_variance(posterior: Posterior) -> tuple[Tensor, Tensor]:
    """Mean and variance, `batch x q x 1` each, of a model or of the mixture that an ensemble is."""
    if isinstance(posterior, GaussianMixturePosterior):
        return posterior.mixture_mean, posterior.mixture_variance
    return posterior.mean, posterior.variance


def likelihood_of(variance: Tensor) -> GaussianLikelihood:
    """Observation noise of a given variance, in the form that GPyTorch expects."""
    likelihood = GaussianLikelihood(noise_constraint=Positive()).double()
    likelihood.noise = variance
    return likelihood.eval().requires_grad_(False)


def check_outputs(indices: list[int] | None) -> None:
    """Refuse indices of outputs that a single-output model does not have."""
    if indices is not None and any(i not in (0, -1) for i in indices):
        raise SettingError(f"The outputs are {indices}, but the model has one output; ask for [0].")
