from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml.errors import FitError
from scaml.gp.kernels import KernelName
from scaml.model.fit_theta import Cache, _bounds, _starts, fit_theta, negative_log_posterior
from scaml.model.hyperparameters import Coordinates, ThetaPriors
from scaml.model.weight_priors import weight_prior
from tests.weights_cases import (
    BELIEFS,
    KERNELS,
    as_vector,
    bounds,
    dense,
    fitted,
    points,
    problem,
    random,
    scipy_best,
    tensor,
)

each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_kind = pytest.mark.parametrize("kind", BELIEFS)


# The objective.


@each_kernel
@each_kind
@pytest.mark.parametrize(("tasks", "n", "d"), [(1, 1, 1), (3, 8, 2), (8, 15, 3)])
def test_value_and_slope_are_those_of_the_dense_posterior(
    kernel: KernelName, kind: str, tasks: int, n: int, d: int
) -> None:
    cache = problem(tasks, n, d)
    batch = points(cache, kind, batch=4)
    value, slope = negative_log_posterior(kernel, cache, BELIEFS[kind], batch)
    assert value.shape == (4,)
    assert slope.shape == batch.shape
    for i, row in enumerate(batch):
        x = row.clone().requires_grad_()
        expected = dense(kernel, cache, kind, x)
        (gradient,) = torch.autograd.grad(expected, x)
        torch.testing.assert_close(value[i], expected.detach(), rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(slope[i], gradient, rtol=1e-6, atol=1e-8)


@each_kernel
@each_kind
def test_slope_is_that_of_central_differences(kernel: KernelName, kind: str) -> None:
    cache = problem(3, 8, 2)
    (x,) = points(cache, kind, batch=1, seed=1)
    h = 1e-5
    steps = h * torch.eye(len(x), dtype=torch.float64)
    differences = [
        (dense(kernel, cache, kind, x + step) - dense(kernel, cache, kind, x - step)) / (2 * h)
        for step in steps
    ]
    _, slope = negative_log_posterior(kernel, cache, BELIEFS[kind], x[None])
    torch.testing.assert_close(slope[0], torch.stack(differences), rtol=1e-6, atol=1e-6)


@each_kernel
def test_slope_at_weight_zero_is_the_one_sided_derivative(kernel: KernelName) -> None:
    """The bound where most weights end."""
    cache = problem(3, 8, 2)
    (x,) = points(cache, "positive", batch=1)
    x[:3] = 0.0
    h = 1e-7
    value = dense(kernel, cache, "positive", x)
    _, slope = negative_log_posterior(kernel, cache, BELIEFS["positive"], x[None])
    for m in range(3):
        beside = x.clone()
        beside[m] = h
        difference = (dense(kernel, cache, "positive", beside) - value) / h
        torch.testing.assert_close(slope[0, m], difference, rtol=1e-4, atol=1e-4)


@each_kernel
def test_weights_of_zero_leave_a_plain_gp(kernel: KernelName) -> None:
    cache = problem(3, 8, 2)
    x = points(cache, "positive", batch=2)
    x[:, :3] = 0.0
    none = Cache(cache.X, cache.z, cache.mean[:0], cache.covariance[:0])
    value, slope = negative_log_posterior(kernel, cache, BELIEFS["positive"], x)
    plain, plain_slope = negative_log_posterior(kernel, none, BELIEFS["positive"], x[:, 3:])
    torch.testing.assert_close(value, plain, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(slope[:, 3:], plain_slope, rtol=1e-12, atol=1e-12)


# The fit.


@each_kind
@pytest.mark.parametrize("tasks", [1, 5])
def test_without_data_all_tasks_count_alike_and_the_rest_is_the_priors_center(
    kind: str, tasks: int
) -> None:
    found, factor = fit_theta("se", problem(tasks, 0, 3), BELIEFS[kind], seed=3)
    together = 0.9 if kind == "shared" else 1.0
    expected = torch.full((tasks,), together / tasks, dtype=torch.float64)
    torch.testing.assert_close(found.weights, expected)
    assert factor == 1.0
    assert found.level.item() == BELIEFS[kind].level
    # Medians of the log-normals of appendix C.
    np.testing.assert_allclose(found.lengthscale.numpy(), [np.exp(0.5)] * 3, rtol=1e-12)
    center = -1.2 if kind == "shared" else -2.0
    assert found.outputscale.item() == pytest.approx(np.exp(center), rel=1e-12)
    assert found.noise.item() == pytest.approx(np.exp(-8.0), rel=1e-12)
    assert found.outputscale.shape == found.noise.shape == ()


FITS: list[tuple[KernelName, str, int, int, int]] = [
    ("se", "positive", 1, 1, 1),
    ("se", "positive", 4, 6, 2),
    ("se", "positive", 8, 20, 3),
    ("se", "positive", 20, 5, 2),
    ("se", "signed", 4, 6, 2),
    ("se", "signed", 7, 15, 2),
    ("matern52", "positive", 4, 12, 2),
    ("matern52", "positive", 8, 25, 4),
    ("matern52", "signed", 5, 10, 1),
    ("se", "learned", 4, 6, 2),
    ("matern52", "learned", 8, 20, 3),
    ("se", "shared", 1, 1, 1),
    ("se", "shared", 4, 6, 2),
    ("se", "shared", 20, 5, 2),
    ("matern52", "shared", 8, 25, 4),
]


@pytest.mark.parametrize(("kernel", "kind", "tasks", "n", "d"), FITS)
@pytest.mark.parametrize("seed", [0, 1])
def test_scipy_cannot_improve_a_fit(
    kernel: KernelName, kind: str, tasks: int, n: int, d: int, seed: int
) -> None:
    cache = problem(tasks, n, d, seed=100 * seed + tasks)
    found = as_vector(kernel, cache, kind, seed)
    ours = dense(kernel, cache, kind, found).item() / n
    assert ours <= scipy_best(kernel, cache, kind, found[None]) + 1e-5
    for value, (low, high) in zip(found.tolist(), bounds(cache, kind), strict=True):
        assert low - 1e-9 <= value <= high + 1e-9


def test_fits_are_as_good_as_scipys_from_the_same_starts() -> None:
    """Several optima exist, so that one of two good solvers may have better luck once in a while."""
    losses = []
    for kernel, kind, tasks, n, d in FITS:
        cache = problem(tasks, n, d, seed=1000 + tasks)
        found = as_vector(kernel, cache, kind)
        theirs = scipy_best(kernel, cache, kind, _starts(cache, BELIEFS[kind], random(0)))
        ours = dense(kernel, cache, kind, found).item() / n
        if ours > theirs + 1e-4:
            losses.append((kernel, kind, tasks, n, d, ours - theirs))
    assert len(losses) <= 1, losses


@each_kind
def test_the_first_start_is_the_default_and_all_lie_inside_the_bounds(kind: str) -> None:
    starts = _starts(problem(4, 5, 2), BELIEFS[kind], random(0))
    # The paper's vector has M weights and d + 2 kernel hyperparameters; ours adds c and s where they
    # are learned.
    ours = {"positive": 0, "signed": 0, "learned": 1, "shared": 2}[kind]
    assert starts.shape == (6, 4 + ours + 2 + 2)
    share = 0.9 if kind == "shared" else 1.0
    torch.testing.assert_close(starts[0, :4], torch.full((4,), share / 4, dtype=torch.float64))
    lower, upper = _bounds(Coordinates.of(4, 2, BELIEFS[kind]), BELIEFS[kind])
    assert (upper > lower).all()  # no coordinate is pinned
    assert (starts >= lower).all()
    assert (starts <= upper).all()


@each_kernel
def test_the_task_that_resembles_is_found_and_others_are_exactly_zero(kernel: KernelName) -> None:
    found = fitted(kernel, problem(10, 20, 2), "positive")
    assert (found.weights >= 0).all()
    assert found.weights.argmax() == 0
    assert found.weights[0].item() == pytest.approx(1.0, abs=0.2)
    assert (found.weights == 0.0).sum() >= 5


def test_weights_at_zero_are_pushed_against_the_bound() -> None:
    """The condition of Karush, Kuhn and Tucker, with the slope of the dense posterior."""
    cache = problem(10, 20, 2, seed=3)
    x = as_vector("se", cache, "positive").requires_grad_()
    (gradient,) = torch.autograd.grad(dense("se", cache, "positive", x), x)
    zero = x.detach()[:10] == 0.0
    assert zero.any()
    assert (gradient[:10][zero] > -1e-2).all()
    assert (gradient[:10][~zero].abs() < 1e-1).all()


@each_kernel
def test_signed_weights_find_the_mirrored_task(kernel: KernelName) -> None:
    cache = problem(3, 20, 2, sign=-1.0)
    signed = fitted(kernel, cache, "signed")
    assert signed.weights[0].item() == pytest.approx(-1.0, abs=0.2)
    positive = fitted(kernel, cache, "positive")
    assert positive.weights[0] == 0.0


@each_kind
def test_same_seed_same_numbers(kind: str) -> None:
    cache = problem(4, 8, 2)
    first, second = (as_vector("se", cache, kind, seed=5) for _ in range(2))
    assert torch.equal(first, second)


@each_kind
def test_the_order_of_tasks_does_not_matter(kind: str) -> None:
    """Up to the drawn starts, which belong to places: the optimum is the same."""
    cache, order = problem(4, 15, 2), [2, 0, 3, 1]
    turned = Cache(cache.X, cache.z, cache.mean[order], cache.covariance[order])
    first, second = fitted("se", cache, kind), fitted("se", turned, kind)
    torch.testing.assert_close(second.weights, first.weights[order], rtol=0.0, atol=0.03)


@each_kind
def test_no_tasks_leave_a_plain_gp(kind: str) -> None:
    some = problem(1, 8, 2)
    cache = Cache(some.X, some.z, some.mean[:0], some.covariance[:0])
    assert fitted("se", cache, kind).weights.shape == (0,)
    starts = _starts(cache, BELIEFS[kind], random(0))
    ours = dense("se", cache, kind, as_vector("se", cache, kind)).item() / 8
    assert ours <= scipy_best("se", cache, kind, starts) + 1e-4


def broken(change: Callable[[Tensor], Tensor]) -> Cache:
    cache = problem(2, 5, 1)
    return Cache.of(cache.X, cache.z, cache.mean, change(cache.covariances().view(2, 5, 5)))


@pytest.mark.parametrize(
    "change",
    [lambda C: C * float("nan"), lambda C: -1e6 * torch.eye(5).double().expand_as(C)],
)
def test_a_test_task_that_no_start_can_evaluate_is_a_fit_error(change: Any) -> None:
    with pytest.raises(FitError, match=r"test-task; look for .*\.$"):
        fit_theta("se", broken(change), BELIEFS["positive"], seed=0)


# The scale and the level.


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_a_learned_scale_makes_up_for_a_wrong_one(factor: float) -> None:
    """With a wide belief, y_t in other units has the same weights in those units."""
    cache = problem(4, 20, 2)
    wide = ThetaPriors(weight_prior("positive"), level=0.5 * factor**2, spread=10.0)
    other = Cache(cache.X, factor * cache.z, cache.mean, cache.covariance)
    found, scale = fit_theta("se", other, wide, seed=0)
    base, unit = fit_theta(
        "se", cache, ThetaPriors(weight_prior("positive"), level=0.5, spread=10.0), seed=0
    )
    torch.testing.assert_close(found.weights, base.weights, rtol=0.02, atol=0.02)
    assert (scale / unit).item() == pytest.approx(factor, rel=0.05)


def test_the_level_of_the_fit_is_in_its_own_scale() -> None:
    cache = problem(4, 12, 2)
    found, scale = fit_theta("se", cache, BELIEFS["shared"], seed=0)
    assert scale != 1.0
    assert found.level.item() == pytest.approx(2.0 / scale.item() ** 2, rel=1e-12)


def test_shared_weights_stay_together_where_one_is_known_little_about() -> None:
    """After one observation, the paper's prior keeps few tasks; the shared one keeps all."""
    cache = problem(8, 1, 2, seed=5)
    assert (fitted("se", cache, "positive").weights == 0).any()
    shared = fitted("se", cache, "shared").weights
    assert (shared > 0).all()
    assert shared.max() < 4 * shared.min()


def test_one_task_can_stand_out_of_shared_weights() -> None:
    beliefs = ThetaPriors(weight_prior("shared", 0.9, 0.4))
    found, _ = fit_theta("se", problem(10, 20, 2), beliefs, seed=0)
    assert found.weights[0].item() == pytest.approx(1.0, abs=0.2)
    assert (found.weights[0] > 5 * found.weights[1:]).all()


@each_kernel
def test_shared_weights_can_be_mirrored_as_a_whole(kernel: KernelName) -> None:
    beliefs = ThetaPriors(weight_prior("shared", 0.9, 0.4), level=1.0)
    straight, _ = fit_theta(kernel, problem(3, 20, 2), beliefs, seed=0)
    mirrored, _ = fit_theta(kernel, problem(3, 20, 2, sign=-1.0), beliefs, seed=0)
    assert (straight.weights >= 0).all()
    assert (mirrored.weights <= 0).all()
    assert mirrored.weights[0].item() == pytest.approx(-1.0, abs=0.3)
    fixed = ThetaPriors(weight_prior("shared", 0.9, 0.4))
    positive, _ = fit_theta(kernel, problem(3, 20, 2, sign=-1.0), fixed, seed=0)
    assert (positive.weights >= 0).all()


@each_kernel
def test_a_mirrored_past_is_the_past_with_other_signs(kernel: KernelName) -> None:
    """Value and slope with a sign are those without it of the negated means, less the odds."""
    cache, beliefs = problem(3, 8, 2), BELIEFS["shared"]
    turned = Cache(cache.X, cache.z, -cache.mean, cache.covariance)
    x, sign = points(cache, "shared", batch=2), tensor([1.0, -1.0])
    value, slope = negative_log_posterior(kernel, cache, beliefs, x, sign)
    plain, plain_slope = negative_log_posterior(kernel, cache, beliefs, x[:1])
    other, other_slope = negative_log_posterior(kernel, turned, beliefs, x[1:])
    torch.testing.assert_close(value[:1], plain)
    torch.testing.assert_close(value[1:], other + np.log(0.95 / 0.05))
    torch.testing.assert_close(slope, torch.cat([plain_slope, other_slope]))
