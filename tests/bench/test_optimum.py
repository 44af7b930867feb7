"""The largest value of functions whose maximum is known."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from scaml.bench.optimum import largest


def test_a_maximum_inside_the_cube() -> None:
    def hill(X: Tensor) -> Tensor:
        return 3.0 - (X - 0.3).square().sum(-1)

    assert largest(hill, 4) == pytest.approx(3.0, abs=1e-12)


def test_a_maximum_at_a_corner() -> None:
    assert largest(lambda X: X.sum(-1), 3) == 3.0


def test_the_highest_of_many_hills() -> None:
    """A narrow hill beside many broad ones."""

    def hills(X: Tensor) -> Tensor:
        narrow = 2.0 * (-(X - 0.81).square().sum(-1) / 0.01).exp()
        return torch.sin(4.0 * math.pi * X).mean(-1) + narrow

    X = torch.linspace(0.7, 0.9, 400, dtype=torch.float64)
    grid = torch.cartesian_prod(X, X)
    assert largest(hills, 2) >= hills(grid).max() - 1e-12
