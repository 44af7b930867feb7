"""Bounds that differ between the problems of a batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from scipy.optimize import minimize as scipy_minimize
from torch import Tensor

from scaml.gp.minimize import Minimum, Objective, minimize

INF = float("inf")
PROBLEMS = 10


def quadratics(p: int) -> tuple[Tensor, Tensor]:
    """Q and b of ½ xᵀ Q x - bᵀ x."""
    generator = torch.Generator().manual_seed(p)
    A = torch.randn(PROBLEMS, p, p, generator=generator, dtype=torch.float64)
    b = 2.0 * torch.randn(PROBLEMS, p, generator=generator, dtype=torch.float64)
    return A @ A.mT / p + 0.3 * torch.eye(p, dtype=torch.float64), b


def objective_of(p: int, members: list[int]) -> Objective:
    """Of some of the problems; no row's bits depend on its neighbours."""
    (Q, b), index = quadratics(p), torch.tensor(members)

    def objective(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        chosen = index[problem]
        Qx = (Q[chosen] * x[:, None]).sum(-1)
        return (x * (0.5 * Qx - b[chosen])).sum(-1), Qx - b[chosen]

    return objective


def bounds(p: int) -> tuple[Tensor, Tensor]:
    """Boxes of different places and sizes; some sides are open, some variables are fixed."""
    generator = torch.Generator().manual_seed(50 + p)
    lower = torch.randn(PROBLEMS, p, generator=generator, dtype=torch.float64)
    upper = lower + torch.rand(PROBLEMS, p, generator=generator, dtype=torch.float64)
    lower[1], upper[2] = -INF, INF
    lower[3], upper[3] = -INF, INF
    upper[4, 0] = lower[4, 0]
    upper[5] = lower[5]
    return lower, upper


def solve(p: int, members: list[int], lower: Tensor, upper: Tensor, group: Tensor) -> Minimum:
    generator = torch.Generator().manual_seed(99)
    x0 = torch.randn(PROBLEMS, p, generator=generator, dtype=torch.float64)[members]
    return minimize(objective_of(p, members), x0, lower, upper, group, same_basin=1e-6)


EVERY = list(range(PROBLEMS))
each_size = pytest.mark.parametrize("p", [1, 3, 6])


@each_size
def test_every_problem_keeps_to_its_own_bounds_and_ends_where_scipy_ends(p: int) -> None:
    lower, upper = bounds(p)
    found = solve(p, EVERY, lower, upper, torch.arange(PROBLEMS))
    assert (found.x >= lower).all()
    assert (found.x <= upper).all()
    assert torch.equal(found.x[5], lower[5])
    objective = objective_of(p, EVERY)
    for i in EVERY:

        def function(x: Any, i: int = i) -> tuple[float, Any]:
            value, slope = objective(torch.tensor(x)[None], torch.tensor([i]))
            return value.item(), slope[0].numpy()

        box = list(zip(lower[i].tolist(), upper[i].tolist(), strict=True))
        start = torch.zeros(p, dtype=torch.float64).clamp(lower[i], upper[i]).numpy()
        options = {"ftol": 1e-15, "gtol": 1e-10}
        expected = scipy_minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=box, options=options
        ).fun
        assert found.value[i].item() == pytest.approx(expected, abs=2e-8)


@each_size
def test_no_point_outside_the_bounds_of_its_problem_is_evaluated(p: int) -> None:
    lower, upper = bounds(p)
    inner = objective_of(p, EVERY)
    seen = 0

    def objective(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal seen
        seen += len(x)
        assert (x >= lower[problem]).all()
        assert (x <= upper[problem]).all()
        return inner(x, problem)

    x0 = 5.0 * torch.randn(PROBLEMS, p, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = minimize(objective, x0, lower, upper, torch.arange(PROBLEMS), same_basin=1e-6)
    assert seen == found.evaluations


@each_size
@pytest.mark.parametrize("members", [[0], [4], [5], [7, 1, 3], EVERY[::-1]], ids=str)
def test_bounds_of_a_batch_are_those_of_separate_calls_bit_for_bit(p: int, members: list[int]) -> None:
    lower, upper = bounds(p)
    together = solve(p, EVERY, lower, upper, torch.arange(PROBLEMS))
    some = solve(p, members, lower[members], upper[members], torch.arange(len(members)))
    assert torch.equal(some.x, together.x[members])
    assert torch.equal(some.value, together.value[members])
    for place, i in enumerate(members):
        alone = solve(p, [i], lower[i], upper[i], torch.zeros(1, dtype=torch.long))  # p bounds
        assert torch.equal(alone.x[0], some.x[place])
        assert torch.equal(alone.value[0], some.value[place])


@each_size
def test_the_same_bounds_for_all_may_be_given_once(p: int) -> None:
    lower, upper = (bound[0] for bound in bounds(p))
    group = torch.arange(PROBLEMS)
    once = solve(p, EVERY, lower, upper, group)
    repeated = solve(p, EVERY, lower.expand(PROBLEMS, p), upper.expand(PROBLEMS, p), group)
    assert torch.equal(once.x, repeated.x)
    assert torch.equal(once.value, repeated.value)
    assert once.evaluations == repeated.evaluations


def test_a_group_takes_the_best_of_boxes() -> None:
    """(x - 3.2)² in [0, 1], [1, 2] and [4, 9]."""
    lower, upper = (torch.tensor(v, dtype=torch.float64)[:, None] for v in ([0, 1, 4], [1, 2, 9]))

    def objective(x: Tensor, _problem: Tensor) -> tuple[Tensor, Tensor]:
        return (x - 3.2).square().sum(-1), 2 * (x - 3.2)

    x0, group = torch.full((3, 1), 3.2, dtype=torch.float64), torch.zeros(3, dtype=torch.long)
    found = minimize(objective, x0, lower, upper, group, same_basin=1e-6)
    assert found.x.tolist() == [[4.0]]
