"""Averages of models at random hyperparameters, which several tests share."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from scaml import ScaMLGP, Task
from scaml.gp.units import Units
from scaml.model.average_gp import AverageGP
from scaml.model.hyperparameters import Hyperparameters
from tests.cases import pair

D = 2
P = (0.5, 0.3, 0.2)


def points(*shape: int) -> Tensor:
    return torch.rand(*shape, D, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def average_of(n_t: int, p: tuple[float, ...] = P, *, level: float = 0.0) -> AverageGP:
    """Members that share data, past tasks and offset, and nothing else."""
    case, rng = pair("se", (6, 9, 7), n_t, d=D, seed=3), np.random.default_rng(5)
    model, members = case.model, []
    for _ in p:
        weights = torch.tensor(rng.standard_normal(3) * rng.integers(0, 2, 3))
        theta = Hyperparameters(
            weights,
            torch.tensor(rng.uniform(0.2, 1.5, D)),
            *(torch.tensor(v, dtype=torch.float64) for v in (rng.uniform(0.3, 1.0), 0.05, level)),
        )
        scale = torch.tensor(rng.uniform(0.5, 2.0), dtype=torch.float64)
        task = Task(model.train_inputs[0], model.train_targets)
        members.append(ScaMLGP(case.task_gps, task, Units(model.y_offset, scale), theta))
    return AverageGP(members, torch.tensor(p, dtype=torch.float64).log())


def density(member: ScaMLGP, X: Tensor, y: Tensor) -> float:
    """log p(y | X) of a member's observations at `k x d`, by torch's normal distribution."""
    posterior = member.posterior(X)
    covariance = posterior.distribution.covariance_matrix
    covariance = covariance + member.noise * member.y_scale.square() * torch.eye(len(X))
    return float(MultivariateNormal(posterior.mean.squeeze(-1), covariance).log_prob(y))


def normalized(log_p: list[float]) -> list[float]:
    p = [math.exp(value - max(log_p)) for value in log_p]
    return [value / sum(p) for value in p]
