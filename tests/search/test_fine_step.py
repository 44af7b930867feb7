"""The step that finds the last digits beside the best point."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scaml import ScaML, Task
from scaml.gp.posterior import mean_and_variance
from scaml.search.fine_step import fine_step
from tests.cases import meta_data

WIDTH = 1e-3
FREE = torch.zeros(2, dtype=torch.bool)
BEST = torch.tensor([0.43, 0.61], dtype=torch.float64)
PRIORS = {w: ScaML(weights=w).meta_fit(meta_data((10, 14), 2)) for w in ("shared", "explained")}
both = pytest.mark.parametrize("weights", list(PRIORS))


def bowl(X: Tensor) -> Tensor:
    return -(X - BEST).square().sum(-1)


def points(n: int, seed: int, width: float = 0.02) -> Tensor:
    """Some beside the best point, no two of them closer than a search would return to."""
    sobol = torch.quasirandom.SobolEngine(2, scramble=True, seed=seed)
    return BEST + width * (2.0 * sobol.draw(n, dtype=torch.float64) - 1.0)


def near_the_best(seed: int = 0) -> Task:
    """The last point is the best, at a distance of 4e-4."""
    X = torch.cat([points(10, seed, 0.3), points(8, seed), BEST[None] + 4e-4])
    return Task(X, bowl(X))


@both
def test_it_finds_what_the_noise_of_the_model_hides(weights: str) -> None:
    task = near_the_best()
    x = fine_step(PRIORS[weights].condition(task), WIDTH, FREE, seed=0)
    assert x is not None
    assert -bowl(x) < 0.01 * -task.y.max()


@both
def test_an_exact_model_repeats_its_observations(weights: str) -> None:
    task = near_the_best()
    model = PRIORS[weights].condition(task)
    mean = mean_and_variance(model.exact().posterior(task.X))[0].flatten().detach()
    torch.testing.assert_close(mean, task.y, rtol=0.0, atol=1e-6)


@both
def test_it_is_pure(weights: str) -> None:
    model = PRIORS[weights].condition(near_the_best())
    first, again = (fine_step(model, WIDTH, FREE, seed=3) for _ in range(2))
    assert first is not None
    assert again is not None
    assert torch.equal(first, again)


def test_a_fixed_column_keeps_its_value() -> None:
    task = near_the_best()
    fixed = torch.tensor([True, False])
    x = fine_step(PRIORS["shared"].condition(task), WIDTH, fixed, seed=0)
    assert x is not None
    assert x[0] == task.X[-1, 0]
    assert abs(float(x[1] - BEST[1])) < 1e-4
    assert fine_step(PRIORS["shared"].condition(task), WIDTH, fixed | True, seed=0) is None


def test_a_slope_is_left_to_the_usual_search() -> None:
    X = points(12, 0, 0.3)
    assert fine_step(PRIORS["shared"].condition(Task(X, X.sum(-1))), WIDTH, FREE, seed=0) is None


def test_an_edge_of_the_cube_may_be_the_maximum() -> None:
    """The objective rises to a corner: what lies beyond it is no business of any search."""
    X = torch.cat([points(12, 0, 0.3), torch.tensor([[0.9996, 0.9996]], dtype=torch.float64)])
    x = fine_step(PRIORS["shared"].condition(Task(X, X.sum(-1))), WIDTH, FREE, seed=0)
    assert x is not None
    assert x.min() > 0.9999


def test_a_best_value_that_was_seen_elsewhere_is_a_plateau() -> None:
    task = near_the_best()
    task = task.append(torch.tensor([[0.9, 0.1]]), task.y[-1:])
    assert fine_step(PRIORS["shared"].condition(task), WIDTH, FREE, seed=0) is None


def test_two_returns_without_a_gain_end_it() -> None:
    task, model = near_the_best(), PRIORS["shared"]
    for gainless in range(3):
        found = fine_step(model.condition(task), WIDTH, FREE, seed=0)
        assert (found is None) == (gainless == 2)
        task = task.append(task.X[18:19] + 1e-4 * (gainless + 1), task.y[18:19] - 1e-7 * (gainless + 1))


@both
@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(1, 20),
    distinct=st.integers(1, 3),
    width=st.sampled_from([5e-4, 0.02, 0.4]),
    seed=st.integers(0, 99),
)
def test_nothing_is_expected_where_the_best_value_was_seen_twice(
    weights: str, n: int, distinct: int, width: float, seed: int
) -> None:
    X = points(n, seed, width)
    y = torch.arange(n).remainder(distinct).double()
    x = fine_step(PRIORS[weights].condition(Task(X, y)), WIDTH, FREE, seed=0)
    assert x is None or int((y == y.max()).sum()) == 1


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 99), noise=st.floats(-6.0, 0.0), repeated=st.integers(0, 6))
def test_it_fails_on_no_data(seed: int, noise: float, repeated: int) -> None:
    """Repeated rows with different values contradict exact observations."""
    X = points(12, seed, 0.3)
    X = torch.cat([X, X[:repeated]])
    draws = torch.randn(len(X), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    model = PRIORS["explained"].condition(Task(X, bowl(X) + 10.0**noise * draws))
    x = fine_step(model, WIDTH, FREE, seed=0)
    assert x is None or ((x >= 0) & (x <= 1)).all()


def test_an_empty_task_has_no_best_point() -> None:
    assert fine_step(PRIORS["shared"].condition(Task.empty(2)), WIDTH, FREE, seed=0) is None


def test_a_model_that_cannot_be_exact_expects_nothing() -> None:
    assert fine_step(object(), WIDTH, FREE, seed=0) is None
