"""The rough evidences against brute force over the same grid with `Problem.value`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from scaml.gp.kernels import KernelName
from scaml.model.evidence import Problem
from scaml.model.screening import data_scale, screen
from tests.model.problems import NOISE, OUTPUTSCALE, SCALE, SHARE, problem_of

RESIDUALS = (-1.5, -0.5, 0.5)
SCALES = [-1.5 + 0.25 * i for i in range(13)]


def case_of(
    kernel: KernelName,
    n: int,
    d: int,
    *,
    level: float = 0.0,
    fixed: Sequence[int] = (),
    offset: float = 0.0,
) -> Problem:
    """Explanations whose scales have the same prior around s = 0, as screening has it."""
    problem = problem_of(kernel, n, d, level=level, fixed=fixed, offset=offset, explanations=5)
    problem.center[:, SCALE] = 0.0
    return problem


def kernel_of(d: int) -> Tensor:
    """(log ℓ, log σ²)."""
    return torch.tensor([-0.9 + 0.3 * i for i in range(d)] + [-5.0], dtype=torch.float64)


def brute_force(problem: Problem, kernel: Tensor, sign: float) -> Tensor:
    """Σ over the grid of exp(-f), the log, at the given ℓ and σ² and at c's prior mean."""
    E = len(problem.mean)
    center, spread = problem.center.clone(), problem.spread.clone()
    center[:, 2:-2], center[:, NOISE] = kernel[:-1], kernel[-1]
    at_center = [SHARE, NOISE, *range(2, center.shape[-1] - 2)]
    spread[:, at_center] = 0.0
    mine = replace(problem, mean=sign * problem.mean, center=center, spread=spread)
    sigma = float(spread[0, SCALE])
    middle = data_scale(problem)
    scales = [(middle + step) / sigma for step in SCALES] if sigma else [0.0]
    values = []
    for residual in RESIDUALS:
        for scale in scales:
            xi = torch.zeros_like(center)
            xi[:, OUTPUTSCALE], xi[:, SCALE] = residual, scale
            values.append(-mine.value(xi, torch.arange(E)))
    return torch.logsumexp(torch.stack(values), 0)


def check(problem: Problem, *, tolerance: float = 1e-8) -> None:
    kernel = kernel_of(problem.X.shape[-1])
    found = torch.cat(screen(problem, kernel))
    expected = torch.cat([brute_force(problem, kernel, sign) for sign in (1.0, -1.0)])
    assert expected.std() > 1e-5, "the explanations are all alike"
    torch.testing.assert_close(found - found[0], expected - expected[0], rtol=0.0, atol=tolerance)
    # The constant that is left out is that of the normal density.
    constant = 0.5 * len(problem.z) * math.log(2 * math.pi)
    torch.testing.assert_close(found, expected + constant, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("level", [0.0, 0.7, 1e4])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (6, 2), (15, 3)])
def test_screening_is_brute_force(kernel: KernelName, level: float, n: int, d: int) -> None:
    check(case_of(kernel, n, d, level=level, offset=0.4))


@pytest.mark.parametrize("level", [0.0, 2.0])
def test_screening_is_brute_force_where_the_scale_is_fixed(level: float) -> None:
    check(case_of("se", 6, 2, level=level, fixed=[SCALE]))


def test_a_huge_level_keeps_its_digits() -> None:
    """Of the data's mean, and of the past's, which are a thousand deviations away from zero."""
    problem = case_of("se", 6, 2, level=1e10, offset=1e3)
    check(replace(problem, mean=problem.mean - 1e3), tolerance=1e-6)


def test_mirrored_evidences_are_those_of_mirrored_explanations() -> None:
    problem = case_of("se", 6, 2, level=1.0)
    plain, mirrored = screen(problem, kernel_of(2))
    other, back = screen(replace(problem, mean=-problem.mean), kernel_of(2))
    torch.testing.assert_close(other, mirrored, rtol=0.0, atol=1e-10)
    torch.testing.assert_close(back, plain, rtol=0.0, atol=1e-10)
    assert (plain > mirrored + 0.5).any()


def test_arguments_are_not_overwritten() -> None:
    problem, copy = (case_of("se", 6, 2, level=1.0) for _ in range(2))
    kernel = kernel_of(2)
    screen(problem, kernel)
    assert torch.equal(problem.covariance, copy.covariance)
    assert torch.equal(problem.mean, copy.mean)
    assert torch.equal(problem.z, copy.z)
    assert torch.equal(kernel, kernel_of(2))


def test_a_matrix_that_is_not_positive_definite_has_no_evidence() -> None:
    problem = case_of("se", 6, 2)
    expected = torch.stack(screen(problem, kernel_of(2)))
    problem.covariance[1] -= 50.0 * torch.eye(6, dtype=torch.float64)
    found = torch.stack(screen(problem, kernel_of(2)))
    assert (found[:, 1] == -torch.inf).all()
    assert torch.equal(found[:, [0, 2, 3, 4]], expected[:, [0, 2, 3, 4]])


def test_the_scale_of_the_data_is_shrunk_by_one_over_its_prior_variance() -> None:
    problem = case_of("se", 5, 1)
    spread = float(problem.spread[0, SCALE])
    deviation = math.sqrt(float((problem.z - problem.z.mean()).square().sum()) / 4)
    expected = 5.0 / (5.0 + spread**-2) * math.log(deviation)
    assert data_scale(problem) == pytest.approx(expected, rel=1e-12)
    assert data_scale(case_of("se", 1, 1)) == 0.0
    assert data_scale(case_of("se", 5, 1, fixed=[SCALE])) == 0.0
    flat = data_scale(replace(problem, z=torch.ones(5, dtype=torch.float64)))
    assert math.isfinite(flat)
    assert flat < -5.0
