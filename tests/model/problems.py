"""Small problems of the evidence of explanations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from scaml.gp.kernels import KernelName
from scaml.model.evidence import Problem
from tests.cases import smooth

SHARE, SCALE = 0, 1  # columns of ξ
OUTPUTSCALE, NOISE = -2, -1


def problem_of(
    kernel: KernelName,
    n: int,
    d: int,
    *,
    level: float = 0.0,
    fixed: Sequence[int] = (),
    explanations: int = 3,
    offset: float = 0.0,
    sign: float = 1.0,
    seed: int = 0,
) -> Problem:
    """Explanations of noisy data of a smooth function by others like it, or like its negative."""
    rng = np.random.default_rng(100 * n + d + seed)
    X, E = rng.random((n, d)), explanations
    z = 3.0 * smooth(X, 0.0) + 0.1 * rng.standard_normal(n)
    mean = np.stack([3.0 * smooth(X, 0.4 * (e + 1)) for e in range(E)])
    A = 0.2 * rng.standard_normal((E, n, 2))
    center = np.tile([0.8, 0.1, *[-0.7] * d, -1.0, -7.0], (E, 1)) + 0.1 * rng.standard_normal(
        (E, d + 4)
    )
    spread = np.tile([0.3, 0.4, *[0.5] * d, 0.7, 0.5], (E, 1))
    spread[:, list(fixed)] = 0.0
    return Problem(
        kernel,
        X=torch.tensor(X),
        z=torch.tensor(z + offset),
        mean=torch.tensor(sign * mean),
        covariance=torch.tensor(A @ A.swapaxes(1, 2)),
        center=torch.tensor(center),
        spread=torch.tensor(spread),
        level=level,
    )


def some_xi(problem: Problem, points: int, seed: int = 3) -> tuple[Tensor, Tensor]:
    """Random ξ of all explanations, c ≥ 0 or not, and whose they are."""
    E, p = problem.center.shape
    generator = torch.Generator().manual_seed(seed)
    which = torch.arange(E).repeat(points)
    return torch.randn(len(which), p, generator=generator, dtype=torch.float64), which
