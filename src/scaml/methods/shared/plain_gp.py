"""A plain GP fitted to one task alone: the compared methods' model of the test data."""

from __future__ import annotations

import torch

from scaml.gp.hyperpriors import META_TASK, KernelPriors
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import STARTS, FitInput, fit_gps
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.scaml_gp import ScaMLGP
from scaml.tasks.task import Task

__all__ = ["fit_plain_gp"]


def fit_plain_gp(
    task: Task, units: Units, *, kernel: KernelName, seed: int, priors: KernelPriors = META_TASK
) -> ScaMLGP:
    """The GP of a meta-task (same kernel, priors and starts) on a test-task: ScaML-GP with M = 0.

    Args:
        task: The data; with none, the GP has the default start of a fit as hyperparameters.
        units: Offset and scale of y.
        kernel: The kernel's name.
        seed: Decides the drawn starts.
        priors: Of the hyperparameters.
    """
    if task.n:
        data = FitInput(task.name, task.X, (task.y - units.offset) / units.scale)
        theta = fit_gps([data], kernel=kernel, seed=seed, priors=priors).theta[0]
    else:
        theta = priors.starts(STARTS, task.d, torch.Generator())[0]
    no_tasks = TaskGPs.none(task.d, kernel=kernel)
    return ScaMLGP(no_tasks, task, units, Hyperparameters.from_vector(theta, task.d))
