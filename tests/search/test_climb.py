"""Local maxima from many starts in lock step, against what is known and SciPy's L-BFGS-B."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from scaml.search import climb as solver
from scaml.search.climb import climb
from tests.cases import query

PEAK = torch.tensor([0.3, 0.8, 1.3], dtype=torch.float64)  # the last one outside the cube
SCALES = torch.tensor([1.0, 50.0, 4.0], dtype=torch.float64)


def bowl(X: Tensor) -> tuple[Tensor, Tensor]:
    return -(SCALES * (X - PEAK).square()).sum(-1), -2.0 * SCALES * (X - PEAK)


def waves(X: Tensor) -> tuple[Tensor, Tensor]:
    """Many maxima."""
    X = X.detach().requires_grad_()
    value = (torch.sin(9.0 * X) * (1.0 + X)).sum(-1) + 2.0 * (X[:, 0] * X[:, 1])
    (slope,) = torch.autograd.grad(value.sum(), X)
    return value.detach(), slope


def test_a_bowl_with_its_peak_beyond_a_bound() -> None:
    points, values = climb(bowl, query(5, 3))
    expected = torch.tensor([0.3, 0.8, 1.0], dtype=torch.float64)
    best = points[values.argmax()]
    torch.testing.assert_close(best, expected, rtol=0, atol=1e-6)
    assert values.max().item() == pytest.approx(-4.0 * 0.09, abs=1e-9)
    assert torch.equal(bowl(points)[0], values)


def test_fixed_columns_stay() -> None:
    fixed, starts = torch.tensor([False, True, False]), query(5, 3)
    points, _ = climb(bowl, starts, fixed=fixed)
    assert torch.equal(points[:, 1], starts[:, 1])
    every = climb(bowl, starts, fixed=torch.ones(3, dtype=torch.bool))[0]
    assert torch.equal(every, starts)


def negative(z: np.ndarray) -> tuple[float, np.ndarray]:
    value, slope = waves(torch.from_numpy(z)[None])
    return -value.item(), -slope[0].numpy()


@pytest.mark.parametrize("d", [2, 5])
def test_each_start_ends_at_a_maximum(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no start is stopped for being behind, SciPy's L-BFGS-B finds nothing better beside any."""
    monkeypatch.setattr(solver, "_CATCH_UP", np.inf)
    monkeypatch.setattr(solver, "_MET", -1.0)
    starts = query(12, d)
    points, values = climb(waves, starts)
    assert (values > waves(starts)[0]).all()
    for x, value in zip(points, values, strict=True):
        further = minimize(negative, x.numpy(), jac=True, method="L-BFGS-B", bounds=[(0, 1)] * d)
        assert -further.fun <= value.item() + 1e-7


def test_stopping_early_loses_nothing_here() -> None:
    starts = query(20, 3)
    early = climb(waves, starts)[1].max()
    each = max(climb(waves, x[None])[1].item() for x in starts)
    assert early.item() == pytest.approx(each, abs=1e-8)


def test_the_unit_of_x_in_the_function_does_not_matter() -> None:
    """A peak of width 1e-3."""
    peak = torch.tensor([0.4, 0.6], dtype=torch.float64)

    def narrow(X: Tensor) -> tuple[Tensor, Tensor]:
        z = 1e3 * (X - peak)
        value = -torch.log1p(z.square().sum(-1))
        return value, -2e3 * z / (1.0 + z.square().sum(-1, keepdim=True))

    points, values = climb(narrow, peak + torch.tensor([[0.01, -0.02], [0.3, 0.1]]))
    assert values.max() > -1e-6
    torch.testing.assert_close(points[values.argmax()], peak, rtol=0, atol=1e-6)


def test_values_that_are_not_finite_are_refused() -> None:
    def half(X: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = bowl(X)
        return torch.where(X[:, 0] > 0.2, value, torch.nan), slope

    starts = torch.tensor([[0.1, 0.5, 0.5], [0.9, 0.1, 0.1]], dtype=torch.float64)
    points, values = climb(half, starts)
    assert torch.equal(points[0], starts[0])
    assert values[1].item() == pytest.approx(-0.36, abs=1e-8)


def test_a_flat_function_moves_nothing() -> None:
    starts = query(4, 2)
    points, values = climb(lambda X: (X.new_zeros(len(X)), torch.zeros_like(X)), starts)
    assert torch.equal(points, starts)
    assert not values.any()
