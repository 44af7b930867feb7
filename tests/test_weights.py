from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize as scipy_minimize
from torch import Tensor
from torch.distributions import Exponential, LogNormal, MultivariateNormal, Normal

from scaml.errors import FitError
from scaml.hyperpriors import TEST_TASK, WEIGHTS, WeightsName
from scaml.kernels import KernelName
from scaml.weights import Cache, Hyperparameters, _starts, fit_weights, negative_log_posterior

KERNELS: tuple[KernelName, ...] = ("se", "matern52")
KINDS: tuple[WeightsName, ...] = ("positive", "signed")
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_kind = pytest.mark.parametrize("kind", KINDS)


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def correlations(kernel: KernelName, X: Tensor, Z: Tensor, lengthscale: Tensor) -> Tensor:
    """R from its definition; 1 where points coincide, also for autograd."""
    squared = ((X[:, None] - Z[None]) / lengthscale).square().sum(-1)
    if kernel == "se":
        return torch.exp(-squared / 2)
    equal = squared == 0
    r = torch.where(equal, 1.0, squared).sqrt() * 5**0.5
    return torch.where(equal, 1.0, (1 + r + r.square() / 3) * torch.exp(-r))


def posterior(X: Tensor, y: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """μ_m and Σ_m at the test inputs, of a meta-task's GP with fixed hyperparameters."""
    lengthscale = torch.full((X.shape[1],), 0.4, dtype=torch.float64)
    K = correlations("se", X, X, lengthscale) + 1e-3 * torch.eye(len(X), dtype=torch.float64)
    k = correlations("se", X, at, lengthscale)
    solved = torch.linalg.solve(K, k)
    return solved.T @ y, correlations("se", at, at, lengthscale) - k.T @ solved


def problem(tasks: int, n: int, d: int, seed: int = 0, sign: float = 1.0) -> Cache:
    """Meta-tasks are shifted waves; the test-task is `sign` times the first of them, with noise."""
    generator = random(seed)
    frequency = 1.0 + 3.0 * torch.rand(tasks, d, generator=generator, dtype=torch.float64)
    shift = 6.0 * torch.rand(tasks, generator=generator, dtype=torch.float64)
    at = torch.rand(n, d, generator=generator, dtype=torch.float64)
    means, covariances = [], []
    for m in range(tasks):
        X = torch.rand(6 + 4 * d, d, generator=generator, dtype=torch.float64)
        mean, covariance = posterior(X, 1.4 * torch.sin(X @ frequency[m] + shift[m]), at)
        means.append(mean)
        covariances.append(covariance.flatten())
    noise = 0.05 * torch.randn(n, generator=generator, dtype=torch.float64)
    z = sign * 1.4 * torch.sin(at @ frequency[0] + shift[0]) + noise
    return Cache(X=at, z=z, mean=torch.stack(means), covariance=torch.stack(covariances))


def points(cache: Cache, kind: WeightsName, batch: int, seed: int = 0) -> Tensor:
    """Random (w, log ℓ, log o, log σ²) around typical values."""
    tasks, d = len(cache.mean), cache.X.shape[1]
    x = torch.randn(batch, tasks + d + 2, generator=random(seed), dtype=torch.float64) * 0.6
    if kind == "positive":
        x[:, :tasks].abs_()
    x[:, -1] -= 5.0
    return x


def dense(kernel: KernelName, cache: Cache, kind: WeightsName, x: Tensor) -> Tensor:
    """-log p(y_t | D_1:M, θ_t) - log p(θ_t) at one x, from Theorem 1 and appendix C alone."""
    tasks, n = cache.mean.shape
    w, lengthscale, outputscale, noise = x[:tasks], x[tasks:-2].exp(), x[-2].exp(), x[-1].exp()
    mean = sum((w[m] * cache.mean[m] for m in range(tasks)), torch.zeros(n, dtype=torch.float64))
    covariance = outputscale * correlations(kernel, cache.X, cache.X, lengthscale)
    for m in range(tasks):
        covariance = covariance + w[m].square() * cache.covariance[m].view(n, n)
    covariance = covariance + noise * torch.eye(n, dtype=torch.float64)
    likelihood = MultivariateNormal(mean, covariance).log_prob(cache.z)
    one = tensor(1.0)
    weights: Any = Exponential(one) if kind == "positive" else Normal(0.0 * one, one)
    prior = (
        weights.log_prob(w).sum()
        + LogNormal(tensor(0.5), tensor(1.5)).log_prob(lengthscale).sum()
        + LogNormal(tensor(-2.0), tensor(3.0)).log_prob(outputscale)
        + LogNormal(tensor(-8.0), tensor(2.0)).log_prob(noise)
    )
    result: Tensor = -likelihood - prior
    return result


def as_vector(found: Hyperparameters) -> Tensor:
    kernel = torch.cat([found.lengthscale, found.outputscale.view(1), found.noise.view(1)]).log()
    return torch.cat([found.weights, kernel])


def bounds(cache: Cache, kind: WeightsName) -> list[tuple[float, float]]:
    """Of appendix C, in the order of x."""
    weights = (0.0, np.inf) if kind == "positive" else (-np.inf, np.inf)
    kernel = (np.log(1e-4), np.log(1e2))
    d = cache.X.shape[1]
    return [weights] * len(cache.mean) + [kernel] * (d + 1) + [(np.log(1e-8), np.log(1e-2))]


def scipy_best(kernel: KernelName, cache: Cache, kind: WeightsName, starts: Tensor) -> float:
    """The lowest value per point that L-BFGS-B finds from any of the starts."""
    n = len(cache.z)

    def function(x: Any) -> tuple[float, Any]:
        value, slope = negative_log_posterior(kernel, cache, WEIGHTS[kind], tensor(x)[None])
        return value.item() / n, slope[0].numpy() / n

    options = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-7}
    box = bounds(cache, kind)
    return min(
        float(
            scipy_minimize(
                function, start.numpy(), jac=True, method="L-BFGS-B", bounds=box, options=options
            ).fun
        )
        for start in starts
    )


# The objective.


@each_kernel
@each_kind
@pytest.mark.parametrize(("tasks", "n", "d"), [(1, 1, 1), (3, 8, 2), (8, 15, 3)])
def test_value_and_slope_are_those_of_the_dense_posterior(
    kernel: KernelName, kind: WeightsName, tasks: int, n: int, d: int
) -> None:
    cache = problem(tasks, n, d)
    batch = points(cache, kind, batch=4)
    value, slope = negative_log_posterior(kernel, cache, WEIGHTS[kind], batch)
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
def test_slope_is_that_of_central_differences(kernel: KernelName, kind: WeightsName) -> None:
    cache = problem(3, 8, 2)
    (x,) = points(cache, kind, batch=1, seed=1)
    h = 1e-5
    steps = h * torch.eye(len(x), dtype=torch.float64)
    differences = [
        (dense(kernel, cache, kind, x + step) - dense(kernel, cache, kind, x - step)) / (2 * h)
        for step in steps
    ]
    _, slope = negative_log_posterior(kernel, cache, WEIGHTS[kind], x[None])
    torch.testing.assert_close(slope[0], torch.stack(differences), rtol=1e-6, atol=1e-6)


@each_kernel
def test_slope_at_weight_zero_is_the_one_sided_derivative(kernel: KernelName) -> None:
    """The bound where most weights end."""
    cache = problem(3, 8, 2)
    (x,) = points(cache, "positive", batch=1)
    x[:3] = 0.0
    h = 1e-7
    value = dense(kernel, cache, "positive", x)
    _, slope = negative_log_posterior(kernel, cache, WEIGHTS["positive"], x[None])
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
    value, slope = negative_log_posterior(kernel, cache, WEIGHTS["positive"], x)
    plain, plain_slope = negative_log_posterior(kernel, none, WEIGHTS["positive"], x[:, 3:])
    torch.testing.assert_close(value, plain, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(slope[:, 3:], plain_slope, rtol=1e-12, atol=1e-12)


# The fit.


@each_kind
@pytest.mark.parametrize("tasks", [1, 5])
def test_without_data_all_tasks_count_alike_and_the_rest_is_the_priors_center(
    kind: WeightsName, tasks: int
) -> None:
    found = fit_weights("se", problem(tasks, 0, 3), WEIGHTS[kind], seed=3)
    torch.testing.assert_close(found.weights, torch.full((tasks,), 1 / tasks, dtype=torch.float64))
    # Medians of the log-normals of appendix C.
    np.testing.assert_allclose(found.lengthscale.numpy(), [np.exp(0.5)] * 3, rtol=1e-12)
    assert found.outputscale.item() == pytest.approx(np.exp(-2.0), rel=1e-12)
    assert found.noise.item() == pytest.approx(np.exp(-8.0), rel=1e-12)
    assert found.outputscale.shape == found.noise.shape == ()


FITS: list[tuple[KernelName, WeightsName, int, int, int]] = [
    ("se", "positive", 1, 1, 1),
    ("se", "positive", 4, 6, 2),
    ("se", "positive", 8, 20, 3),
    ("se", "positive", 20, 5, 2),
    ("se", "signed", 4, 6, 2),
    ("se", "signed", 7, 15, 2),
    ("matern52", "positive", 4, 12, 2),
    ("matern52", "positive", 8, 25, 4),
    ("matern52", "signed", 5, 10, 1),
]


@pytest.mark.parametrize(("kernel", "kind", "tasks", "n", "d"), FITS)
@pytest.mark.parametrize("seed", [0, 1])
def test_scipy_cannot_improve_a_fit(
    kernel: KernelName, kind: WeightsName, tasks: int, n: int, d: int, seed: int
) -> None:
    cache = problem(tasks, n, d, seed=100 * seed + tasks)
    found = as_vector(fit_weights(kernel, cache, WEIGHTS[kind], seed=seed))
    ours = dense(kernel, cache, kind, found).item() / n
    assert ours <= scipy_best(kernel, cache, kind, found[None]) + 1e-5
    for value, (low, high) in zip(found.tolist(), bounds(cache, kind), strict=True):
        assert low - 1e-9 <= value <= high + 1e-9


def test_fits_are_as_good_as_scipys_from_the_same_starts() -> None:
    """Several optima exist, so that one of two good solvers may have better luck once in a while."""
    losses = []
    for kernel, kind, tasks, n, d in FITS:
        cache = problem(tasks, n, d, seed=1000 + tasks)
        found = as_vector(fit_weights(kernel, cache, WEIGHTS[kind], seed=0))
        theirs = scipy_best(kernel, cache, kind, _starts(tasks, d, WEIGHTS[kind], random(0)))
        ours = dense(kernel, cache, kind, found).item() / n
        if ours > theirs + 1e-4:
            losses.append((kernel, kind, tasks, n, d, ours - theirs))
    assert len(losses) <= 1, losses


def test_the_first_start_is_the_default_and_all_lie_inside_the_bounds() -> None:
    starts = _starts(4, 2, WEIGHTS["positive"], random(0))
    assert starts.shape == (6, 8)
    torch.testing.assert_close(starts[0, :4], torch.full((4,), 0.25, dtype=torch.float64))
    assert (starts[1:, :4] >= 0).all()
    lower, upper = TEST_TASK.bounds(2)
    assert (starts[:, 4:] >= lower).all()
    assert (starts[:, 4:] <= upper).all()


@each_kernel
def test_the_task_that_resembles_is_found_and_others_are_exactly_zero(kernel: KernelName) -> None:
    found = fit_weights(kernel, problem(10, 20, 2), WEIGHTS["positive"], seed=0)
    assert (found.weights >= 0).all()
    assert found.weights.argmax() == 0
    assert found.weights[0].item() == pytest.approx(1.0, abs=0.2)
    assert (found.weights == 0.0).sum() >= 5


def test_weights_at_zero_are_pushed_against_the_bound() -> None:
    """The condition of Karush, Kuhn and Tucker, with the slope of the dense posterior."""
    cache = problem(10, 20, 2, seed=3)
    x = as_vector(fit_weights("se", cache, WEIGHTS["positive"], seed=0)).requires_grad_()
    (gradient,) = torch.autograd.grad(dense("se", cache, "positive", x), x)
    zero = x.detach()[:10] == 0.0
    assert zero.any()
    assert (gradient[:10][zero] > -1e-2).all()
    assert (gradient[:10][~zero].abs() < 1e-1).all()


@each_kernel
def test_signed_weights_find_the_mirrored_task(kernel: KernelName) -> None:
    cache = problem(3, 20, 2, sign=-1.0)
    signed = fit_weights(kernel, cache, WEIGHTS["signed"], seed=0)
    assert signed.weights[0].item() == pytest.approx(-1.0, abs=0.2)
    positive = fit_weights(kernel, cache, WEIGHTS["positive"], seed=0)
    assert positive.weights[0] == 0.0


@each_kind
def test_same_seed_same_numbers(kind: WeightsName) -> None:
    cache = problem(4, 8, 2)
    first, second = (as_vector(fit_weights("se", cache, WEIGHTS[kind], seed=5)) for _ in range(2))
    assert torch.equal(first, second)


def test_the_order_of_tasks_does_not_matter() -> None:
    """Up to the drawn starts, which belong to places: the optimum is the same."""
    cache, order = problem(4, 15, 2), [2, 0, 3, 1]
    turned = Cache(cache.X, cache.z, cache.mean[order], cache.covariance[order])
    first = fit_weights("se", cache, WEIGHTS["positive"], seed=0)
    second = fit_weights("se", turned, WEIGHTS["positive"], seed=0)
    torch.testing.assert_close(second.weights, first.weights[order], rtol=0.0, atol=1e-2)


@each_kind
def test_no_tasks_leave_a_plain_gp(kind: WeightsName) -> None:
    some = problem(1, 8, 2)
    cache = Cache(some.X, some.z, some.mean[:0], some.covariance[:0])
    found = fit_weights("se", cache, WEIGHTS[kind], seed=0)
    assert found.weights.shape == (0,)
    starts = _starts(0, 2, WEIGHTS[kind], random(0))
    ours = dense("se", cache, kind, as_vector(found)).item() / 8
    assert ours <= scipy_best("se", cache, kind, starts) + 1e-4


def broken(change: Callable[[Tensor], Tensor]) -> Cache:
    cache = problem(2, 5, 1)
    return Cache(cache.X, cache.z, cache.mean, change(cache.covariance))


@pytest.mark.parametrize(
    "change",
    [lambda C: C * float("nan"), lambda C: -1e6 * torch.eye(5).double().flatten().expand_as(C)],
)
def test_a_test_task_that_no_start_can_evaluate_is_a_fit_error(change: Any) -> None:
    with pytest.raises(FitError, match=r"test-task; look for .*\.$"):
        fit_weights("se", broken(change), WEIGHTS["positive"], seed=0)
