"""One run of one method: the smallest piece of the study that is done or not done."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from scaml.ask import choose
from scaml.bench.contestants import contestant
from scaml.bench.problems import Instance, problem
from scaml.bench.settings import Setting
from scaml.bench.shared_fits import timed_meta_fit
from scaml.methods import MetaPrior
from scaml.tasks.task import Task

__all__ = ["Row", "Unit", "evaluate"]

Row = dict[str, Any]
_SEEDS_A_RUN = 10_000  # runs share no seed


@dataclass(frozen=True)
class Unit:
    """A setting, a method by its name, and the number of a run."""

    setting: Setting
    method: str
    run: int


def evaluate(unit: Unit) -> list[Row]:
    """Optimize, and return one row an evaluation.

    Meta-data, test function, noise and seeds follow from setting and run alone: all methods get the
    same. Seconds are of the processor, on one thread: other work on the machine does not count.
    """
    setting, chosen = unit.setting, contestant(unit.method)
    where = problem(setting.problem)
    instance = where.draw(unit.run, meta_tasks=setting.meta_tasks, points=setting.points)
    noise = where.noise_of(unit.run, setting.evaluations, instance.noise)
    prior, meta_fit_seconds = None, 0.0
    if chosen.method is not None:
        prior, meta_fit_seconds = timed_meta_fit(chosen.method, instance.meta, unit.run)
    task, best, rows = Task.empty(where.d), -math.inf, []
    for i in range(setting.evaluations):
        start = time.process_time()
        x, weights = _suggest(prior, instance, task, seed=_SEEDS_A_RUN * unit.run + i)
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
                "method": unit.method,
                "settings": chosen.settings,
                "run": unit.run,
                "step": i + 1,
                "x": x[0].tolist(),
                "y": y,
                "value": value,
                # The maximum is known to rounding, and so is a point that hits it.
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
    """The next point, `1 x d`, and the weights of the meta-tasks behind it, if the method has some."""
    if prior is None:
        return _random(instance, task, seed), None
    model = prior.condition(task, seed=seed)
    nothing = torch.empty(0, task.d, dtype=torch.float64)
    x = choose(prior, model, task, 1, nothing, seed, table=instance.candidates)
    weights = getattr(model, "weights", None)
    return x, weights.tolist() if isinstance(weights, Tensor) and weights.ndim == 1 else None


def _random(instance: Instance, task: Task, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if instance.candidates is None:
        return torch.rand(1, task.d, generator=generator, dtype=torch.float64)
    distances = torch.cdist(instance.candidates, task.X, p=torch.inf)
    left = instance.candidates[(distances > 0).all(1)]
    return left[torch.randint(len(left), (1,), generator=generator)]
