"""The negative log posterior of explanations against dense normals, Laplace against integrals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from scaml.gp.hyperpriors import KernelPriors
from scaml.gp.kernels import KernelName
from scaml.gp.minimize import minimize
from scaml.model.evidence import Problem, log_evidence
from tests import exact
from tests.model.problems import NOISE, OUTPUTSCALE, SCALE, SHARE, problem_of, some_xi

KERNELS: tuple[KernelName, ...] = ("se", "matern52")
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def dense(problem: Problem, xi: Tensor, e: int) -> Tensor:
    """f at one ξ: z is normal around e^s c a with covariance e^2s (c² C + o R + σ² I) + λ 1 1^T."""
    x = problem.center[e] + problem.spread[e] * xi
    c, scale, noise = x[SHARE], x[SCALE].exp(), x[NOISE].exp()
    scaled = problem.X / x[2:-2].exp()
    squared = (scaled[:, None] - scaled[None]).square().sum(-1)
    if problem.kernel == "se":
        R = torch.exp(-squared / 2)
    else:  # the diagonal is 1 whatever ξ is; its square root has no derivative to give
        equal = squared == 0
        r = torch.where(equal, 1.0, squared).sqrt() * 5**0.5
        R = torch.where(equal, 1.0, (1 + r + r.square() / 3) * torch.exp(-r))
    eye = torch.eye(len(problem.z), dtype=torch.float64)
    K = c.square() * problem.covariance[e] + x[OUTPUTSCALE].exp() * R + noise * eye
    normal = torch.distributions.MultivariateNormal(
        scale * c * problem.mean[e], scale.square() * K + problem.level
    )
    f: Tensor = -normal.log_prob(problem.z) + 0.5 * xi.square().sum()
    return f


def exact_value(problem: Problem, xi: list[Any], e: int) -> Any:
    """The same in fifty digits."""
    mp, X = exact.mp, problem.X.numpy()
    center, spread = problem.center[e].tolist(), problem.spread[e].tolist()
    c, s, *rest = [mp.mpf(m) + mp.mpf(v) * u for m, v, u in zip(center, spread, xi, strict=True)]
    *ell, o, noise = [mp.exp(u) for u in rest]
    K = exact.kernel_matrix(problem.kernel, X, X, ell, o) + noise * mp.eye(len(X))
    K = mp.exp(2 * s) * (K + c**2 * exact.matrix(problem.covariance[e].numpy()))
    residual = exact.matrix(problem.z.numpy()) - mp.exp(s) * c * exact.matrix(problem.mean[e].numpy())
    density = exact.log_density(residual, K + mp.mpf(problem.level) * mp.ones(len(X)))
    return mp.fsum(u**2 for u in xi) / 2 - density


# Value and slope.


@each_kernel
@pytest.mark.parametrize("level", [0.0, 0.7, 1e3])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 2), (9, 3)])
def test_value_and_slope_are_those_of_a_dense_normal(
    kernel: KernelName, level: float, n: int, d: int
) -> None:
    problem = problem_of(kernel, n, d, level=level, offset=0.5)
    xi, which = some_xi(problem, 3)
    value, slope = problem(xi, which)
    for i, e in enumerate(which.tolist()):
        at = xi[i].clone().requires_grad_()
        expected = dense(problem, at, e)
        (by_xi,) = torch.autograd.grad(expected, at)
        torch.testing.assert_close(value[i], expected.detach(), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(slope[i], by_xi, rtol=1e-7, atol=1e-7)


@each_kernel
@pytest.mark.parametrize("level", [0.0, 2.0])
@pytest.mark.parametrize("fixed", [[0], [1], [0, 1, 3], [0, 1, 2, 3, 4, 5]], ids=str)
def test_a_coordinate_without_spread_stays_at_its_center(
    kernel: KernelName, level: float, fixed: list[int]
) -> None:
    problem = problem_of(kernel, 4, 2, level=level, fixed=fixed)
    xi, which = some_xi(problem, 2)
    x = problem.natural(xi, which)
    assert torch.equal(x[:, fixed], problem.center[which][:, fixed])
    value, slope = problem(xi, which)
    for i, e in enumerate(which.tolist()):
        at = xi[i].clone().requires_grad_()
        expected = dense(problem, at, e)
        (by_xi,) = torch.autograd.grad(expected, at)
        torch.testing.assert_close(value[i], expected.detach(), rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(slope[i], by_xi, rtol=1e-8, atol=1e-8)
    assert torch.equal(slope[:, fixed], xi[:, fixed])
    lower, upper = problem.bounds()
    assert (lower[:, fixed] == 0).all()
    assert (upper[:, fixed] == 0).all()


@each_kernel
def test_a_huge_level_keeps_its_digits(kernel: KernelName) -> None:
    """λ = 1e16 and data that are a hundred million deviations away from zero."""
    problem = problem_of(kernel, 5, 1, level=1e16, offset=1e8)
    xi, which = some_xi(problem, 1)
    value, slope = problem(xi, which)
    alone = problem.value(xi, which)
    mp = exact.mp
    h = mp.mpf(10) ** -12
    for i, e in enumerate(which.tolist()):
        at = [mp.mpf(u) for u in xi[i].tolist()]
        expected = float(exact_value(problem, at, e))
        assert value[i].item() == pytest.approx(expected, rel=1e-8)
        assert alone[i].item() == pytest.approx(expected, rel=1e-8)
        for k in range(len(at)):
            up, down = ([u + sign * h * (j == k) for j, u in enumerate(at)] for sign in (1, -1))
            by_k = (exact_value(problem, up, e) - exact_value(problem, down, e)) / (2 * h)
            assert slope[i, k].item() == pytest.approx(float(by_k), rel=1e-6, abs=1e-6)


@each_kernel
@pytest.mark.parametrize("level", [0.0, 0.7, 1e6])
@pytest.mark.parametrize("fixed", [[], [0, 3]], ids=str)
def test_the_value_alone_is_the_value(kernel: KernelName, level: float, fixed: list[int]) -> None:
    problem = problem_of(kernel, 6, 2, level=level, fixed=fixed)
    xi, which = some_xi(problem, 4)
    torch.testing.assert_close(problem.value(xi, which), problem(xi, which)[0], rtol=1e-11, atol=1e-11)


def test_bounds_are_those_of_the_share_and_of_the_kernel() -> None:
    problem = problem_of("se", 4, 2)
    lower, upper = problem.bounds()
    low, high = (problem.center + problem.spread * bound for bound in (lower, upper))
    expected = KernelPriors.bounds(2)
    for e in range(3):
        torch.testing.assert_close(low[e, 2:], expected[0], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(high[e, 2:], expected[1], rtol=1e-12, atol=1e-12)
    assert (low[:, SHARE].abs() < 1e-15).all()
    assert (high[:, SHARE] == torch.inf).all()
    # |s| is at most five of its prior's standard deviations.
    far = 5.0 * problem.spread[:, SCALE]
    torch.testing.assert_close(high[:, SCALE], problem.center[:, SCALE] + far)
    torch.testing.assert_close(low[:, SCALE], problem.center[:, SCALE] - far)


# Laplace.


def minima(problem: Problem) -> Tensor:
    lower, upper = problem.bounds()
    E, p = lower.shape
    x0 = torch.zeros(E, p, dtype=torch.float64)
    return minimize(problem, x0, lower, upper, torch.arange(E), same_basin=0.0).x


def integrated(problem: Problem, e: int, nodes: int) -> float:
    """log p(y_t | e) by Gauss-Legendre rules over the coordinates that have a spread."""
    lower, upper = (bound[e].clamp(-6.5, 6.5).numpy() for bound in problem.bounds())
    free = problem.spread[e].nonzero().flatten().tolist()
    t, w = np.polynomial.legendre.leggauss(nodes)
    half, middle = (upper - lower) / 2, (upper + lower) / 2
    points = np.stack(np.meshgrid(*[middle[k] + half[k] * t for k in free]), axis=-1)
    weights = np.stack(np.meshgrid(*[half[k] * w for k in free]), axis=-1).prod(-1).ravel()
    xi = torch.zeros(len(weights), len(lower), dtype=torch.float64)
    xi[:, free] = torch.tensor(points.reshape(-1, len(free)))
    value = problem.value(xi, torch.full((len(xi),), e))
    summed = torch.logsumexp(torch.tensor(weights).log() - value, 0).item()
    inside = stats.norm.logcdf(-lower[SHARE]) if SHARE in free else 0.0
    return float(summed - 0.5 * len(free) * math.log(2 * math.pi) - inside)


@pytest.mark.parametrize("level", [0.0, 100.0])
@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize(
    "free", [[SHARE, SCALE], [SCALE, 3], [2, 3], [SHARE, 3], [SHARE, SCALE, 3]], ids=str
)
def test_evidence_is_the_integral(free: list[int], n: int, level: float) -> None:
    fixed = [k for k in range(5) if k not in free]
    problem = problem_of("se", n, 1, level=level, fixed=fixed, explanations=2)
    found = log_evidence(problem, minima(problem))
    nodes = 60 if len(free) == 2 else 32
    expected = [integrated(problem, e, nodes) for e in range(2)]
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=0.1 if 2 in free else 0.03)


def shares(problem: Problem, center: float, spread: float) -> Problem:
    """The problem with another prior of c."""
    centers, spreads = problem.center.clone(), problem.spread.clone()
    centers[:, SHARE], spreads[:, SHARE] = center, spread
    return replace(problem, center=centers, spread=spreads)


@pytest.mark.parametrize("level", [0.0, 100.0])
@pytest.mark.parametrize("free", [[SHARE, 3], [SHARE, SCALE]], ids=str)
@pytest.mark.parametrize(("center", "spread"), [(0.3, 0.4), (0.05, 1.0)])
def test_evidence_is_the_integral_where_the_best_share_is_zero(
    center: float, spread: float, free: list[int], level: float
) -> None:
    """The past is well known and has the other sign: c is held at 0, where its posterior falls off.

    With an uncertain past a large c is a large variance, the posterior has a shoulder there, and
    Laplace's approximation is up to a nat too low.
    """
    fixed = [k for k in range(5) if k not in free]
    problem = problem_of("se", 4, 1, level=level, fixed=fixed, explanations=2, sign=-1.0)
    problem = shares(replace(problem, covariance=0.1 * problem.covariance), center, spread)
    xi = minima(problem)
    assert (problem.natural(xi, torch.arange(2))[:, SHARE].abs() < 1e-9).all()
    expected = [integrated(problem, e, 80) for e in range(2)]
    np.testing.assert_allclose(log_evidence(problem, xi).numpy(), expected, rtol=0, atol=0.1)


@pytest.mark.parametrize("center", [0.0, 0.1, 0.6])
def test_evidence_is_the_integral_where_zero_cuts_the_share_off(center: float) -> None:
    """The data say little about c: much of its prior and its posterior would be below 0."""
    problem = problem_of("se", 2, 1, fixed=[1, 2, 4], explanations=2)
    problem = shares(replace(problem, mean=0.1 * problem.mean), center, 0.5)
    expected = [integrated(problem, e, 80) for e in range(2)]
    found = log_evidence(problem, minima(problem))
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=0.05)


def test_what_the_data_do_not_see_costs_nothing() -> None:
    """Without a past, neither c nor its prior matters."""
    problem = problem_of("se", 4, 1)
    none = replace(
        problem, mean=torch.zeros_like(problem.mean), covariance=torch.zeros_like(problem.covariance)
    )
    free, fixed = shares(none, 0.0, 1.0), shares(none, 0.0, 0.0)
    torch.testing.assert_close(
        log_evidence(free, minima(free)), log_evidence(fixed, minima(fixed)), rtol=0.0, atol=1e-6
    )


@each_kernel
@pytest.mark.parametrize("level", [0.0, 100.0])
def test_evidence_in_two_dimensions_is_that_of_draws_from_the_prior(
    kernel: KernelName, level: float
) -> None:
    """All six coordinates are free."""
    problem = problem_of(kernel, 5, 2, level=level, explanations=2)
    found = log_evidence(problem, minima(problem))
    lower, _ = problem.bounds()
    uniform = stats.qmc.Sobol(6, seed=0).random_base2(15)
    for e in range(2):
        cut = stats.norm.cdf(lower[e, SHARE].item())
        share = cut + (1.0 - cut) * uniform[:, :1]
        xi = torch.tensor(stats.norm.ppf(np.concatenate([share, uniform[:, 1:]], axis=1)))
        value = problem.value(xi, torch.full((len(xi),), e)) - 0.5 * xi.square().sum(-1)
        expected = torch.logsumexp(-value, 0).item() - math.log(len(xi))
        share_of_best = torch.softmax(-value, 0).max().item()
        assert share_of_best < 0.02, "the draws miss the posterior"
        assert found[e].item() == pytest.approx(expected, abs=0.15)
