"""The packed likelihood against the reference form, which is tested against autograd and dense GPs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import Evaluation, negative_log_likelihood
from scaml.gp.packed_likelihood import PackedEvaluation, PackedLikelihood, packed, product, unpacked

BATCH = 4


def parts(
    n: int, d: int, *, level: float | None, covariance: bool, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """X, θ, residuals, C and λ."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    X = torch.rand(n, d, generator=generator, dtype=torch.float64)
    theta = 0.6 * normal(BATCH, d + 2)
    theta[:, -1] -= 4.0
    root = normal(BATCH, n, n)
    C = 0.2 * root @ root.mT / n if covariance else None
    levels = None if level is None else torch.full((BATCH,), level, dtype=torch.float64)
    return X, theta, 3.0 + normal(BATCH, n), C, levels


def both(
    kernel: KernelName, X: Tensor, theta: Tensor, r: Tensor, C: Tensor | None, level: Tensor | None
) -> tuple[PackedEvaluation, Evaluation]:
    found = PackedLikelihood.at(kernel, X)(
        theta.numpy(),
        r.numpy(),
        None if C is None else packed(C),
        None if level is None else level.numpy(),
    )
    each = X.expand(len(theta), -1, -1)
    return found, negative_log_likelihood(kernel, theta, each, r, covariance=C, level=level)


def close(found: Any, expected: Tensor, rtol: float = 1e-10) -> None:
    size = float(expected.abs().max()) if expected.numel() else 1.0
    np.testing.assert_allclose(found, expected.numpy(), rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 3), (9, 2), (40, 6), (90, 4)])
@pytest.mark.parametrize("level", [None, 0.7, 1e6])
@pytest.mark.parametrize("covariance", [False, True])
def test_it_is_the_reference_form(
    kernel: KernelName, n: int, d: int, level: float | None, covariance: bool
) -> None:
    X, theta, r, C, levels = parts(n, d, level=level, covariance=covariance)
    found, expected = both(kernel, X, theta, r, C, levels)
    close(found.value, expected.value)
    close(found.slope, expected.slope)
    close(found.alpha, expected.alpha)
    close(found.along(r.numpy()), expected.along(r))
    z = 1e3 + torch.arange(n, dtype=torch.float64)  # a large mean
    close(found.along(z.numpy()), expected.along(z), rtol=1e-8)
    # ⟨H, S⟩ = ½ ⟨A, S⟩ for any symmetric S.
    S = torch.cos(torch.arange(float(n * n), dtype=torch.float64)).view(n, n)
    S = S + S.mT
    close((found.half * packed(S[None])).sum(-1), 0.5 * (expected.inner * S).sum((-2, -1)), 1e-9)
    if level is None:
        assert found.by_level is None
    else:
        assert expected.level is not None
        close(found.by_level, expected.level.slope, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_the_slope_is_that_of_finite_differences(kernel: KernelName) -> None:
    X, theta, r, C, level = parts(12, 3, level=2.0, covariance=True)
    assert C is not None
    assert level is not None
    likelihood, step = PackedLikelihood.at(kernel, X), 1e-5
    args = r.numpy(), packed(C), level.numpy()
    found = likelihood(theta.numpy(), *args).slope
    for k in range(theta.shape[1]):
        up, down = theta.numpy().copy(), theta.numpy().copy()
        up[:, k] += step
        down[:, k] -= step
        slope = (likelihood(up, *args).value - likelihood(down, *args).value) / (2 * step)
        np.testing.assert_allclose(found[:, k], slope, rtol=1e-6, atol=1e-6)


def test_equal_points_are_at_distance_0() -> None:
    """The difference of squares would leave a rounding error, whose root the Matérn kernel takes."""
    X = torch.full((3, 2), 0.123456789, dtype=torch.float64)
    assert not PackedLikelihood.at("matern52", X).squares.any()


def test_a_matrix_that_is_not_positive_definite_has_an_infinite_value() -> None:
    X, theta, r, _, _ = parts(5, 2, level=None, covariance=False)
    C = torch.zeros(BATCH, 5, 5, dtype=torch.float64)
    C[1] = -100.0 * torch.eye(5, dtype=torch.float64)
    with np.errstate(all="ignore"):
        found = PackedLikelihood.at("se", X)(theta.numpy(), r.numpy(), packed(C))
    assert np.isinf(found.value).tolist() == [False, True, False, False]
    alone = PackedLikelihood.at("se", X)(theta.numpy()[2:], r.numpy()[2:], packed(C)[2:])
    np.testing.assert_allclose(found.slope[2:], alone.slope, rtol=1e-12)


@pytest.mark.parametrize(("batch", "n"), [(0, 3), (2, 0), (2, 1), (3, 5)])
def test_packing_keeps_symmetric_matrices(batch: int, n: int) -> None:
    K = torch.randn(batch, n, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    K = K + K.mT
    lower = packed(K)
    assert lower.shape == (batch, n * (n + 1) // 2)
    assert np.array_equal(unpacked(lower, n), K.numpy())


def test_a_further_point_appends_a_row() -> None:
    K = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    K = (K + K.mT)[None]
    assert np.array_equal(packed(K)[:, :15], packed(K[:, :5, :5]))
    assert np.array_equal(packed(K)[0, 15:], K[0, 5].numpy())


def test_a_product_is_a_product() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    assert np.array_equal(product(a, b), a @ b)
