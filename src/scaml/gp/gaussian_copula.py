r"""The Gaussian copula of one task's values: every y by its rank, on the scale of a normal variable.

$$z = \Phi^{-1}(F(y)), \qquad F \text{ clipped to } [\delta_N, 1 - \delta_N], \qquad
\delta_N = \frac{1}{4 N^{1/4} \sqrt{\pi \ln N}},$$

with F the empirical distribution function of the N values and δ_N as Liu, Lafferty and Wasserman
(2009) choose it and Salinas, Shen and Perrone (2020) take it over. z grows with y and does not change
with the units of y, nor with any other increasing function of it.

Without ties F is rank / N, as the definition says. Values that tie get the mean of their ranks: the
average over all ways to tell them apart. The definition would give them the largest one, and call
every point of a constant task its best; the mean puts that task near the middle. A single value is
its own median: δ_1, which the formula leaves undefined, is ½, and z is 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["gaussian_copula", "truncation"]


def truncation(n: int) -> float:
    """δ_N: how far F stays away from 0 and 1, given n ≥ 1 values."""
    if n == 1:
        return 0.5
    return 1.0 / (4.0 * math.sqrt(math.sqrt(n) * math.pi * math.log(n)))


def gaussian_copula(y: Tensor) -> Tensor:
    """z, N long, of y, N long; N may be 0."""
    if not len(y):
        return y.clone()
    _, place, times = y.unique(sorted=True, return_inverse=True, return_counts=True)
    largest = times.cumsum(0)
    rank = (largest - 0.5 * (times - 1)).double()[place]  # the mean of largest - times + 1 ... largest
    delta = truncation(len(y))
    z: Tensor = torch.special.ndtri((rank / len(y)).clamp(delta, 1.0 - delta))
    return z
