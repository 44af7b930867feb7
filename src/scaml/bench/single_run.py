"""One run of one method in one setting: the smallest piece of a comparison that is done or not done."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scaml.ask import choose
from scaml.bench.contestants import Contestant
from scaml.bench.problems import Instance, problem
from scaml.bench.settings import Setting
from scaml.bench.shared_fits import timed_meta_fit
from scaml.methods import MetaPrior
from scaml.tasks.task import Task

__all__ = ["SEEDS_PER_RUN", "Row", "SingleRun", "evaluate"]

Row = dict[str, Any]
"""One evaluation, by the names of the columns of the results."""

SEEDS_PER_RUN = 10_000
"""Each evaluation takes one; two runs never share a seed."""


@dataclass(frozen=True)
class SingleRun:
    """What to run.

    Args:
        setting: The problem, the amount of past data, and the number of evaluations.
        contestant: The method.
        number: The number of the run, from 0. It decides everything random.
    """

    setting: Setting
    contestant: Contestant
    number: int


def evaluate(run: SingleRun) -> list[Row]:
    """Optimize, and return one row per evaluation.

    Meta-data, test function, noise and seeds follow from the setting and the number of the run alone,
    so all methods get the same. Seconds are processor time on one thread: other work on the machine
    does not count.
    """
    setting, chosen = run.setting, run.contestant
    where = problem(setting.problem)
    instance = where.draw(run.number, meta_tasks=setting.meta_tasks, points=setting.points)
    noise = where.noise_of(run.number, setting.evaluations, instance.noise)
    prior, meta_fit_seconds = None, 0.0
    if chosen.method is not None:
        prior, meta_fit_seconds = timed_meta_fit(chosen.method, instance.meta, run.number)
    task, best, rows = Task.empty(where.d), -math.inf, []
    for i in range(setting.evaluations):
        start = time.process_time()
        x, weights = _suggest(prior, instance, task, seed=SEEDS_PER_RUN * run.number + i)
        seconds = time.process_time() - start
        value = instance.function(x).item()
        best = max(best, value)
        y = value + noise[i]
        task = task.append(x, y)
        rows.append(
            {
                "problem": setting.problem,
                "meta_tasks": setting.meta_tasks,
                "points": setting.points,
                "method": chosen.name,
                "settings": chosen.settings,
                "run": run.number,
                "step": i + 1,
                "x": x[0].tolist(),
                "y": y,
                "value": value,
                # The maximum is known up to rounding only, so the best value may lie above it.
                "regret": max(instance.maximum - best, 0.0),
                "span": instance.span,
                "seconds": seconds,
                "meta_fit_seconds": meta_fit_seconds,
                "weights": weights,
            }
        )
    return rows


def _suggest(
    prior: MetaPrior | None, instance: Instance, task: Task, seed: int
) -> tuple[Tensor, list[float] | None]:
    """The next point, `1 x d`, and the weights of the meta-tasks if the method has one per task."""
    if prior is None:
        return _random(instance, task, seed), None
    model = prior.condition(task, seed=seed)
    nothing = torch.empty(0, task.d, dtype=torch.float64)
    x = choose(prior, model, task, 1, nothing, seed, table=instance.candidates)
    weights = getattr(model, "weights", None)
    return x, weights.tolist() if isinstance(weights, Tensor) and weights.ndim == 1 else None


def _random(instance: Instance, task: Task, seed: int) -> Tensor:
    """A random point of the cube, or a random row of the table that was not evaluated yet."""
    generator = torch.Generator().manual_seed(seed)
    if instance.candidates is None:
        return torch.rand(1, task.d, generator=generator, dtype=torch.float64)
    distances = torch.cdist(instance.candidates, task.X, p=torch.inf)
    left = instance.candidates[(distances > 0).all(1)]
    return left[torch.randint(len(left), (1,), generator=generator)]
