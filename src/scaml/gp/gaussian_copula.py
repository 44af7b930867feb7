r"""The Gaussian copula of a task's values: each y is replaced by the normal quantile of its rank.

$$z = \Phi^{-1}(F(y)), \qquad F \text{ clipped to } [\delta_N, 1 - \delta_N], \qquad
\delta_N = \frac{1}{4 N^{1/4} \sqrt{\pi \ln N}},$$

with F the empirical distribution function of the N values. Liu, Lafferty and Wasserman (2009) chose
this δ_N; Salinas, Shen and Perrone (2020) use it, too. z increases with y. It does not change if y is
replaced by an increasing function of y, such as y in another unit.

Without ties F is rank / N, as in the definition. Tied values get the mean of their ranks. The
definition gives them the largest rank, so that every point of a constant task would be its best one;
with the mean rank they lie near the middle. For N = 1 the formula does not define δ_1: it is ½ here, so
that z = 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["gaussian_copula", "truncation"]


def truncation(n: int) -> float:
    """δ_N: the distance that F keeps from 0 and 1, for n ≥ 1 values."""
    if n == 1:
        return 0.5
    return 1.0 / (4.0 * math.sqrt(math.sqrt(n) * math.pi * math.log(n)))


def gaussian_copula(y: Tensor) -> Tensor:
    """z of y, both N long; N may be 0."""
    if not len(y):
        return y.clone()
    _, place, times = y.unique(sorted=True, return_inverse=True, return_counts=True)
    largest = times.cumsum(0)
    rank = (largest - 0.5 * (times - 1)).double()[place]  # the mean of largest - times + 1 ... largest
    delta = truncation(len(y))
    z: Tensor = torch.special.ndtri((rank / len(y)).clamp(delta, 1.0 - delta))
    return z
