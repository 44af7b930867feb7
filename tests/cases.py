"""Small problems, points and a space that several tests use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor

from scaml import MetaData, ScaML, ScaMLGP, Task, TaskGPs
from scaml.gp.kernels import KernelName
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from scaml.spaces.space import Space
from tests.oracles import GP, Array, JointGP

MIXED = Space(
    {
        "rate": FloatDistribution(1e-4, 1.0, log=True),
        "kind": CategoricalDistribution(["a", "b", None]),
        "once": FloatDistribution(3.0, 3.0),
        "depth": IntDistribution(2, 10, step=4),
        "only": CategoricalDistribution(["x"]),
        "share": FloatDistribution(0.0, 1.0, step=0.25),
    }
)


ONE_MODEL = ScaML(kernel="se", weights="shared")
"""For tests of a single ScaML-GP; the default is an average of several, with the past's kernel."""


def query(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def meta_data(sizes: tuple[int, ...], d: int, seed: int = 0) -> MetaData:
    """Related smooth tasks with levels and units of their own."""
    rng = np.random.default_rng(seed)
    tasks = []
    for m, n in enumerate(sizes):
        X = rng.random((n, d))
        y = smooth(X, 0.1 * m) + 0.01 * rng.standard_normal(n)
        tasks.append(Task(X, 3.0 * m + (1.0 + m) * y, name=f"t{m}"))
    return MetaData(tasks)


def smooth(X: Array, shift: float) -> Array:
    value = -((X - 0.4 - 0.1 * shift) ** 2).sum(-1) + 0.2 * np.sin(6.0 * X[:, 0] + shift)
    return np.asarray(value)


def task_of(n: int, d: int, seed: int = 1) -> Task:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return Task(X, 1.0 + 2.0 * smooth(X, 0.5) + 0.01 * rng.standard_normal(n))


@dataclass(frozen=True)
class Pair:
    """A ScaMLGP and the dense joint GP of the same hyperparameters."""

    model: ScaMLGP
    joint: JointGP
    task_gps: TaskGPs


def pair(
    kernel: KernelName,
    sizes: tuple[int, ...],
    n_t: int,
    d: int,
    seed: int,
    *,
    signed: bool = False,
    level: float = 0.0,
) -> Pair:
    """A model and its oracle at random hyperparameters."""
    rng = np.random.default_rng(seed)
    meta, task = meta_data(sizes, d, seed), task_of(n_t, d, seed + 1)
    gps = [
        GP(rng.uniform(0.2, 1.5, d), rng.uniform(0.3, 3.0), 10 ** rng.uniform(-4, -2)) for _ in sizes
    ]
    residual = GP(rng.uniform(0.2, 1.5, d), rng.uniform(0.05, 1.0), 10 ** rng.uniform(-4, -2), level)
    weights = rng.standard_normal(len(sizes)) if signed else rng.exponential(size=len(sizes))
    task_gps = TaskGPs.condition(
        meta,
        kernel=kernel,
        lengthscale=torch.tensor(np.stack([gp.lengthscale for gp in gps])),
        outputscale=torch.tensor([gp.outputscale for gp in gps], dtype=torch.float64),
        noise=torch.tensor([gp.noise for gp in gps], dtype=torch.float64),
    )
    units = Units(torch.tensor(0.7, dtype=torch.float64), torch.tensor(1.9, dtype=torch.float64))
    theta = Hyperparameters(
        torch.tensor(weights),
        torch.tensor(residual.lengthscale),
        torch.tensor(residual.outputscale, dtype=torch.float64),
        torch.tensor(residual.noise, dtype=torch.float64),
        torch.tensor(residual.level, dtype=torch.float64),
    )
    joint = JointGP(
        kernel=kernel,
        meta=gps,
        residual=residual,
        weights=weights,
        X_meta=[t.X.numpy() for t in meta],
        z_meta=[((t.y - t.y.mean()) / t.y.std()).numpy() for t in meta],
        X_test=task.X.numpy(),
        z_test=((task.y - units.offset) / units.scale).numpy(),
    )
    return Pair(ScaMLGP(task_gps, task, units, theta), joint, task_gps)
