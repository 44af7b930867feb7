r"""Shares of the past tasks in the prior of the new one.

With the terms of Theorem 1 (`model.past_parts`), a task's share of the variance is the average of
$w_m^2 \Sigma_m(x, x)$ over the space, divided by the average of the whole variance; the rest is the
share of the residual kernel. Terms of the mean can cancel, so their shares are computed from absolute
values:

$$E_x |w_m \mu_m(x)| \Big/ \sum_j E_x |w_j \mu_j(x)|.$$
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.model.past_parts import PastParts
from scaml.model.protocols import SumOverPast

__all__ = ["Shares", "past_parts_of"]


def past_parts_of(model: Model) -> PastParts | None:
    """The parts of a model; None if it is not a weighted sum of past tasks' GPs."""
    return model.past_parts() if isinstance(model, SumOverPast) else None


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the past tasks, M + 1 each; the last entry is the rest.

    They add up to 1, or are all 0 if the total is 0.
    """

    mean: Tensor
    variance: Tensor

    @classmethod
    def of(cls, parts: PastParts, X: Tensor) -> Shares:
        """Averages over points, `n x d`, that stand for the space."""
        return cls(_shares(parts.means(X).abs()), _shares(parts.variances(X)))


def _shares(parts: Tensor) -> Tensor:
    average = parts.mean(-1)
    total = average.sum()
    return average / total if total > 0 else torch.zeros_like(average)
