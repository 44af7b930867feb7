"""Kernels at single points against the plain formulas and autograd."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from scaml.gp.kernels import KernelName, correlation, squared_distance
from scaml.model.point_kernels import PointKernels, features, towards
from tests.cases import query


@pytest.mark.parametrize("kernel", get_args(KernelName))
def test_values_and_slopes_are_those_of_the_plain_kernel(kernel: KernelName) -> None:
    """Two kernels with four points; the second lacks a column, and the points have one more."""
    points, X = query(2, 4, 3), query(6, 2).requires_grad_()
    inverse = torch.tensor([[1.0, 2.0, 0.5], [3.0, 0.0, 1.5]], dtype=torch.float64)
    padded = torch.nn.functional.pad(X, (0, 1))
    a, b = padded * inverse.unsqueeze(1), points * inverse.unsqueeze(1)
    expected = correlation(kernel, squared_distance(a, b))
    ours = PointKernels.of(kernel, inverse, points, 2)
    R, slope = ours.at(features(X.detach()))
    torch.testing.assert_close(R, expected, rtol=1e-12, atol=1e-12)
    by_R = query(2, 6, 4)
    (wanted,) = torch.autograd.grad((by_R * expected).sum(), X)
    found = towards(X.detach(), torch.bmm(by_R * slope, ours.backward).sum(0))
    torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)


def test_some_kernels_alone() -> None:
    ours = PointKernels.of("matern52", query(3, 2), query(3, 5, 2), 2)
    phi = features(query(4, 2))
    torch.testing.assert_close(ours.at(phi, slice(1, 3))[0], ours.at(phi)[0][1:])


@pytest.mark.parametrize("kernel", get_args(KernelName))
def test_at_a_fixed_point_the_correlation_is_1_and_flat(kernel: KernelName) -> None:
    points = query(1, 3, 2)
    ours = PointKernels.of(kernel, torch.full((1, 2), 7.0).double(), points, 2)
    R, slope = ours.at(features(points[0]))
    torch.testing.assert_close(R[0].diagonal(), torch.ones(3).double(), rtol=0, atol=1e-7)
    assert slope.isfinite().all()
