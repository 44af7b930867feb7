from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from scipy import stats
from torch import Tensor

from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import Evaluation, negative_log_likelihood, value_alone

KERNELS: tuple[KernelName, ...] = ("se", "matern52")
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
with_and_without_covariance = pytest.mark.parametrize("extra", [False, True], ids=["plain", "C"])


@dataclass(frozen=True)
class Problem:
    """A batch of likelihoods; `covariance` is C of Theorem 1, or None."""

    kernel: KernelName
    theta: Tensor  # batch x (d + 2)
    X: Tensor  # batch x n x d
    residual: Tensor  # batch x n
    covariance: Tensor | None

    def evaluate(self, mask: Tensor | None = None) -> Evaluation:
        return negative_log_likelihood(
            self.kernel, self.theta, self.X, self.residual, mask=mask, covariance=self.covariance
        )

    def member(self, i: int, n: int | None = None) -> Problem:
        """One of the batch, or its first n rows, as a batch of its own."""
        C = None if self.covariance is None else self.covariance[i : i + 1, :n, :n]
        return Problem(
            self.kernel, self.theta[i : i + 1], self.X[i : i + 1, :n], self.residual[i : i + 1, :n], C
        )

    def matrix(self, theta: Tensor) -> Tensor:
        """K, from the definitions alone."""
        scaled = self.X / theta[:, None, :-2].exp()
        difference = scaled[:, :, None] - scaled[:, None]
        squared = difference.square().sum(-1)
        if self.kernel == "se":
            R = torch.exp(-squared / 2)
        else:
            # The diagonal is 1 whatever θ is; its square root has no derivative to give.
            equal = squared == 0
            r = torch.where(equal, 1.0, squared).sqrt() * 5**0.5
            R = torch.where(equal, 1.0, (1 + r + r.square() / 3) * torch.exp(-r))
        K = theta[:, -2].exp()[:, None, None] * R
        K = K + theta[:, -1].exp()[:, None, None] * torch.eye(self.X.shape[1], dtype=torch.float64)
        return K if self.covariance is None else K + self.covariance

    def reference(self, theta: Tensor) -> Tensor:
        normal = torch.distributions.MultivariateNormal(
            torch.zeros_like(self.residual), self.matrix(theta)
        )
        value: Tensor = -normal.log_prob(self.residual)
        return value


def problem(
    kernel: KernelName, *, extra: bool = False, batch: int = 3, n: int = 7, d: int = 2, seed: int = 0
) -> Problem:
    generator = torch.Generator().manual_seed(seed)
    theta = torch.randn(batch, d + 2, generator=generator, dtype=torch.float64) * 0.7
    theta[:, :-2] -= 1.0
    theta[:, -1] -= 4.0
    X = torch.rand(batch, n, d, generator=generator, dtype=torch.float64)
    residual = torch.randn(batch, n, generator=generator, dtype=torch.float64)
    A = torch.randn(batch, n, 2, generator=generator, dtype=torch.float64)
    return Problem(kernel, theta, X, residual, 0.3 * A @ A.mT if extra else None)


def central_differences(function: Callable[[Tensor], Tensor], theta: Tensor, h: float = 1e-5) -> Tensor:
    """`batch x p`, of a function that maps `batch x p` to `batch`."""
    steps = h * torch.eye(theta.shape[-1], dtype=torch.float64)
    columns = [(function(theta + step) - function(theta - step)) / (2 * h) for step in steps]
    return torch.stack(columns, dim=-1)


# Values.


@each_kernel
@with_and_without_covariance
@pytest.mark.parametrize("n", [1, 2, 9])
def test_value_is_scipys_density(kernel: KernelName, extra: bool, n: int) -> None:
    case = problem(kernel, extra=extra, n=n)
    K = case.matrix(case.theta).numpy()
    expected = [
        -stats.multivariate_normal(cov=k, allow_singular=False).logpdf(r)
        for k, r in zip(K, case.residual.numpy(), strict=True)
    ]
    np.testing.assert_allclose(case.evaluate().value.numpy(), expected, rtol=1e-10)


class PlainGP(gpytorch.models.ExactGP):
    def __init__(self, X: Tensor, y: Tensor, kernel: KernelName) -> None:
        super().__init__(X, y, GaussianLikelihood(noise_constraint=Positive()))
        d = X.shape[-1]
        base: Any = (
            RBFKernel(ard_num_dims=d) if kernel == "se" else MaternKernel(nu=2.5, ard_num_dims=d)
        )
        self.mean, self.covariance = ZeroMean(), ScaleKernel(base)
        self.double()

    def forward(self, X: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean(X), self.covariance(X))


@each_kernel
def test_value_and_slope_are_gpytorchs(kernel: KernelName) -> None:
    case = problem(kernel, batch=1, n=12, d=3)
    X, y, theta = case.X[0], case.residual[0], case.theta[0]
    model = PlainGP(X, y, kernel)
    model.covariance.base_kernel.lengthscale = theta[:-2].exp()
    model.covariance.outputscale = theta[-2].exp()
    model.likelihood.noise = theta[-1].exp()
    model.train()
    loss = -gpytorch.ExactMarginalLogLikelihood(model.likelihood, model)(model(X), y) * len(y)
    loss.backward()
    ours = case.evaluate()
    assert ours.value.item() == pytest.approx(loss.item(), rel=1e-10)
    raw = [
        model.covariance.base_kernel.raw_lengthscale,
        model.covariance.raw_outputscale,
        model.likelihood.noise_covar.raw_noise,
    ]
    # GPyTorch differentiates by softplus^-1(x): d / d log x = x / sigmoid(raw) d / d raw.
    flat = torch.cat([parameter.detach().flatten() for parameter in raw])
    slope = torch.cat([parameter.grad.flatten() for parameter in raw])
    expected = slope * theta.exp() / torch.sigmoid(flat)
    torch.testing.assert_close(ours.slope[0], expected, rtol=1e-8, atol=1e-8)


@each_kernel
@with_and_without_covariance
def test_alpha_and_inner_are_what_they_are_called(kernel: KernelName, extra: bool) -> None:
    case = problem(kernel, extra=extra)
    inverse = torch.linalg.inv(case.matrix(case.theta))
    alpha = (inverse @ case.residual[:, :, None])[:, :, 0]
    found = case.evaluate()
    torch.testing.assert_close(found.alpha, alpha, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(
        found.inner, inverse - alpha[:, :, None] * alpha[:, None], rtol=1e-9, atol=1e-8
    )


# Slopes.


@each_kernel
@with_and_without_covariance
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 1), (7, 3), (20, 6)])
def test_slope_is_autograds_of_an_independent_likelihood(
    kernel: KernelName, extra: bool, n: int, d: int
) -> None:
    case = problem(kernel, extra=extra, n=n, d=d)
    theta = case.theta.clone().requires_grad_()
    (expected,) = torch.autograd.grad(case.reference(theta).sum(), theta)
    torch.testing.assert_close(case.evaluate().slope, expected, rtol=1e-6, atol=1e-9)


@each_kernel
@with_and_without_covariance
def test_slope_is_that_of_central_differences(kernel: KernelName, extra: bool) -> None:
    case = problem(kernel, extra=extra)
    expected = central_differences(case.reference, case.theta)
    torch.testing.assert_close(case.evaluate().slope, expected, rtol=1e-6, atol=1e-7)


@each_kernel
def test_slope_among_duplicate_rows(kernel: KernelName) -> None:
    case = problem(kernel, n=6)
    case.X[:, 3:] = case.X[:, :3]
    expected = central_differences(case.reference, case.theta)
    found = case.evaluate()
    torch.testing.assert_close(found.value, case.reference(case.theta), rtol=1e-10, atol=0.0)
    torch.testing.assert_close(found.slope, expected, rtol=1e-6, atol=1e-7)


@each_kernel
def test_an_infinite_lengthscale_drops_its_parameter(kernel: KernelName) -> None:
    case = problem(kernel, d=3)
    theta = case.theta.clone()
    theta[:, 1] = torch.inf
    kept = torch.tensor([0, 2, 3, 4])
    without = Problem(kernel, theta[:, kept], case.X[:, :, [0, 2]], case.residual, None)
    found = negative_log_likelihood(kernel, theta, case.X, case.residual)
    expected = without.evaluate()
    torch.testing.assert_close(found.value, expected.value, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(found.slope[:, kept], expected.slope, rtol=1e-10, atol=1e-12)
    assert (found.slope[:, 1] == 0).all()


# Batches.


@each_kernel
@with_and_without_covariance
def test_a_batch_is_its_members_one_by_one(kernel: KernelName, extra: bool) -> None:
    case = problem(kernel, extra=extra, batch=4)
    together = case.evaluate()
    for i in range(4):
        alone = case.member(i).evaluate()
        assert together.level is alone.level is None
        for ours, theirs in zip(together[:4], alone[:4], strict=True):
            torch.testing.assert_close(ours[i : i + 1], theirs, rtol=1e-12, atol=1e-12)


@each_kernel
@with_and_without_covariance
@pytest.mark.parametrize("garbage", [0.0, 0.5, 30.0])
def test_padded_rows_add_nothing(kernel: KernelName, extra: bool, garbage: float) -> None:
    """Whatever stands in the padded rows of X; one member fills the batch, one has a single row."""
    sizes = [9, 1, 4, 6]
    case = problem(kernel, extra=extra, batch=4, n=9)
    mask = torch.zeros(4, 9, dtype=torch.float64)
    for i, size in enumerate(sizes):
        mask[i, :size] = 1.0
    C = case.covariance
    padded = Problem(
        kernel,
        case.theta,
        torch.where(mask[:, :, None] > 0, case.X, garbage),
        case.residual * mask,
        None if C is None else C * mask[:, :, None] * mask[:, None],
    ).evaluate(mask)
    for i, size in enumerate(sizes):
        alone = case.member(i, size).evaluate()
        torch.testing.assert_close(padded.value[i : i + 1], alone.value, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(padded.slope[i : i + 1], alone.slope, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(padded.alpha[i : i + 1, :size], alone.alpha, rtol=1e-12, atol=1e-12)
        assert (padded.alpha[i, size:] == 0).all()


@each_kernel
def test_padded_slopes_are_those_of_central_differences(kernel: KernelName) -> None:
    case = problem(kernel, batch=2, n=8)
    mask = torch.ones(2, 8, dtype=torch.float64)
    mask[1, 5:] = 0.0
    short = case.member(1, 5)
    expected = torch.cat(
        [
            central_differences(case.member(0).reference, case.theta[:1]),
            central_differences(short.reference, case.theta[1:]),
        ]
    )
    padded = Problem(kernel, case.theta, case.X, case.residual * mask, None)
    torch.testing.assert_close(padded.evaluate(mask).slope, expected, rtol=1e-6, atol=1e-7)


@each_kernel
@pytest.mark.parametrize("masked", [False, True])
def test_the_value_alone_is_the_value(kernel: KernelName, masked: bool) -> None:
    case = problem(kernel, batch=3, n=8)
    mask = torch.ones(3, 8, dtype=torch.float64)
    mask[1, 5:] = 0.0
    residual = case.residual * mask if masked else case.residual
    given = mask if masked else None
    expected = negative_log_likelihood(kernel, case.theta, case.X, residual, mask=given).value
    found = value_alone(kernel, case.theta, case.X, residual, mask=given)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@each_kernel
@pytest.mark.parametrize("masked", [False, True])
def test_arguments_are_not_overwritten(kernel: KernelName, masked: bool) -> None:
    case, copy = problem(kernel, extra=True), problem(kernel, extra=True)
    mask = torch.ones_like(case.residual) if masked else None
    case.evaluate(mask)
    assert torch.equal(case.theta, copy.theta)
    assert torch.equal(case.X, copy.X)
    assert torch.equal(case.residual, copy.residual)
    assert case.covariance is not None
    assert copy.covariance is not None
    assert torch.equal(case.covariance, copy.covariance)
    assert mask is None or (mask == 1).all()


@each_kernel
def test_one_x_serves_a_whole_batch(kernel: KernelName) -> None:
    case = problem(kernel, batch=3)
    shared = case.X[:1].expand(3, -1, -1)
    found = negative_log_likelihood(kernel, case.theta, shared, case.residual)
    expected = Problem(kernel, case.theta, shared.clone(), case.residual, None).evaluate()
    torch.testing.assert_close(found.value, expected.value, rtol=1e-14, atol=0.0)
    torch.testing.assert_close(found.slope, expected.slope, rtol=1e-12, atol=1e-12)


@each_kernel
def test_a_matrix_that_is_not_positive_definite_is_a_wall_for_itself_alone(kernel: KernelName) -> None:
    case = problem(kernel, extra=True)
    assert case.covariance is not None
    expected = case.evaluate()
    broken = case.covariance.clone()
    broken[1] -= 50.0 * torch.eye(7, dtype=torch.float64)
    found = Problem(kernel, case.theta, case.X, case.residual, broken).evaluate()
    assert found.value[1] == torch.inf
    assert torch.equal(found.value[[0, 2]], expected.value[[0, 2]])
    assert torch.equal(found.slope[[0, 2]], expected.slope[[0, 2]])
