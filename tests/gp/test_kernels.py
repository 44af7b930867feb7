from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.kernels import (
    KernelName,
    check_kernel,
    correlation,
    correlation_and_slope,
    squared_distance,
)

KERNELS: tuple[KernelName, ...] = ("se", "matern52")
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def rand(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def brute_force(a: Tensor, b: Tensor) -> Tensor:
    return (a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1)


def reference(kernel: KernelName, x: Tensor, z: Tensor, log_lengthscale: Tensor) -> Tensor:
    """R from its definition, differentiable wherever no two points coincide."""
    squared = brute_force(x / log_lengthscale.exp(), z / log_lengthscale.exp())
    if kernel == "se":
        return torch.exp(-squared / 2)
    r = squared.sqrt()
    return (1 + 5**0.5 * r + 5 / 3 * squared) * torch.exp(-(5**0.5) * r)


def gpytorch_kernel(kernel: KernelName, lengthscale: Tensor) -> Any:
    *batch, d = lengthscale.shape
    shape = torch.Size(batch)
    module: Any = (
        RBFKernel(ard_num_dims=d, batch_shape=shape)
        if kernel == "se"
        else MaternKernel(nu=2.5, ard_num_dims=d, batch_shape=shape)
    )
    module = module.double()
    module.lengthscale = lengthscale.unsqueeze(-2)
    return module


@each_kernel
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("d", [1, 2, 6])
def test_correlation_is_gpytorchs(kernel: KernelName, batch: tuple[int, ...], d: int) -> None:
    x, z = rand(*batch, 7, d), rand(*batch, 5, d, seed=1)
    lengthscale = 0.1 + 2.0 * rand(*batch, d, seed=2)
    with torch.no_grad():
        expected = gpytorch_kernel(kernel, lengthscale)(x, z).to_dense()
    scale = lengthscale.unsqueeze(-2)
    ours = correlation(kernel, squared_distance(x / scale, z / scale))
    assert ours.shape == (*batch, 7, 5)
    torch.testing.assert_close(ours, expected, rtol=0.0, atol=1e-12)


@each_kernel
def test_correlation_of_points_with_themselves_is_gpytorchs(kernel: KernelName) -> None:
    """Coinciding points and duplicate rows included."""
    x = torch.cat([rand(6, 3), rand(6, 3)[:2]])
    lengthscale = torch.tensor([0.05, 0.7, 30.0], dtype=torch.float64)
    with torch.no_grad():
        expected = gpytorch_kernel(kernel, lengthscale)(x).to_dense()
    a = x / lengthscale
    torch.testing.assert_close(
        correlation(kernel, squared_distance(a, a)), expected, rtol=0.0, atol=1e-12
    )


@each_kernel
def test_correlation_falls_from_one_to_zero(kernel: KernelName) -> None:
    squared = torch.linspace(0.0, 50.0, 200, dtype=torch.float64).square()
    R = correlation(kernel, squared)
    assert R[0].item() == pytest.approx(1.0, abs=1e-12)
    assert (R.diff() <= 0).all()
    assert R[-1] < 1e-40


@each_kernel
def test_correlation_leaves_its_argument_alone(kernel: KernelName) -> None:
    squared = rand(4, 4)
    correlation(kernel, squared)
    assert torch.equal(squared, rand(4, 4))


@each_kernel
@pytest.mark.parametrize("batch", [(), (3,)])
def test_slope_is_the_derivative_by_log_lengthscale(kernel: KernelName, batch: tuple[int, ...]) -> None:
    x, z = rand(*batch, 6, 3), rand(*batch, 4, 3, seed=1)
    u = torch.log(0.2 + rand(3, seed=2))
    # batch x n x k x d, exact through autograd of an independent R.
    jacobian = torch.autograd.functional.jacobian(lambda v: reference(kernel, x, z, v), u)
    a, b = x / u.exp(), z / u.exp()
    R, W = correlation_and_slope(kernel, squared_distance(a, b))
    torch.testing.assert_close(R, reference(kernel, x, z, u), rtol=1e-12, atol=1e-14)
    slope = R if W is None else W
    ours = slope.unsqueeze(-1) * (a.unsqueeze(-2) - b.unsqueeze(-3)).square()
    torch.testing.assert_close(ours, jacobian, rtol=1e-10, atol=1e-13)


@each_kernel
def test_both_ways_to_the_correlation_agree(kernel: KernelName) -> None:
    squared = torch.cat([torch.zeros(1, dtype=torch.float64), 20.0 * rand(50)])
    R, _ = correlation_and_slope(kernel, squared.clone())
    torch.testing.assert_close(R, correlation(kernel, squared), rtol=1e-12, atol=1e-15)


@each_kernel
def test_slope_at_coinciding_points_is_finite(kernel: KernelName) -> None:
    R, W = correlation_and_slope(kernel, torch.zeros(2, 2, dtype=torch.float64))
    assert torch.equal(R, torch.ones_like(R))
    if W is not None:
        torch.testing.assert_close(W, torch.full_like(W, 5.0 / 3.0), rtol=1e-15, atol=0.0)


# Distances.


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.sampled_from([1e-3, 1.0, 1e2, 1e4]),
    st.sampled_from([0.0, 1e-9, 1e-3]),
)
def test_squared_distances_are_those_of_brute_force_and_never_negative(
    seed: int, d: int, magnitude: float, shift: float
) -> None:
    """Points close together at large coordinates: where the short formula cancels."""
    a = magnitude * rand(2, 5, d, seed=seed)
    b = torch.cat([a + shift, magnitude * rand(2, 3, d, seed=seed + 1)], dim=-2)
    squared = squared_distance(a, b)
    assert squared.shape == (2, 5, 8)
    assert (squared >= 0).all()
    # |a|² is at most d magnitude², and a handful of roundings of that is all that may be lost.
    torch.testing.assert_close(squared, brute_force(a, b), rtol=1e-12, atol=1e-14 * d * magnitude**2)


def test_squared_distances_broadcast_over_tasks() -> None:
    a, b = rand(4, 2), rand(3, 5, 2, seed=1)
    torch.testing.assert_close(squared_distance(a, b), brute_force(a, b), rtol=1e-12, atol=1e-14)


def test_squared_distances_are_the_callers_to_overwrite() -> None:
    a = rand(4, 2)
    squared_distance(a, a).fill_(7.0)
    assert torch.equal(a, rand(4, 2))


# Gradients in x.


@each_kernel
@pytest.mark.parametrize("magnitude", [1.0, 1e3])
def test_gradient_at_coinciding_points_is_zero(kernel: KernelName, magnitude: float) -> None:
    points = magnitude * rand(6, 1, 3)  # six pairs of a point with itself
    a = points.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(correlation(kernel, squared_distance(a, points)).sum(), a)
    assert gradient.isfinite().all()
    assert torch.equal(gradient, torch.zeros_like(gradient))


@each_kernel
def test_gradient_among_duplicates_is_that_of_the_others(kernel: KernelName) -> None:
    x = rand(1, 3).requires_grad_()
    others = rand(5, 3, seed=1)
    one = torch.zeros(3, dtype=torch.float64)
    (expected,) = torch.autograd.grad(reference(kernel, x, others, one).sum(), x)
    with_itself = torch.cat([others, x.detach(), x.detach()])
    (gradient,) = torch.autograd.grad(correlation(kernel, squared_distance(x, with_itself)).sum(), x)
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-12)


@each_kernel
def test_gradient_in_x_is_autograds_of_the_definition(kernel: KernelName) -> None:
    x, z = rand(2, 4, 3).requires_grad_(), rand(2, 5, 3, seed=1)
    weights = rand(2, 4, 5, seed=2)
    u = torch.tensor([-1.0, 0.0, 0.5], dtype=torch.float64)
    (expected,) = torch.autograd.grad((weights * reference(kernel, x, z, u)).sum(), x)
    R = correlation(kernel, squared_distance(x / u.exp(), z / u.exp()))
    (gradient,) = torch.autograd.grad((weights * R).sum(), x)
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-12)


@each_kernel
def test_an_infinite_lengthscale_ignores_its_parameter(kernel: KernelName) -> None:
    x, z = rand(5, 3).requires_grad_(), rand(4, 3, seed=1)
    inverse = torch.tensor([0.3, torch.inf, 2.0], dtype=torch.float64).reciprocal()
    assert inverse[1] == 0.0
    R = correlation(kernel, squared_distance(x * inverse, z * inverse))
    kept = torch.tensor([0, 2])
    without = reference(kernel, x[:, kept], z[:, kept], inverse[kept].reciprocal().log())
    torch.testing.assert_close(R, without, rtol=1e-12, atol=1e-14)
    (gradient,) = torch.autograd.grad(R.sum(), x)
    assert gradient.isfinite().all()
    assert (gradient[:, 1] == 0).all()
    assert (gradient[:, 0] != 0).all()


@each_kernel
def test_correlation_matrices_are_positive_semidefinite(kernel: KernelName) -> None:
    a = 3.0 * rand(30, 2)
    R = correlation(kernel, squared_distance(a, a))
    assert np.linalg.eigvalsh(R.numpy()).min() > -1e-12


# Names.


def test_kernels_are_chosen_by_name() -> None:
    for kernel in KERNELS:
        check_kernel(kernel)
    with pytest.raises(SettingError, match=r"^The kernel is 'rbf'; choose one of 'se', 'matern52'\.$"):
        check_kernel("rbf")
