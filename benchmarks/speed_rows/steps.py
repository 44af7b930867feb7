"""A step, in the cube and on a table, beside BoTorch's plain step and beside bare arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.evaluations import Counts, counting
from benchmarks.speed_rows import floor
from benchmarks.timing import medians
from scaml import ScaML, Task, suggest
from scaml.bench import FAMILIES
from scaml.gp.map_fit import FitInput, fit_gps
from scaml.gp.units import standardize
from scaml.search.cube import RAW_POINTS, RESTARTS
from tests import botorch_baseline

__all__ = ["Growing", "observed_task", "on_table", "step"]

SEED = 0
_DRAWS = 32  # fantasies of log-NEI


def observed_task(family: str, n: int) -> Task:
    """n_t observations, half of them near the best of the others, as in a run."""
    problem = FAMILIES[family]
    function = problem.draw(SEED)
    rng = np.random.default_rng(SEED)
    X = rng.random((n, problem.d))
    best = X[int(function(X).argmax())]
    X[: n // 2] = np.clip(best + 0.1 * rng.standard_normal((n // 2, problem.d)), 0.0, 1.0)
    return Task(X, function(X).numpy() + problem.noise * rng.standard_normal(n))


class Growing:
    """A task whose last observation is new at every call: what a prior keeps of steps, it has.

    Args:
        task: With its last observation.
        work: Is called with the task as it was before, once; then with a new last value each time.
    """

    def __init__(self, task: Task, work: Callable[[Task], Any]) -> None:
        self.before = Task(task.X[:-1], task.y[:-1])
        self.task, self.work, self.calls = task, work, 0
        work(self.before)

    def __call__(self) -> None:
        self.calls += 1
        last = self.task.y[-1:] + 1e-9 * self.calls
        self.work(self.before.append(self.task.X[-1:], last))


def _counted(work: Callable[[], Any]) -> Counts:
    with counting() as counts:
        work()
    return counts


def step(
    family: str, tasks: int, points: int, n_t: int, repeats: int, *, warm: bool = True
) -> dict[str, Any]:
    """Condition and suggest with all past tasks, beside BoTorch's plain-GP step without them."""
    prior = ScaML().meta_fit(FAMILIES[family].meta_data(tasks, points, SEED), seed=SEED)
    task = observed_task(family, n_t)
    unit = standardize(task.y)
    z = (task.y - unit.offset) / unit.scale
    starts = fit_gps([FitInput("plain", task.X, z)], kernel="se", seed=SEED).starts[0]
    asked = Growing(task, lambda grown: suggest(prior, grown, seed=SEED))
    ours, condition, theirs = medians(
        asked,
        Growing(task, lambda grown: prior.condition(grown, seed=SEED)),
        lambda: botorch_baseline.step(task.X, z, starts, raw_samples=RAW_POINTS, num_restarts=RESTARTS),
        repeats=repeats,
        warm=warm,
    )
    counts = _counted(asked)
    bare = floor.step((tasks, points, task.d), n_t, counts.likelihood, counts.acquisition)
    return {
        "what": f"one step, {tasks} x {points} x {task.d}D past tasks, n_t = {n_t}",
        "scaml_cpu_seconds": ours.cpu,
        "scaml_wall_seconds": ours.wall,
        "of_which_condition_cpu_seconds": condition.cpu,
        "botorch_plain_gp_cpu_seconds": theirs.cpu,
        "botorch_plain_gp_wall_seconds": theirs.wall,
        "share_of_botorch": ours.cpu / theirs.cpu,
        "likelihoods": counts.likelihood,
        "acquisitions": counts.acquisition,
        "arithmetic_cpu_seconds": bare.cpu,
        "times_arithmetic": ours.cpu / bare.cpu,
        "active_tasks": int((prior.condition(task, seed=SEED).weights > 0).sum()),
    }


def on_table(
    family: str, tasks: int, points: int, n_t: int, rows: int, repeats: int, *, warm: bool = True
) -> dict[str, Any]:
    """Condition and choose a row of a table that the prior has seen in the step before."""
    prior = ScaML().meta_fit(FAMILIES[family].meta_data(tasks, points, SEED), seed=SEED)
    task, table = observed_task(family, n_t), _table(rows, FAMILIES[family].d)
    asked = Growing(task, lambda grown: suggest(prior, grown, candidates=table, seed=SEED))
    ours, condition = medians(
        asked,
        Growing(task, lambda grown: prior.condition(grown, seed=SEED)),
        repeats=repeats,
        warm=warm,
    )
    counts = _counted(asked)
    bare = floor.table_step(
        (tasks, points, task.d), n_t, rows, counts.likelihood, draws=_DRAWS, repeats=repeats
    )
    return {
        "what": f"step on {rows} rows, {tasks} x {points} x {task.d}D past tasks, n_t = {n_t}",
        "scaml_cpu_seconds": ours.cpu,
        "scaml_wall_seconds": ours.wall,
        "of_which_condition_cpu_seconds": condition.cpu,
        "likelihoods": counts.likelihood,
        "arithmetic_cpu_seconds": bare.cpu,
        "times_arithmetic": ours.cpu / bare.cpu,
    }


def _table(rows: int, d: int) -> Tensor:
    generator = torch.Generator().manual_seed(SEED)
    return torch.rand(rows, d, generator=generator, dtype=torch.float64)
