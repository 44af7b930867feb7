from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize as scipy_minimize
from torch import Tensor

import scaml.gp.minimize
from scaml.gp.minimize import Objective, minimize
from tests.gp.minimize_cases import INF, Quadratics, generator, solve, tensor


def rosenbrock(x: Tensor, _problem: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x[:, 0], x[:, 1]
    value = 100 * (b - a.square()).square() + (1 - a).square()
    slope = torch.stack([-400 * a * (b - a.square()) - 2 * (1 - a), 200 * (b - a.square())], dim=-1)
    return value, slope


def scipy_value(
    objective: Objective, problem: int, x0: Tensor, bounds: list[tuple[float, float]]
) -> float:
    def function(x: Any) -> tuple[float, Any]:
        value, slope = objective(tensor(x)[None], torch.tensor([problem]))
        return value.item(), slope[0].numpy()

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000}
    found = scipy_minimize(
        function, x0.numpy(), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return float(found.fun)


# Against scipy.


@pytest.mark.parametrize("p", [1, 2, 5, 12])
@pytest.mark.parametrize(("lower", "upper"), [(-0.5, 0.5), (0.0, INF), (-INF, 0.2), (-INF, INF)])
def test_quadratics_with_active_bounds_end_where_scipy_ends(p: int, lower: float, upper: float) -> None:
    objective = Quadratics(12, p, seed=p)
    x0 = torch.randn(12, p, generator=generator(9), dtype=torch.float64).clamp(lower, upper)
    found = solve(objective, x0, lower=lower, upper=upper)
    for i in range(12):
        expected = scipy_value(objective, i, x0[i], [(lower, upper)] * p)
        assert found.value[i].item() == pytest.approx(expected, abs=2e-8)
    assert (found.x >= lower).all()
    assert (found.x <= upper).all()
    if p > 1 and (lower, upper) != (-INF, INF):
        assert ((found.x == lower) | (found.x == upper)).any(), "no bound was active"
    value, _ = objective(found.x, torch.arange(12))
    assert torch.equal(value, found.value)


def test_unbounded_quadratics_end_at_the_solution() -> None:
    objective = Quadratics(20, 4, seed=1)
    found = solve(objective, torch.zeros(20, 4, dtype=torch.float64))
    exact = torch.linalg.solve(objective.Q, objective.b)
    torch.testing.assert_close(found.x, exact, rtol=0.0, atol=1e-3)
    best, _ = objective(exact, torch.arange(20))
    assert (found.value - best <= 1e-8).all()


def test_starts_far_away_come_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are limited, so it takes a few; rounds are not."""
    objective = Quadratics(8, 3, seed=2)
    x0 = 1e3 * torch.randn(8, 3, generator=generator(0), dtype=torch.float64)
    exact = torch.linalg.solve(objective.Q, objective.b)
    best, _ = objective(exact, torch.arange(8))
    monkeypatch.setattr(scaml.gp.minimize, "_MOST_ROUNDS", 2000)
    assert (solve(objective, x0).value - best <= 1e-7).all()


@pytest.mark.parametrize(("lower", "upper"), [(-0.5, 0.5), (0.0, 1.0)])
def test_no_problem_of_many_gets_stuck_beside_a_bound(lower: float, upper: float) -> None:
    """A variable can come to rest one rounding error from a bound that it is pushed against."""
    many = 20_000
    angle = np.pi * torch.rand(many, generator=generator(0), dtype=torch.float64)
    cos, sin = angle.cos(), angle.sin()
    U = torch.stack([torch.stack([cos, -sin], dim=-1), torch.stack([sin, cos], dim=-1)], dim=-2)
    flat = 10 ** (-2 * torch.rand(many, generator=generator(1), dtype=torch.float64))
    objective = Quadratics(many, 2, seed=2)
    objective.Q = 10.0 * U @ torch.diag_embed(torch.stack([torch.ones_like(flat), flat], dim=-1)) @ U.mT
    x0 = torch.rand(many, 2, generator=generator(4), dtype=torch.float64)
    x = solve(objective, x0, lower=lower, upper=upper).x
    _, slope = objective(x, torch.arange(many))
    # At the minimum a step along the slope is undone by the bounds; the problems are convex.
    moved = (x - (x - slope).clamp(lower, upper)).abs().amax(-1)
    stuck = (moved > 1e-2).nonzero().flatten().tolist()
    assert not stuck, f"{len(stuck)} problems, the first ended at {x[stuck[0]].tolist()}"


def test_every_variable_has_its_own_bounds() -> None:
    objective = Quadratics(6, 3, seed=3)
    lower, upper = tensor([-0.1, -INF, 0.3]), tensor([0.1, 0.0, INF])
    x0 = torch.zeros(6, 3, dtype=torch.float64)
    found = minimize(objective, x0, lower, upper, torch.arange(6), same_basin=1e-6)
    bounds = list(zip(lower.tolist(), upper.tolist(), strict=True))
    for i in range(6):
        start = x0[i].clamp(lower, upper)
        expected = scipy_value(objective, i, start, bounds)
        assert found.value[i].item() == pytest.approx(expected, abs=2e-8)


def test_starts_outside_the_box_are_brought_in() -> None:
    seen: list[Tensor] = []

    def objective(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(x)
        return (x - 3.0).square().sum(-1), 2 * (x - 3.0)

    found = solve(objective, tensor([[-50.0, 70.0]]), lower=-1.0, upper=2.0)
    assert torch.equal(found.x, tensor([[2.0, 2.0]]))
    every = torch.cat(seen)
    assert (every >= -1.0).all()
    assert (every <= 2.0).all()


def test_rosenbrock_in_a_batch() -> None:
    x0 = tensor([[-1.2, 1.0], [0.0, 0.0], [2.0, -2.0], [-3.0, 4.0], [1.0, 1.0]])
    found = solve(rosenbrock, x0)
    torch.testing.assert_close(found.x, torch.ones_like(x0), rtol=0.0, atol=1e-3)
    assert (found.value < 1e-7).all()
    assert found.x[4].tolist() == [1.0, 1.0]


def test_rosenbrock_against_a_bound() -> None:
    x0 = tensor([[-1.2, 1.0], [0.0, 0.0]])
    found = solve(rosenbrock, x0, upper=0.5)
    # At a = ½ the best b is ¼.
    torch.testing.assert_close(found.x, tensor([[0.5, 0.25]] * 2), rtol=0.0, atol=1e-4)
    assert (found.x[:, 0] == 0.5).all()


# Walls.


def walled(wall: float) -> Objective:
    """(x - 3)² summed, with no finite value where the first coordinate exceeds 1."""

    def objective(x: Tensor, _problem: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = (x - 3.0).square().sum(-1), 2 * (x - 3.0)
        behind = x[:, 0] > 1.0
        return torch.where(behind, wall, value), torch.where(behind[:, None], float("nan"), slope)

    return objective


@pytest.mark.parametrize("wall", [INF, float("nan"), -INF])
def test_walls_are_never_entered_and_approached(wall: float) -> None:
    found = solve(walled(wall), tensor([[-2.0, -1.0], [0.5, 9.0]]))
    assert found.value.isfinite().all()
    assert (found.x[:, 0] <= 1.0).all()
    assert (found.x[:, 0] > 0.9).all()


def test_a_value_without_a_finite_slope_is_a_wall() -> None:
    def objective(x: Tensor, _problem: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = (x - 3.0).square().sum(-1), 2 * (x - 3.0)
        return value, torch.where(x > 1.0, INF, slope)

    found = solve(objective, tensor([[0.0], [2.0]]))
    assert 0.9 < found.x[0].item() <= 1.0
    assert found.value[1] == INF


def test_a_start_at_infinity_is_ignored() -> None:
    x0 = tensor([[5.0, 0.0], [0.0, 0.0], [7.0, 7.0]])
    together = solve(walled(INF), x0, group=torch.zeros(3, dtype=torch.long))
    alone = solve(walled(INF), x0[1:2])
    assert torch.equal(together.x, alone.x)
    assert torch.equal(together.value, alone.value)


def test_no_start_that_can_be_evaluated_gives_infinity() -> None:
    x0 = tensor([[5.0, 0.0], [7.0, 7.0], [0.0, 0.0]])
    found = solve(walled(INF), x0, group=torch.tensor([0, 0, 1]))
    assert found.value[0] == INF
    assert found.value[1].isfinite()
    nothing = solve(walled(INF), x0[:2], group=torch.tensor([0, 0]))
    assert nothing.value.tolist() == [INF]
    assert nothing.evaluations == 2


# Groups.


def double_well(x: Tensor, _problem: Tensor) -> tuple[Tensor, Tensor]:
    """Minima near -1 and 1; the one near -1 is lower."""
    return (
        ((x.square() - 1).square() + 0.3 * x).sum(-1),
        4 * x * (x.square() - 1) + 0.3,
    )


def test_a_group_returns_its_best_start() -> None:
    x0 = tensor([[0.9], [-0.6], [1.4], [1.1], [0.8]])
    found = solve(double_well, x0, group=torch.tensor([0, 0, 0, 1, 1]))
    assert found.x.shape == (2, 1)
    assert found.x[0].item() == pytest.approx(-1.0356, abs=1e-3)
    assert found.x[1].item() == pytest.approx(0.9606, abs=1e-3)
    assert found.value[0] < found.value[1]
    value, _ = double_well(found.x, torch.arange(2))
    assert torch.equal(value, found.value)


def test_the_place_of_the_best_start_does_not_matter() -> None:
    x0 = tensor([[0.9], [1.4], [-0.6]])
    one = torch.zeros(3, dtype=torch.long)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        assert solve(double_well, x0[order], group=one).x[0].item() < -1.0


def test_a_start_that_is_behind_but_still_falling_is_not_given_up() -> None:
    """Beside one that is done at once, a far and flat bowl leads lower in the end."""

    def objective(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        center = torch.where(problem[:, None] == 0, 9.0, 1.0)
        stretch = tensor([1.0, 1e-3])
        value = (stretch * (x - center).square()).sum(-1)
        return value - (problem == 1).double(), 2 * stretch * (x - center)

    x0 = tensor([[9.0, 9.0], [60.0, -70.0]])
    found = solve(objective, x0, group=torch.zeros(2, dtype=torch.long))
    assert found.value.item() == pytest.approx(-1.0, abs=1e-6)


def test_groups_need_not_be_contiguous() -> None:
    objective = Quadratics(1, 3, seed=4)

    def shifted(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = objective(x, torch.zeros_like(problem))
        return value + (problem % 2), slope

    x0 = torch.randn(6, 3, generator=generator(1), dtype=torch.float64)
    found = solve(shifted, x0, group=torch.arange(6) % 2)
    assert (found.value[1] - found.value[0]).item() == pytest.approx(1.0, abs=1e-7)


def test_starts_in_one_basin_merge() -> None:
    """They save evaluations, and do not cost accuracy."""
    x0 = torch.randn(8, 2, generator=generator(2), dtype=torch.float64)
    merged = solve(rosenbrock, x0, group=torch.zeros(8, dtype=torch.long))
    apart = solve(rosenbrock, x0)
    assert merged.evaluations < 0.8 * apart.evaluations
    assert merged.value.item() == pytest.approx(apart.value.min().item(), abs=1e-8)


# Exactness.


def test_an_l1_penalty_ends_exactly_at_zero() -> None:
    """½ (w - b)² + λ w on w ≥ 0 has its minimum at max(b - λ, 0)."""
    b = tensor([[2.0, 0.3, -1.0, 0.9, 1.5], [0.1, 0.2, 0.3, -5.0, 0.99]])

    def objective(w: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        value = 0.5 * (w - b[problem]).square().sum(-1) + w.sum(-1)
        return value, w - b[problem] + 1.0

    found = solve(objective, torch.full((2, 5), 0.2, dtype=torch.float64), lower=0.0)
    expected = (b - 1.0).clamp_min(0.0)
    torch.testing.assert_close(found.x, expected, rtol=0.0, atol=1e-4)
    assert torch.equal(found.x == 0.0, expected == 0.0)


def test_an_l1_penalty_on_correlated_variables_ends_exactly_at_zero() -> None:
    objective = Quadratics(10, 8, seed=6)

    def penalized(w: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = objective(w, problem)
        return value + w.sum(-1), slope + 1.0

    found = solve(penalized, torch.full((10, 8), 1 / 8, dtype=torch.float64), lower=0.0)
    _, slope = penalized(found.x, torch.arange(10))
    held = found.x == 0.0
    assert held.any(dim=-1).all()
    assert (slope[held] > -1e-3).all()  # the conditions of Karush, Kuhn and Tucker
    assert (slope[~held].abs() < 1e-3).all()


@pytest.mark.parametrize("lower", [-INF, 0.0])
@pytest.mark.parametrize("p", [2, 5, 24])
def test_a_problem_does_not_depend_on_its_neighbours(lower: float, p: int) -> None:
    """Bit for bit, wherever it stands and whoever else is in the batch."""
    objective = Quadratics(9, p, seed=7)
    x0 = torch.rand(9, p, generator=generator(3), dtype=torch.float64)
    together = solve(objective, x0, lower=lower)

    def some(members: list[int]) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
        index = torch.tensor(members)
        return lambda x, problem: objective(x, index[problem])

    for members in ([0], [8], [3, 1], [8, 7, 6, 5, 4, 3, 2, 1, 0], [2, 4, 6]):
        found = solve(some(members), x0[members], lower=lower)
        assert torch.equal(found.x, together.x[members])
        assert torch.equal(found.value, together.value[members])


def test_rosenbrock_does_not_depend_on_its_neighbours() -> None:
    x0 = tensor([[-1.2, 1.0], [0.0, 0.0], [2.0, -2.0]])
    together = solve(rosenbrock, x0)
    for i in range(3):
        assert torch.equal(solve(rosenbrock, x0[i : i + 1]).x[0], together.x[i])


# Costs.


def test_evaluations_are_counted_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0

    def objective(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal counted
        counted += len(x)
        return rosenbrock(x, problem)

    x0 = tensor([[-1.2, 1.0], [0.0, 0.0]])
    found = solve(objective, x0)
    assert found.evaluations == counted
    assert counted < 2 * 100
    counted = 0
    monkeypatch.setattr(scaml.gp.minimize, "_MOST_ROUNDS", 3)
    assert solve(objective, x0).evaluations == counted == 2 * (1 + 3)


def test_an_interrupted_search_still_returns_the_best_point_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x0 = tensor([[-1.2, 1.0]])
    first, _ = rosenbrock(x0, torch.arange(1))
    monkeypatch.setattr(scaml.gp.minimize, "_MOST_ROUNDS", 4)
    found = solve(rosenbrock, x0)
    value, _ = rosenbrock(found.x, torch.arange(1))
    assert torch.equal(value, found.value)
    assert found.value < first


def test_a_stationary_start_is_its_own_solution() -> None:
    objective = Quadratics(1, 3, seed=8)
    objective.b.zero_()
    found = solve(objective, torch.zeros(1, 3, dtype=torch.float64))
    assert torch.equal(found.x, torch.zeros(1, 3, dtype=torch.float64))
    assert np.isclose(found.value.item(), 0.0)
