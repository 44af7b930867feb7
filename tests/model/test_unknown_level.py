"""The level given D_t, against conditioning a dense normal distribution."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scaml.gp.linalg import inverse_of_lower
from scaml.model.unknown_level import level_given


def case(n: int) -> tuple[Tensor, Tensor]:
    """K and r."""
    generator = torch.Generator().manual_seed(n)
    A = torch.randn(n, n + 2, generator=generator, dtype=torch.float64)
    return A @ A.mT + 0.1 * torch.eye(n, dtype=torch.float64), A[:, 0] + 3.0


@pytest.mark.parametrize("level", [0.0, 0.3, 50.0])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_mean_and_variance_are_those_of_the_dense_joint_distribution(n: int, level: float) -> None:
    K, r = case(n)
    one = torch.ones(n, dtype=torch.float64)
    given, rest = level_given(
        inverse_of_lower(torch.linalg.cholesky(K)), r, torch.tensor(level).double()
    )
    gain = level * torch.linalg.solve(K + level, one)
    torch.testing.assert_close(given.mean, gain @ r)
    torch.testing.assert_close(given.variance, level - level * gain.sum())
    torch.testing.assert_close(rest, r - gain @ r)


def test_covariances_gain_what_the_dense_posterior_gains() -> None:
    n, level = 5, 7.0
    K, r = case(n)
    root = inverse_of_lower(torch.linalg.cholesky(K))
    cross = torch.rand(3, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    given, _ = level_given(root, r, torch.tensor(level, dtype=torch.float64))
    psi = cross @ root.mT
    with_level = level - (cross + level) @ torch.linalg.solve(K + level, (cross + level).mT)
    without = -cross @ torch.linalg.solve(K, cross.mT)
    torch.testing.assert_close(given.covariance(psi, psi), with_level - without)
    torch.testing.assert_close(given.at_points(psi), (with_level - without).diagonal())


def test_without_data_the_level_is_its_prior() -> None:
    nothing = torch.empty(0, 0, dtype=torch.float64)
    given, rest = level_given(nothing, nothing[:0].view(0), torch.tensor(2.0, dtype=torch.float64))
    assert given.mean == 0.0
    assert given.variance == 2.0
    assert not len(rest)
