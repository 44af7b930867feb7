"""The Gaussian copula against SciPy's ranks and quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm, rankdata

from scaml.gp.gaussian_copula import gaussian_copula, truncation


@pytest.mark.parametrize("n", [2, 3, 5, 32, 400])
@pytest.mark.parametrize("levels", [None, 3])
def test_against_scipy(n: int, levels: int | None) -> None:
    rng = np.random.default_rng(n)
    y = rng.standard_normal(n) if levels is None else rng.integers(levels, size=n).astype(float)
    delta = 1.0 / (4.0 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    expected = norm.ppf(np.clip(rankdata(y, method="average") / n, delta, 1.0 - delta))
    np.testing.assert_allclose(gaussian_copula(torch.tensor(y)), expected, rtol=0, atol=1e-13)


def test_without_ties_it_is_the_empirical_distribution_function() -> None:
    y = torch.tensor([3.0, -1.0, 10.0, 7.0, 8.0], dtype=torch.float64)
    F = (y[:, None] >= y[None]).double().mean(-1)
    clipped = F.clamp(truncation(5), 1.0 - truncation(5))
    np.testing.assert_allclose(norm.cdf(gaussian_copula(y)), clipped, rtol=0, atol=1e-14)


def test_no_value_and_a_single_one() -> None:
    assert gaussian_copula(torch.empty(0, dtype=torch.float64)).shape == (0,)
    assert gaussian_copula(torch.tensor([17.0], dtype=torch.float64)).tolist() == [0.0]


def test_a_constant_task_is_near_the_middle() -> None:
    z = gaussian_copula(torch.full((8,), 2.5, dtype=torch.float64))
    assert z.unique().numel() == 1
    np.testing.assert_allclose(z, norm.ppf(4.5 / 8), rtol=0, atol=1e-14)


def test_only_the_order_counts() -> None:
    y = torch.randn(50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z = gaussian_copula(y)
    assert torch.equal(gaussian_copula(1e3 * y - 50.0), z)
    assert torch.equal(gaussian_copula(y.exp()), z)
    assert (z[y.argsort()].diff() >= 0).all()
    turned = torch.randperm(50, generator=torch.Generator().manual_seed(1))
    assert torch.equal(gaussian_copula(y[turned]), z[turned])


def test_the_truncation_shrinks_with_the_number_of_values() -> None:
    deltas = [truncation(n) for n in range(1, 200)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[0] == 0.5
    assert 0 < deltas[-1] < 0.03
