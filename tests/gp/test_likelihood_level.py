"""The likelihood with an unknown level: against dense matrices in float64 and in fifty digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import Evaluation, negative_log_likelihood, value_alone
from tests import exact, oracles

KERNELS: tuple[KernelName, ...] = ("se", "matern52")
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
with_and_without_covariance = pytest.mark.parametrize("extra", [False, True], ids=["plain", "C"])
LEVELS = (1e-6, 0.5, 40.0, 1e6)
HUGE = (1e4, 1e8, 1e12)


@dataclass(frozen=True)
class Case:
    """A batch of likelihoods with levels."""

    kernel: KernelName
    theta: Tensor  # batch x (d + 2)
    X: Tensor  # batch x n x d
    residual: Tensor  # batch x n
    covariance: Tensor | None
    level: Tensor  # batch

    def evaluate(self) -> Evaluation:
        return negative_log_likelihood(
            self.kernel,
            self.theta,
            self.X,
            self.residual,
            covariance=self.covariance,
            level=self.level,
        )

    def value(self) -> Tensor:
        return value_alone(
            self.kernel,
            self.theta,
            self.X,
            self.residual,
            covariance=self.covariance,
            level=self.level,
        )

    def dense(self, i: int) -> oracles.Array:
        """K + λ 1 1^T."""
        x, X = self.theta[i].exp().numpy(), self.X[i].numpy()
        K = oracles.kernel_matrix(self.kernel, X, X, x[:-2], x[-2]) + x[-1] * np.eye(len(X))
        C = 0.0 if self.covariance is None else self.covariance[i].numpy()
        return np.asarray(K + C + float(self.level[i]))

    def exact(self, i: int, theta: Any = None, log_level: Any = None) -> Any:
        """K + λ 1 1^T in fifty digits, of the batch's member or at other hyperparameters."""
        mp, X = exact.mp, self.X[i].numpy()
        x = [
            mp.exp(u) for u in ([mp.mpf(v) for v in self.theta[i].tolist()] if theta is None else theta)
        ]
        K = exact.kernel_matrix(self.kernel, X, X, x[:-2], x[-2]) + x[-1] * mp.eye(len(X))
        if self.covariance is not None:
            K = K + exact.matrix(self.covariance[i].numpy())
        level = mp.mpf(float(self.level[i])) if log_level is None else mp.exp(log_level)
        return K + level * mp.ones(len(X))

    def exact_value(self, i: int, theta: Any = None, log_level: Any = None) -> Any:
        z = exact.matrix(self.residual[i].numpy())
        return -exact.log_density(z, self.exact(i, theta, log_level))


def case_of(
    kernel: KernelName,
    level: list[float],
    *,
    extra: bool = False,
    n: int = 6,
    d: int = 2,
    noise: float | None = None,
    offset: float = 0.0,
) -> Case:
    generator = torch.Generator().manual_seed(n + d)
    batch = len(level)
    theta = 0.7 * torch.randn(batch, d + 2, generator=generator, dtype=torch.float64)
    theta[:, :-2] -= 1.0
    theta[:, -1] -= 4.0
    if noise is not None:  # and a smooth function: the matrix is as near to singular as the fits allow
        theta[:, -1] = float(np.log(noise))
        theta[:, :-2] += 2.0
    X = torch.rand(batch, n, d, generator=generator, dtype=torch.float64)
    residual = torch.randn(batch, n, generator=generator, dtype=torch.float64) + offset
    A = torch.randn(batch, n, 2, generator=generator, dtype=torch.float64)
    C = 0.3 * A @ A.mT if extra else None
    return Case(kernel, theta, X, residual, C, torch.tensor(level, dtype=torch.float64))


def exact_slopes(case: Case, i: int) -> tuple[oracles.Array, float]:
    """Slopes in θ and in log λ from differences in fifty digits, right to 15 digits."""
    mp = exact.mp
    theta = [mp.mpf(v) for v in case.theta[i].tolist()]
    log_level = mp.log(mp.mpf(float(case.level[i])))
    h = mp.mpf(10) ** -10

    def slope(by: list[int], level: int) -> float:
        ends = [
            case.exact_value(
                i,
                [u + sign * h * b for u, b in zip(theta, by, strict=True)],
                log_level + sign * h * level,
            )
            for sign in (1, -1)
        ]
        return float((ends[0] - ends[1]) / (2 * h))

    none = [0] * len(theta)
    found = [slope([int(j == k) for j in range(len(theta))], 0) for k in range(len(theta))]
    return np.array(found), slope(none, 1)


# Moderate levels, against the dense form in float64.


@each_kernel
@with_and_without_covariance
@pytest.mark.parametrize("n", [1, 2, 9])
def test_value_is_that_of_the_dense_matrix(kernel: KernelName, extra: bool, n: int) -> None:
    case = case_of(kernel, [1e-6, 0.5, 40.0], extra=extra, n=n, offset=1.5)
    expected = [-oracles.log_density(r.numpy(), case.dense(i)) for i, r in enumerate(case.residual)]
    np.testing.assert_allclose(case.evaluate().value.numpy(), expected, rtol=1e-10)
    np.testing.assert_allclose(case.value().numpy(), expected, rtol=1e-10)


@each_kernel
@with_and_without_covariance
def test_alpha_and_inner_are_those_of_the_dense_matrix(kernel: KernelName, extra: bool) -> None:
    case = case_of(kernel, [1e-6, 0.5, 40.0], extra=extra, offset=1.5)
    found = case.evaluate()
    assert found.level is not None
    for i in range(3):
        inverse = np.linalg.inv(case.dense(i))
        alpha = inverse @ case.residual[i].numpy()
        np.testing.assert_allclose(found.alpha[i].numpy(), alpha, rtol=1e-8, atol=1e-9)
        inner = inverse - np.outer(alpha, alpha)
        np.testing.assert_allclose(found.inner[i].numpy(), inner, rtol=1e-8, atol=1e-7)
        assert float(found.level.alpha[i]) == pytest.approx(alpha.sum(), rel=1e-8, abs=1e-9)


@each_kernel
@with_and_without_covariance
@pytest.mark.parametrize("n", [1, 5])
def test_slopes_are_those_of_differences(kernel: KernelName, extra: bool, n: int) -> None:
    case = case_of(kernel, list(LEVELS), extra=extra, n=n, offset=2.0)
    found = case.evaluate()
    assert found.level is not None
    for i in range(len(LEVELS)):
        slope, by_level = exact_slopes(case, i)
        np.testing.assert_allclose(found.slope[i].numpy(), slope, rtol=1e-8, atol=1e-9)
        assert float(found.level.slope[i]) == pytest.approx(by_level, rel=1e-8, abs=1e-12)


@each_kernel
def test_a_batch_with_levels_is_its_members_one_by_one(kernel: KernelName) -> None:
    case = case_of(kernel, list(LEVELS), extra=True)
    together = case.evaluate()
    assert case.covariance is not None
    assert together.level is not None
    for i in range(len(LEVELS)):
        one = slice(i, i + 1)
        alone = Case(
            kernel,
            case.theta[one],
            case.X[one],
            case.residual[one],
            case.covariance[one],
            case.level[one],
        )
        found = alone.evaluate()
        assert found.level is not None
        for ours, theirs in zip(
            [*together[:4], *together.level], [*found[:4], *found.level], strict=True
        ):
            torch.testing.assert_close(ours[one], theirs, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(case.value()[one], alone.value(), rtol=1e-12, atol=1e-12)


@each_kernel
def test_a_level_of_variance_zero_is_none(kernel: KernelName) -> None:
    case = case_of(kernel, [0.0, 0.0], extra=True, offset=1.0)
    with_zero, value = case.evaluate(), case.value()
    args = (kernel, case.theta, case.X, case.residual)
    without = negative_log_likelihood(*args, covariance=case.covariance)
    assert without.level is None
    for ours, theirs in zip(with_zero[:4], without[:4], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(value, without.value, rtol=1e-12, atol=1e-12)
    assert with_zero.level is not None
    assert (with_zero.level.slope == 0).all()


@each_kernel
def test_the_value_alone_takes_a_covariance(kernel: KernelName) -> None:
    case = case_of(kernel, [1.0, 1.0], extra=True)
    assert case.covariance is not None
    before = case.covariance.clone()
    args = (kernel, case.theta, case.X, case.residual)
    expected = negative_log_likelihood(*args, covariance=case.covariance).value
    found = value_alone(*args, covariance=case.covariance)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(case.covariance, before)
    assert not torch.allclose(found, value_alone(*args))


@each_kernel
def test_a_matrix_that_is_not_positive_definite_is_a_wall_with_a_level(kernel: KernelName) -> None:
    case = case_of(kernel, [1.0, 1e6, 1.0], extra=True)
    assert case.covariance is not None
    expected = case.evaluate().value
    case.covariance[1] -= 50.0 * torch.eye(6, dtype=torch.float64)
    for found in (case.evaluate().value, case.value()):
        assert found[1] == torch.inf
        torch.testing.assert_close(found[[0, 2]], expected[[0, 2]], rtol=1e-12, atol=1e-12)


# Huge levels and little noise, against fifty digits.


def off_by(found: Tensor, expected: Any) -> float:
    """The largest error, as a share of the largest entry."""
    return float(np.abs(found.numpy() - expected).max() / np.abs(expected).max())


@each_kernel
@with_and_without_covariance
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_a_huge_level_and_little_noise_keep_six_digits(
    kernel: KernelName, extra: bool, offset: float
) -> None:
    case = case_of(kernel, list(HUGE), extra=extra, noise=1e-8, offset=offset)
    found, alone = case.evaluate(), case.value()
    assert found.level is not None
    for i in range(len(HUGE)):
        expected = float(case.exact_value(i))
        assert float(found.value[i]) == pytest.approx(expected, rel=1e-6)
        assert float(alone[i]) == pytest.approx(expected, rel=1e-6)
        inverse = case.exact(i) ** -1
        alpha = inverse * exact.matrix(case.residual[i].numpy())
        inner = exact.array(inverse - alpha * alpha.T)
        assert off_by(found.alpha[i], exact.array(alpha)) < 1e-6
        assert off_by(found.inner[i], inner) < 1e-6
        total = float(exact.mp.fsum(alpha))
        assert float(found.level.alpha[i]) == pytest.approx(total, rel=1e-6)


@each_kernel
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_slopes_at_a_huge_level_and_little_noise_keep_six_digits(
    kernel: KernelName, offset: float
) -> None:
    case = case_of(kernel, list(HUGE), extra=True, n=5, noise=1e-8, offset=offset)
    found = case.evaluate()
    assert found.level is not None
    for i in range(len(HUGE)):
        slope, by_level = exact_slopes(case, i)
        assert off_by(found.slope[i], slope) < 1e-6
        assert float(found.level.slope[i]) == pytest.approx(by_level, rel=1e-6)


def test_the_dense_form_has_lost_its_digits_there() -> None:
    """So that the tests above compare what they mean to compare."""
    case = case_of("se", [1e12], noise=1e-8)
    try:
        dense = -oracles.log_density(case.residual[0].numpy(), case.dense(0))
    except np.linalg.LinAlgError:
        return
    expected = float(case.exact_value(0))
    assert not abs(dense - expected) < 1e-2 * abs(expected)
