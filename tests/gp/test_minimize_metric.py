"""A rough inverse Hessian as the metric of a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.gp.minimize_cases import Quadratics, solve


def test_with_the_inverse_hessian_as_metric_the_first_full_step_ends_at_the_minimum() -> None:
    objective = Quadratics(6, 5, seed=3)
    exact = torch.linalg.solve(objective.Q, objective.b)
    inverse = torch.linalg.inv(objective.Q).numpy()
    asked: list[int] = []

    def metric(x: Any, free: Any, problem: Any) -> Callable[[Any], Any]:
        asked.append(len(x))
        assert free.all()
        return lambda v: (inverse[problem] @ v[:, :, None])[:, :, 0]

    start = exact + torch.linspace(-1.0, 1.0, 30, dtype=torch.float64).view(6, 5)
    found = solve(objective, start, metric=metric)
    assert found.evaluations <= 3 * 6 < solve(objective, start).evaluations
    assert asked[0] == 6
    torch.testing.assert_close(found.x, exact, rtol=0.0, atol=1e-6)


def test_a_metric_sees_which_variables_are_held() -> None:
    """Both minima are at a corner; a wrong metric costs steps, not the minimum."""
    objective = Quadratics(4, 3, seed=5)
    held: list[bool] = []

    def metric(x: Any, free: Any, problem: Any) -> Callable[[Any], Any]:
        held.append(not free.all())
        return lambda v: np.array([0.5, 2.0, 1.0]) * v

    start = torch.zeros(4, 3, dtype=torch.float64)
    found = solve(objective, start, lower=-0.05, upper=0.05, metric=metric)
    expected = solve(objective, start, lower=-0.05, upper=0.05)
    assert any(held)
    torch.testing.assert_close(found.value, expected.value, rtol=1e-8, atol=1e-10)
