"""Problems for `minimize`, and a short way to call it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from scaml.gp.minimize import Metric, Minimum, Objective, minimize

INF = float("inf")


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def solve(
    objective: Objective,
    x0: Tensor,
    *,
    lower: float = -INF,
    upper: float = INF,
    group: Tensor | None = None,
    same_basin: float = 1e-6,
    metric: Metric | None = None,
) -> Minimum:
    """Every row of x0 a problem of its own, unless groups are given; the same bounds everywhere."""
    p = x0.shape[-1]
    return minimize(
        objective,
        x0,
        torch.full((p,), lower, dtype=torch.float64),
        torch.full((p,), upper, dtype=torch.float64),
        torch.arange(len(x0)) if group is None else group,
        same_basin=same_basin,
        metric=metric,
    )


class Quadratics:
    """½ xᵀ Q x - bᵀ x for many random Q of bounded condition."""

    def __init__(self, problems: int, p: int, seed: int) -> None:
        A = torch.randn(problems, p, p, generator=generator(seed), dtype=torch.float64)
        self.Q = A @ A.mT / p + 0.3 * torch.eye(p, dtype=torch.float64)
        self.b = 2.0 * torch.randn(problems, p, generator=generator(seed + 1), dtype=torch.float64)

    def __call__(self, x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        # Written without matrix products, so that a row's bits do not depend on its neighbours.
        Qx = (self.Q[problem] * x[:, None]).sum(-1)
        b = self.b[problem]
        return (x * (0.5 * Qx - b)).sum(-1), Qx - b
