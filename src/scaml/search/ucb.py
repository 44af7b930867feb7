"""The upper confidence bound, the acquisition function of the paper."""

from __future__ import annotations

from botorch.acquisition import UpperConfidenceBound as BoTorchUCB
from botorch.models.model import Model
from torch import Tensor

from scaml.gp.moments_model import MomentsModel
from scaml.model.scaml_gp import ScaMLGP

__all__ = ["SQRT_BETA", "UpperConfidenceBound"]

SQRT_BETA = 3.0  # the paper's


class UpperConfidenceBound(BoTorchUCB):
    """mean + √β standard deviation, in any unit of y.

    BoTorch lifts variances to 1e-12, which is a lot where y is counted in millionths. Of our own
    models it takes mean and variance without the posterior around them: a tenth of a search's time.
    """

    def __init__(self, model: Model, sqrt_beta: float = SQRT_BETA) -> None:
        super().__init__(model, beta=sqrt_beta**2)

    def of_moments(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The value where mean and variance are known."""
        value: Tensor = mean + (self.beta * variance).sqrt()
        return value

    def _mean_and_sigma(
        self, X: Tensor, compute_sigma: bool = True, min_var: float = 1e-300
    ) -> tuple[Tensor, Tensor | None]:
        ours = isinstance(self.model, ScaMLGP | MomentsModel)
        if ours and compute_sigma and self.posterior_transform is None:
            mean, variance = self.model.marginal(X)
            return mean, variance.clamp_min(min_var).sqrt()
        mean_and_sigma: tuple[Tensor, Tensor | None] = super()._mean_and_sigma(
            X, compute_sigma=compute_sigma, min_var=min_var
        )
        return mean_and_sigma
