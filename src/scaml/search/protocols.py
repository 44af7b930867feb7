"""What a search asks of an acquisition function, beyond BoTorch's `AcquisitionFunction`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from botorch.models.model import Model
from torch import Tensor

__all__ = ["Explores", "HasBestPoints", "OfMoments", "Sloped"]


@runtime_checkable
class OfMoments(Protocol):
    """Has a value wherever mean and variance of its model are known: at the rows of a table."""

    model: Model

    @property
    def by_moments(self) -> bool:
        """Whether that holds for this model and these settings."""

    def of_moments(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Values, n, from the moments that the model's `on_table` gives."""


@runtime_checkable
class Sloped(Protocol):
    """Knows its slope in closed form, which a search uses instead of autograd."""

    @property
    def has_slope(self) -> bool:
        """Whether that holds for this model and these settings."""

    def value_and_slope(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Values, n, and slopes, `n x d`, at single points, `n x d`."""


@runtime_checkable
class HasBestPoints(Protocol):
    """Knows points beside which its maximum may lie, in peaks too narrow for raw points to hit."""

    best_points: Tensor  # k x d


@runtime_checkable
class Explores(Protocol):
    """Knows the √β from which a bolder UCB starts where this function repeats a point."""

    @property
    def exploration(self) -> float:
        """√β."""
