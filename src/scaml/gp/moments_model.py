r"""`MomentsModel`: a Gaussian process, given by its mean and covariance functions, as a BoTorch model.

A subclass implements the mean and covariance functions only. This class adds posteriors in the units
of y, and the exact update by further observations (fantasies, the other points of a batch):

$$\mu(x) + k(x, X) K^{-1} (y - \mu(X)), \qquad k(x, x') - k(x, X) K^{-1} k(X, x').$$
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import FantasizeMixin, Model
from botorch.posteriors import Posterior
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from scaml.gp.linalg import cholesky, inverse_of_lower
from scaml.gp.posterior import LEAST_VARIANCE, check_outputs, likelihood_of, posterior_of
from scaml.gp.units import Units

__all__ = ["MomentsModel"]


class MomentsModel(Model, FantasizeMixin):
    """A single-output Gaussian process; inputs and outputs are in the units of y.

    It computes in float64 on the CPU: `.to()` does not change it.

    Args:
        units: Offset and scale of y.
        noise: Variance of the observation noise, standardized.
    """

    def __init__(self, units: Units, noise: Tensor) -> None:
        super().__init__()
        self.units = units
        self.noise = noise
        self.eval()

    @abstractmethod
    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean, `batch x q`, and covariance, `batch x q x q`, at `batch x q x d`, standardized."""

    @abstractmethod
    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        """Covariances, `batch x q x k`, between `batch x q x d` and `batch x k x d`, standardized."""

    def marginal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and variance, each `batch x 1`, at `batch x 1 x d`, in the units of y."""
        mean, covariance = self.moments(X.double())
        variance = covariance.squeeze(-1).clamp_min(LEAST_VARIANCE)
        return self.units.offset + self.units.scale * mean, self.units.scale.square() * variance

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The joint posterior at X, in the units of y.

        Args:
            X: `batch x q x d`.
            output_indices: None or [0], the only output.
            observation_noise: True adds the noise; a tensor, `batch x q x 1`, is added as noise
                variance in the units of y².
            posterior_transform: Applied last.

        Returns:
            A posterior over `batch x q x 1`.
        """
        check_outputs(output_indices)
        mean, covariance = self.moments(X.double())
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        covariance = covariance + torch.diag_embed(variance.clamp_min(LEAST_VARIANCE) - variance)
        return posterior_of(
            (mean, covariance),
            self.units,
            self.noise,
            X=X,
            observation_noise=observation_noise,
            posterior_transform=posterior_transform,
        )

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any
    ) -> MomentsModel:
        """This process conditioned on further observations; hyperparameters stay as they are.

        Args:
            X: `batch x n x d`.
            Y: `batch' x n x 1`, where batch' ends in batch.
            noise: Noise variances of Y in the units of y²; None for the model's own noise.
            **kwargs: Ignored; BoTorch's signature has them.
        """
        y = (Y.double().squeeze(-1) - self.units.offset) / self.units.scale
        extra = self.noise if noise is None else noise.squeeze(-1) / self.units.scale.square()
        return _Updated(self, X.double(), y, extra.expand(X.shape[:-1]))

    def subset_output(self, idcs: list[int]) -> MomentsModel:
        """The model itself, which has only one output."""
        check_outputs(idcs)
        return self

    @property
    def likelihood(self) -> GaussianLikelihood:
        """The observation noise in the units of y, in the form that BoTorch expects."""
        return likelihood_of(self.noise * self.units.scale.square())

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """The batch of the fantasies; empty for a fitted model."""
        return torch.Size()

    def _apply(self, fn: Any, recurse: bool = True) -> MomentsModel:
        # BoTorch calls model.to(X); in float32 the factorizations of a GP are not accurate enough.
        return self


class _Updated(MomentsModel):
    """A process conditioned on further observations."""

    def __init__(self, before: MomentsModel, X: Tensor, z: Tensor, noise: Tensor) -> None:
        super().__init__(before.units, before.noise)
        self._before = before
        self._X = X
        mean, covariance = before.moments(X)
        L = cholesky(covariance + torch.diag_embed(noise), "the new observations")
        self._root = inverse_of_lower(L)
        self._whitened = (self._root @ (z - mean).unsqueeze(-1)).squeeze(-1)

    def _features(self, X: Tensor) -> Tensor:
        features: Tensor = self._before.cross(X, _as_deep(self._X, X)) @ self._root.mT
        return features

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        mean, covariance = self._before.moments(X)
        further = self._features(X)
        gained = (further @ self._whitened.unsqueeze(-1)).squeeze(-1)
        covariance = covariance - further @ further.mT
        mean = mean + gained
        return mean, covariance.expand(*mean.shape, mean.shape[-1])

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        return self._before.cross(X, Z) - self._features(X) @ self._features(Z).mT

    @property
    def batch_shape(self) -> torch.Size:
        shape: torch.Size = self._whitened.shape[:-1]
        return shape


def _as_deep(points: Tensor, X: Tensor) -> Tensor:
    """The points with batch dimensions of size 1 added in front, as many as X has."""
    return points.view(*[1] * (X.ndim - points.ndim), *points.shape)
