"""Algorithm 1, its lines as the paper numbers them.

`meta_fit` is line 2, `learn_new_task` lines 3 to 5. `ScaML` calls both; `algorithm1` runs them one
after the other, in the paper's setting.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from scaml.gp.hyperpriors import TEST_TASK
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import STARTS
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.model.fit_theta import Cache, fit_theta
from scaml.model.hyperparameters import Hyperparameters, ThetaPriors
from scaml.model.normalization import Levels, Scaling, normalize
from scaml.model.past_at_rows import PastAtRows
from scaml.model.scaml_gp import ScaMLGP
from scaml.model.weight_priors import weight_prior
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["algorithm1", "cached", "learn_new_task", "meta_fit"]


def algorithm1(meta: MetaData, task: Task, *, seed: int = 0) -> ScaMLGP:
    """From meta-data (line 1) and test data to the posterior of f_t, in the setting of the paper."""
    tasks = meta_fit(meta, kernel="se", seed=seed)
    units = normalize("union", task.y, Levels.of([past.y for past in meta]))
    priors = ThetaPriors(weight_prior("positive"), TEST_TASK)
    return learn_new_task(tasks, task, units, priors, seed=seed)


def meta_fit(meta: MetaData, *, kernel: KernelName, seed: int, n_jobs: int = 1) -> TaskGPs:
    """Line 2: train one GP per meta-task and optimize its θ_m."""
    return TaskGPs.fit(meta, kernel=kernel, seed=seed, n_jobs=n_jobs)


def learn_new_task(
    tasks: TaskGPs,
    task: Task,
    scaling: Scaling,
    priors: ThetaPriors,
    *,
    seed: int,
    n_starts: int = STARTS,
    past: PastAtRows | None = None,
    model: Callable[[TaskGPs, Task, Units, Hyperparameters], ScaMLGP] = ScaMLGP,
) -> ScaMLGP:
    """Lines 3 to 5: from the meta-tasks' posteriors to that of the test-task.

    Args:
        tasks: The meta-tasks' posteriors.
        task: The test data; may be empty.
        scaling: Units of y, as far as they are known before the fit.
        priors: p(θ_t).
        seed: Decides the drawn starts.
        n_starts: Starts of the search for θ_t.
        past: What is kept of the meta-tasks' posteriors from step to step.
        model: Makes the posterior of f_t from the meta-tasks' ones, the test data, units and θ_t.
    """
    cache = cached(tasks, task, scaling, past)
    theta, factor = fit_theta(tasks.kernel, cache, priors, seed=seed, n_starts=n_starts)
    return model(tasks, task, Units(scaling.offset, factor * scaling.scale), theta)


def cached(tasks: TaskGPs, task: Task, scaling: Scaling, past: PastAtRows | None = None) -> Cache:
    """Line 3: all that the prior of equation 6 needs of the meta-tasks at X_t."""
    mean, covariance = (past or PastAtRows()).at(tasks, task.X)
    z = (task.y - scaling.offset) / scaling.scale
    return Cache(task.X, z, torch.from_numpy(mean).T, torch.from_numpy(covariance).T)
