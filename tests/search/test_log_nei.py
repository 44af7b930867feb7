"""Noisy expected improvement against mpmath, brute force over joint draws, and BoTorch."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from scaml import MetaData, ScaML, ScaMLGP, SettingError, Task, suggest
from scaml.bench.families import FAMILIES
from scaml.common.parallel import one_thread
from scaml.gp.kernels import KernelName
from scaml.search import log_nei as improvement
from scaml.search.cube import evaluate, maximize_on_cube
from scaml.search.log_nei import (
    NoisyExpectedImprovement,
    log_mean_improvement,
    log_mean_improvement_and_slope,
)
from scaml.search.ucb import UpperConfidenceBound
from tests.brute_force import climb, mean_improvement
from tests.cases import ONE_MODEL, meta_data, pair, query, task_of
from tests.gp.cases import mixed_tasks

META, TABLE = meta_data((9, 8, 7), 2), query(60, 2)
mpmath.mp.dps = 60


@pytest.fixture
def many_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improvement, "_DRAWS", 4096)


def at(X: Tensor, function: NoisyExpectedImprovement) -> Tensor:
    with torch.no_grad():
        values: Tensor = function(X.unsqueeze(-2))
    return values


# The function h of the mean and of its logarithm.


def exact(u: list[float]) -> tuple[float, list[float]]:
    """log of the mean of h, and its slopes Φ(u_s) / Σ h."""
    h = [mpmath.npdf(x) + mpmath.mpf(x) * mpmath.ncdf(x) for x in u]
    total = mpmath.fsum(h)
    return float(mpmath.log(total / len(u))), [float(mpmath.ncdf(x) / total) for x in u]


@pytest.mark.parametrize(
    "u",
    [
        *([3.0], [0.0], [-0.5], [-4.99], [-5.01], [-20.0], [-999.0], [-1001.0], [-1e5]),
        *([1.0, -2.0, -30.0], [-6.0, -7.0, -400.0], [-900.0, -1100.0], [-4.9, -5.1]),
    ],
)
def test_logarithm_and_slopes_are_exact_also_far_out(u: list[float]) -> None:
    value, slopes = exact(u)
    points = torch.tensor([u], dtype=torch.float64, requires_grad=True)
    found = log_mean_improvement(points)
    (gradient,) = torch.autograd.grad(found.sum(), points)
    assert found.item() == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert gradient[0].tolist() == pytest.approx(slopes, rel=1e-9)


def test_rows_of_both_kinds_keep_their_places() -> None:
    u = torch.tensor([[-50.0, -60.0], [1.0, -1.0], [-7.0, -6.0]], dtype=torch.float64)
    expected = [exact(row)[0] for row in u.tolist()]
    assert log_mean_improvement(u).tolist() == pytest.approx(expected, rel=1e-12)


# What it is the logarithm of.


@pytest.mark.parametrize("level", [0.0, 0.8])
@pytest.mark.usefixtures("many_draws")
def test_it_is_the_mean_improvement_over_the_unknown_best_value(level: float) -> None:
    model = pair("se", (9, 8), 5, 2, 0, level=level).model
    new, likely = query(8, 2), 0
    found = at(new, NoisyExpectedImprovement(model)).exp().tolist()
    for x, value in zip(new, found, strict=True):
        expected, error = mean_improvement(model, x, 200_000)
        assert abs(value - expected) < 5 * error + 0.002 * expected + 1e-9
        likely += expected > 0.01
    assert likely > 1


@pytest.mark.parametrize("seed", range(5))
def test_few_draws_choose_a_row_that_many_draws_find_good(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    model = pair("se", (9, 8), 12, 2, seed).model
    chosen = at(TABLE, NoisyExpectedImprovement(model)).argmax()
    monkeypatch.setattr(improvement, "_DRAWS", 4096)
    many = at(TABLE, NoisyExpectedImprovement(model))
    assert many[chosen] >= many.max() - 0.25


def test_without_noise_it_is_expected_improvement_over_the_best_value() -> None:
    model = pair("se", (9, 8), 6, 2, 3).model
    model.load_state_dict({**model.state_dict(), "noise": torch.tensor(1e-12, dtype=torch.float64)})
    theirs = LogExpectedImprovement(model, best_f=model.train_targets.max())
    with torch.no_grad():
        expected = theirs(TABLE.unsqueeze(-2))
    found = at(TABLE, NoisyExpectedImprovement(model))
    hopeful = expected > expected.max() - 5.0
    assert hopeful.sum() > 3
    torch.testing.assert_close(found[hopeful], expected[hopeful], rtol=0, atol=1e-3)


@pytest.mark.usefixtures("many_draws")
def test_fantasies_together_are_the_posterior() -> None:
    """Means average to its mean, and spread by what knowing the values takes from its variance."""
    model = pair("matern52", (9, 8), 6, 2, 1, level=0.5).model
    function = NoisyExpectedImprovement(model)
    with torch.no_grad():
        mean, variance = function.model.of_fantasies(TABLE)
        posterior = model.posterior(TABLE.unsqueeze(-2))
    expected, total = posterior.mean.flatten(), posterior.variance.flatten()
    torch.testing.assert_close(mean.mean(-1), expected, rtol=0, atol=1e-3 * float(total.max().sqrt()))
    torch.testing.assert_close(
        mean.var(-1) + variance, total, rtol=0.02, atol=1e-4 * float(total.max())
    )


def test_fantasies_at_single_points_are_those_of_the_general_posterior() -> None:
    model = NoisyExpectedImprovement(pair("se", (9, 8), 6, 2, 1, level=0.5).model).model
    X = TABLE.clone().requires_grad_()
    mean, variance = model.of_fantasies(X)
    posterior = model.posterior(X.view(-1, 1, 1, 2))  # n x s x 1 x 1
    torch.testing.assert_close(mean, posterior.mean.flatten(1), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(variance, posterior.variance[:, 0].flatten(), rtol=1e-6, atol=1e-8)
    slopes = [
        torch.autograd.grad(v.sum(), X, retain_graph=True)[0] for v in (mean, posterior.mean.flatten(1))
    ]
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-5)


def test_gradient_is_that_of_finite_differences() -> None:
    function = NoisyExpectedImprovement(pair("se", (9, 8), 5, 2, 0).model)
    X = TABLE[at(TABLE, function).argsort(descending=True)[:8]].unsqueeze(-2).requires_grad_()
    assert torch.autograd.gradcheck(function, X, eps=1e-6, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("level", [0.0, 0.8])
@pytest.mark.parametrize("n_t", [1, 6])
@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_the_slope_in_closed_form(kernel: KernelName, n_t: int, level: float) -> None:
    """Against autograd through the general posterior of the fantasies, and central differences."""
    function = NoisyExpectedImprovement(pair(kernel, (9, 8), n_t, 2, 0, level=level).model)
    assert function.has_slope
    X = TABLE.clone().requires_grad_()
    value, slope = function.value_and_slope(TABLE)
    posterior = function.model.posterior(X[:, None, None])  # n x S x 1 x 1
    mean, variance = posterior.mean.flatten(1), posterior.variance[:, 0].flatten()
    expected = function.of_moments(mean, variance)
    (wanted,) = torch.autograd.grad(expected.sum(), X)
    hopeful = expected > expected.max() - 30.0
    assert hopeful.sum() > 5
    torch.testing.assert_close(value[hopeful], expected[hopeful], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(slope[hopeful], wanted[hopeful], rtol=1e-4, atol=1e-4)
    step = 1e-6 * torch.eye(2, dtype=torch.float64)
    for column, shift in enumerate(step):
        difference = (at(TABLE + shift, function) - at(TABLE - shift, function)) / 2e-6
        near = value > value.max() - 10.0
        torch.testing.assert_close(slope[near, column], difference[near], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_the_slope_of_an_average(kernel: KernelName) -> None:
    """Members with tasks of weight 0, and past tasks with columns of their own."""
    prior = ScaML(kernel=kernel, weights="explained").meta_fit(MetaData(mixed_tasks(7)))
    function = NoisyExpectedImprovement(prior.condition(task_of(5, 2)))
    assert function.has_slope
    X = TABLE[:20]
    value, slope = function.value_and_slope(X)
    torch.testing.assert_close(value, at(X, function), rtol=1e-12, atol=1e-12)
    for column, shift in enumerate(1e-6 * torch.eye(2, dtype=torch.float64)):
        difference = (at(X + shift, function) - at(X - shift, function)) / 2e-6
        near = value > value.max() - 10.0
        torch.testing.assert_close(slope[near, column], difference[near], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("far", [0.0, -6.0, -50.0, -1e4])
def test_slopes_of_the_logarithm_are_those_of_autograd(far: float) -> None:
    u = (far + 3.0 * query(7, 5) - 1.0).requires_grad_()
    expected = log_mean_improvement(u)
    (wanted,) = torch.autograd.grad(expected.sum(), u)
    value, slope = log_mean_improvement_and_slope(u.detach())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(slope, wanted, rtol=1e-6, atol=1e-12)


# Units, data, and what is refused.


@given(
    scale=st.floats(-9, 6).map(lambda e: 10.0**e),
    shift=st.floats(-5, 5),
    seed=st.integers(0, 5),
)
def test_units_of_y_add_a_constant(scale: float, shift: float, seed: int) -> None:
    def values(unit: float, offset: float) -> Tensor:
        meta = MetaData([Task(t.X, unit * (t.y + offset), name=t.name) for t in META])
        task = task_of(4, 2, seed=seed)
        prior = ONE_MODEL.meta_fit(meta)
        return at(TABLE, prior.acquisition(prior.condition(Task(task.X, unit * (task.y + offset)))))

    ours, theirs = values(1.0, 0.0), values(scale, shift) - math.log(scale)
    hopeful = ours > ours.max() - 5.0
    torch.testing.assert_close(ours[hopeful], theirs[hopeful], rtol=0, atol=1e-3)


def test_the_same_model_has_the_same_function() -> None:
    model = pair("se", (9, 8), 5, 2, 0).model
    before = torch.get_rng_state()
    values = [at(TABLE, NoisyExpectedImprovement(model)) for _ in range(2)]
    assert torch.equal(*values)
    assert torch.equal(torch.get_rng_state(), before)


def test_points_observed_again_and_again_do_not_hurt() -> None:
    prior = ONE_MODEL.meta_fit(META)
    task = Task(TABLE[:2].repeat(10, 1), torch.arange(20.0) / 20.0)
    function = prior.acquisition(prior.condition(task))
    assert isinstance(function, NoisyExpectedImprovement)
    assert at(TABLE, function).isfinite().all()


def test_best_points_are_the_best_of_some_draw() -> None:
    X = TABLE[:6]
    known = pair("se", (9, 8), 0, 2, 0).model.condition_on_observations(
        X, torch.tensor([[0.0], [5.0], [1.0], [4.999], [-3.0], [0.5]], dtype=torch.float64)
    )
    found = NoisyExpectedImprovement(known).best_points
    assert 1 <= len(found) <= 3
    assert all((X == x).all(-1).any() for x in found)


@pytest.mark.parametrize("batch", [True, False])
def test_models_without_data_or_with_a_batch_are_refused(batch: bool) -> None:
    model: ScaMLGP = pair("se", (9, 8), 0, 2, 0).model
    if batch:
        Y = torch.randn(3, 2, 1, dtype=torch.float64)
        model = model.condition_on_observations(TABLE[:2], Y)
    with pytest.raises(SettingError, match="takes one observation or more, and no batch"):
        NoisyExpectedImprovement(model)


# How it is used.


def test_it_is_the_default_where_there_are_data() -> None:
    prior = ONE_MODEL.meta_fit(META)
    first = prior.acquisition(prior.condition(Task.empty(2)))
    assert isinstance(first, UpperConfidenceBound)
    assert float(first.beta) == 9.0
    later = prior.acquisition(prior.condition(task_of(3, 2)))
    assert isinstance(later, NoisyExpectedImprovement)
    ucb = replace(ONE_MODEL, acquisition="ucb", sqrt_beta=0.0).meta_fit(META)
    function = ucb.acquisition(ucb.condition(task_of(3, 2)))
    assert isinstance(function, UpperConfidenceBound)
    assert float(function.beta) == 0.0


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("n", [1, 6])
def test_rows_of_a_table_are_those_of_the_plain_search(n: int, q: int) -> None:
    """What the prior keeps of a table gives the rows that the model itself gives."""
    prior, task = ONE_MODEL.meta_fit(META), task_of(n, 2)
    ours = suggest(prior, task, q=q, candidates=TABLE, seed=0)
    model, left = prior.condition(task, seed=0), TABLE
    for x in ours:
        values = at(left, NoisyExpectedImprovement(model))
        assert torch.equal(left[values.argmax()], x)
        left = left[(left != x).any(-1)]
        model = model.condition_on_observations(x[None], model.posterior(x[None]).mean)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", ["branin", "hartmann3", "hartmann6"])
def test_maximum_is_that_of_a_long_search(family: str, seed: int) -> None:
    """Beside the best data lie peaks that a thousand raw points miss."""
    problem, n = FAMILIES[family], (4, 10, 20)[seed % 3]
    prior = ONE_MODEL.meta_fit(problem.meta_data(tasks=8, points=32, seed=seed), seed=seed)
    function, generator = problem.draw(seed=1000 + seed), torch.Generator().manual_seed(seed)
    X = torch.rand(n, problem.d, generator=generator, dtype=torch.float64)
    shifts = torch.randn(n // 2, problem.d, generator=generator, dtype=torch.float64)
    X[: n // 2] = (X[function(X).argmax()] + 0.03 * shifts).clamp(0.0, 1.0)
    task = Task(X, function(X))
    with one_thread():
        acquisition = prior.acquisition(prior.condition(task, seed=seed))
        assert isinstance(acquisition, NoisyExpectedImprovement)
        x = suggest(prior, task, seed=seed)[0]
        found = evaluate(acquisition, x[None]).item()
        best = max(
            long_search(acquisition, task.X[task.y.argsort(descending=True)[:5]]),
            evaluate(acquisition, maximize_on_cube(acquisition, problem.d, seed=99)[None]).item(),
        )
    assert found >= best - 0.01


def long_search(acquisition: NoisyExpectedImprovement, best: Tensor) -> float:
    """The maximum of 20,000 points everywhere and 4000 near the best data, the top 20 refined."""
    generator = torch.Generator().manual_seed(7)
    d = best.shape[-1]
    points = [torch.rand(20_000, d, generator=generator, dtype=torch.float64)]
    for width in (0.001, 0.01, 0.03, 0.1):
        shifts = torch.randn(1000, d, generator=generator, dtype=torch.float64)
        points.append((best.repeat(1000 // len(best) + 1, 1)[:1000] + width * shifts).clamp(0.0, 1.0))
    X = torch.cat(points)
    values = evaluate(acquisition, X)
    return max(float(values.max()), float(climb(acquisition, X[values.topk(20).indices], rate=0.003)))
