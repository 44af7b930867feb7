"""The upper confidence bound, the acquisition function of the paper."""

from __future__ import annotations

import torch
from botorch.acquisition import UpperConfidenceBound as BoTorchUCB
from botorch.models.model import Model
from torch import Tensor

from scaml.model.protocols import AverageModel, MarginalModel, PointModel

__all__ = ["SQRT_BETA", "UpperConfidenceBound"]

SQRT_BETA = 3.0  # the paper's
_LEAST = 1e-300  # variance


class UpperConfidenceBound(BoTorchUCB):
    """mean + √β standard deviation, in any unit of y.

    BoTorch raises variances to at least 1e-12, which is too much where y is of the order of 1e-6. A
    `MarginalModel` is asked for mean and variance without a posterior around them, which saves a tenth
    of a search's time.
    """

    def __init__(self, model: Model, sqrt_beta: float = SQRT_BETA) -> None:
        # BoTorch would keep β in float32, and values at points and at rows of a table would differ.
        super().__init__(model, beta=torch.tensor(sqrt_beta**2, dtype=torch.float64))

    @property
    def by_moments(self) -> bool:
        """Whether mean and variance at a point are all that a value needs."""
        if self.posterior_transform is not None:
            return False
        return isinstance(self.model, AverageModel) or not self.model.batch_shape

    @property
    def exploration(self) -> float:
        """√β."""
        return float(float(self.beta) ** 0.5)

    def of_moments(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The values, n, from mean and variance, n each, or `n x E` for the members of an average."""
        # Not the root of β σ²: its gradient is NaN at β = 0.
        value: Tensor = mean + self.beta.sqrt() * variance.sqrt()
        return value @ self.model.probability if isinstance(self.model, AverageModel) else value

    @property
    def has_slope(self) -> bool:
        """Whether the model knows the slopes of its moments, and they are all that a value needs."""
        return isinstance(self.model, PointModel) and self.by_moments

    def value_and_slope(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""Values, n, and slopes, `n x d`, at single points, `n x d`.

        By $\partial \alpha / \partial \mu_e = p_e$ and
        $\partial \alpha / \partial \sigma_e^2 = p_e \sqrt\beta / 2 \sigma_e$.
        """
        mean, variance, back = self.model.point_moments().with_slope(X)
        p = self.model.probability if isinstance(self.model, AverageModel) else mean.new_ones(1)
        deviation = variance.clamp_min(_LEAST).sqrt()
        root = float(self.beta.sqrt())
        value = (mean[..., 0] + root * deviation) @ p
        slope = back(p[:, None].expand_as(mean), 0.5 * root * p / deviation)
        return value, slope

    def forward(self, X: Tensor) -> Tensor:
        """The value, `batch`, at `batch x 1 x d`; of an average, that of its members' values."""
        if isinstance(self.model, AverageModel) and self.posterior_transform is None:
            mean, variance = self.model.marginal(X)
            return self.of_moments(mean, variance.clamp_min(_LEAST))
        value: Tensor = super().forward(X)
        return value

    def _mean_and_sigma(
        self, X: Tensor, compute_sigma: bool = True, min_var: float = _LEAST
    ) -> tuple[Tensor, Tensor | None]:
        marginal = isinstance(self.model, MarginalModel)
        if marginal and compute_sigma and self.posterior_transform is None:
            mean, variance = self.model.marginal(X)
            return mean, variance.clamp_min(min_var).sqrt()
        mean_and_sigma: tuple[Tensor, Tensor | None] = super()._mean_and_sigma(
            X, compute_sigma=compute_sigma, min_var=min_var
        )
        return mean_and_sigma
