"""Acquisition functions beside each other, and how time grows with the number of past tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.speed_rows.steps import observed_task
from benchmarks.timing import medians
from scaml import ScaML, suggest
from scaml.ask import choose
from scaml.bench import FAMILIES
from study.choices.acquisitions import Acquiring
from study.choices.variants import BASE

__all__ = ["growth", "maximization"]

SEED = 0


def maximization(
    family: str, tasks: int, points: int, n_t: int, rows: int, repeats: int
) -> dict[str, Any]:
    """Noisy expected improvement in closed form, maximized, beside UCB and BoTorch's by Monte Carlo.

    The model is the same, one of all weights. So is the search, over the cube or over a table of some
    rows, but that on the cube ours looks at 512 points more, beside the best data.
    """
    meta, task = FAMILIES[family].meta_data(tasks, points, SEED), observed_task(family, n_t)
    generator = torch.Generator().manual_seed(SEED)
    table = torch.rand(rows, task.d, generator=generator, dtype=torch.float64) if rows else None
    nobody = torch.empty(0, task.d, dtype=torch.float64)

    def choosing(method: ScaML) -> Callable[[], Any]:
        prior = method.meta_fit(meta, seed=SEED)
        model = prior.condition(task, seed=SEED)
        return lambda: choose(prior, model, task, 1, nobody, SEED, table=table)

    theirs = Acquiring(**{**vars(BASE), "rule": "lognei"})
    own, ucb, monte_carlo = medians(
        *(choosing(method) for method in (replace(BASE, acquisition="lognei"), BASE, theirs)),
        repeats=repeats,
    )
    where = f"{rows} rows" if rows else "the cube"
    return {
        "what": f"maximization over {where}, {tasks} x {points} x {task.d}D past tasks, n_t = {n_t}",
        "noisy_ei_cpu_seconds": own.cpu,
        "ucb_cpu_seconds": ucb.cpu,
        "botorch_qlognei_cpu_seconds": monte_carlo.cpu,
        "times_ucb": own.cpu / ucb.cpu,
        "ratio_to_botorch": monte_carlo.cpu / own.cpu,
    }


def growth(numbers: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """CPU seconds over M, and the exponent of a power law fitted to them."""
    fits, steps = [], []
    for tasks in numbers:
        meta = FAMILIES["branin"].meta_data(tasks, 32, SEED)
        prior = ScaML().meta_fit(meta, seed=SEED)
        task = observed_task("branin", 20)
        fit, step = medians(
            partial(ScaML().meta_fit, meta, seed=SEED),
            partial(suggest, prior, task, seed=SEED),
            repeats=repeats,
        )
        fits.append(fit.cpu)
        steps.append(step.cpu)
    exponent = [float(np.polyfit(np.log(numbers), np.log(seconds), 1)[0]) for seconds in (fits, steps)]
    return {
        "what": "growth over M, 32 x 2D points per task, n_t = 20",
        "M": list(numbers),
        "meta_fit_cpu_seconds": fits,
        "step_cpu_seconds": steps,
        "meta_fit_exponent": exponent[0],
        "step_exponent": exponent[1],
    }
