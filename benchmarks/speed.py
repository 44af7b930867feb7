"""Speed of the meta-fit and of one step, beside the same work in BoTorch, in one process.

Run by `make speed`: one BLAS thread, medians of several runs, ratios printed and written to
`benchmarks/speed.json`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.report import provenance, write
from scaml import MetaData, ScaML, Task, suggest
from scaml.ask import choose
from scaml.bench import FAMILIES
from scaml.gp.map_fit import STARTS, FitInput, fit_gps
from scaml.gp.units import standardize
from scaml.search.cube import RAW_POINTS, RESTARTS
from study.choices.acquisitions import Acquiring
from study.choices.variants import BASE
from tests import botorch_baseline

SEED = 0
GROWTH = (8, 32, 128, 512)

console = Console()


def median_seconds(*functions: Callable[[], Any], repeats: int) -> list[float]:
    """Median wall times, the functions taking turns, so that a slow minute is slow for all.

    The work is done once before, so that nobody pays for imports.
    """
    seconds: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + 1):
        for function, times in zip(functions, seconds, strict=True):
            start = time.perf_counter()
            function()
            if turn:
                times.append(time.perf_counter() - start)
    return [float(np.median(times)) for times in seconds]


def inputs_of(meta: MetaData) -> list[FitInput]:
    """Standardized tasks, as both sides fit them."""
    units = [standardize(task.y) for task in meta]
    return [
        FitInput(name, task.X, (task.y - unit.offset) / unit.scale)
        for name, task, unit in zip(meta.names, meta, units, strict=True)
    ]


def lapack_seconds(n: int, evaluations: int) -> float:
    """Cholesky and inverse alone, as often as the fit evaluated its likelihood."""
    batch = max(1, 2**18 // n**2)
    X = torch.rand(batch, n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(SEED))
    K = torch.exp(-0.5 * torch.cdist(X, X).square() / 0.25) + 0.01 * torch.eye(n, dtype=torch.float64)

    def once() -> None:
        torch.cholesky_inverse(torch.linalg.cholesky_ex(K)[0])

    return median_seconds(once, repeats=9)[0] / batch * evaluations


def meta_fit(family: str, tasks: int, points: int, repeats: int) -> dict[str, Any]:
    """`ScaML.meta_fit` beside a loop of SingleTaskGP + fit_gpytorch_mll with the same starts."""
    meta = FAMILIES[family].meta_data(tasks, points, SEED)
    inputs = inputs_of(meta)
    fit = fit_gps(inputs, kernel="se", seed=SEED)
    values: list[float] = []

    def theirs() -> None:
        values[:] = [
            botorch_baseline.fit("se", item.X, item.z, starts)[1]
            for item, starts in zip(inputs, fit.starts, strict=True)
        ]

    ours, seconds = median_seconds(
        lambda: ScaML().meta_fit(meta, seed=SEED, n_jobs=1), theirs, repeats=repeats
    )
    lapack = lapack_seconds(points, fit.evaluations)
    return {
        "what": f"meta-fit, {tasks} x {points} x {meta.d}D, {STARTS} starts",
        "scaml_seconds": ours,
        "botorch_seconds": seconds,
        "ratio": seconds / ours,
        "evaluations": fit.evaluations,
        "lapack_seconds": lapack,
        "times_lapack": ours / lapack,
        "worst_nats_per_point_behind_botorch": max(
            a - b for a, b in zip(fit.value.tolist(), values, strict=True)
        ),
    }


def observed_task(family: str, n: int) -> Task:
    """n_t observations, half of them near the best of the others, as in a run."""
    problem = FAMILIES[family]
    function = problem.draw(SEED)
    rng = np.random.default_rng(SEED)
    X = rng.random((n, problem.d))
    best = X[int(function(X).argmax())]
    X[: n // 2] = np.clip(best + 0.1 * rng.standard_normal((n // 2, problem.d)), 0.0, 1.0)
    return Task(X, function(X).numpy() + problem.noise * rng.standard_normal(n))


def step(family: str, tasks: int, points: int, n_t: int, repeats: int) -> dict[str, Any]:
    """Condition and suggest with all past tasks, beside BoTorch's plain-GP step without them."""
    prior = ScaML().meta_fit(FAMILIES[family].meta_data(tasks, points, SEED), seed=SEED)
    task = observed_task(family, n_t)
    unit = standardize(task.y)
    z = (task.y - unit.offset) / unit.scale
    starts = fit_gps([FitInput("plain", task.X, z)], kernel="se", seed=SEED).starts[0]
    ours, condition, theirs = median_seconds(
        lambda: suggest(prior, task, seed=SEED),
        lambda: prior.condition(task, seed=SEED),
        lambda: botorch_baseline.step(task.X, z, starts, raw_samples=RAW_POINTS, num_restarts=RESTARTS),
        repeats=repeats,
    )
    return {
        "what": f"one step, {tasks} x {points} x {task.d}D past tasks, n_t = {n_t}",
        "scaml_seconds": ours,
        "of_which_condition_seconds": condition,
        "botorch_plain_gp_seconds": theirs,
        "share_of_botorch": ours / theirs,
        "active_tasks": int((prior.condition(task, seed=SEED).weights > 0).sum()),
    }


def acquisition(
    family: str, tasks: int, points: int, n_t: int, rows: int, repeats: int
) -> dict[str, Any]:
    """Noisy expected improvement in closed form, maximized, beside UCB and BoTorch's by Monte Carlo.

    The model is the same. So is the search, over the cube or over a table of so many rows, but that on
    the cube ours looks at 512 points more, beside the best data.
    """
    meta, task = FAMILIES[family].meta_data(tasks, points, SEED), observed_task(family, n_t)
    generator = torch.Generator().manual_seed(SEED)
    table = torch.rand(rows, task.d, generator=generator, dtype=torch.float64) if rows else None
    nobody = torch.empty(0, task.d, dtype=torch.float64)

    def choosing(method: ScaML) -> Callable[[], Any]:
        prior = method.meta_fit(meta, seed=SEED)
        model = prior.condition(task, seed=SEED)
        return lambda: choose(prior, model, task, 1, nobody, SEED, table=table)

    ours, ucb, theirs = median_seconds(
        *(choosing(method) for method in (ScaML(), BASE, Acquiring(acquisition="lognei"))),
        repeats=repeats,
    )
    where = f"{rows} rows" if rows else "the cube"
    return {
        "what": f"maximization over {where}, {tasks} x {points} x {task.d}D past tasks, n_t = {n_t}",
        "noisy_ei_seconds": ours,
        "ucb_seconds": ucb,
        "botorch_qlognei_seconds": theirs,
        "times_ucb": ours / ucb,
        "ratio_to_botorch": theirs / ours,
    }


def growth(repeats: int) -> dict[str, Any]:
    """Seconds over M, and the exponent of a power law fitted to them."""
    fits, steps = [], []
    for tasks in GROWTH:
        meta = FAMILIES["branin"].meta_data(tasks, 32, SEED)
        prior = ScaML().meta_fit(meta, seed=SEED)
        task = observed_task("branin", 20)
        fit, step = median_seconds(
            partial(ScaML().meta_fit, meta, seed=SEED),
            partial(suggest, prior, task, seed=SEED),
            repeats=repeats,
        )
        fits.append(fit)
        steps.append(step)
    exponent = [float(np.polyfit(np.log(GROWTH), np.log(seconds), 1)[0]) for seconds in (fits, steps)]
    return {
        "what": "growth over M, 32 x 2D points a task, n_t = 20",
        "M": list(GROWTH),
        "meta_fit_seconds": fits,
        "step_seconds": steps,
        "meta_fit_exponent": exponent[0],
        "step_exponent": exponent[1],
    }


def show(results: list[dict[str, Any]]) -> None:
    """One small table a measurement."""
    for result in results:
        table = Table(title=result["what"], show_header=False)
        for key, value in result.items():
            if key != "what":
                shown = value if isinstance(value, list) else [value]
                table.add_row(key, ", ".join(f"{v:.4g}" for v in shown))
        console.print(table)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("speed.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    repeats = arguments.repeats
    source = provenance("make speed")
    stages: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("meta-fit, small", lambda: meta_fit("branin", 8, 32, repeats)),
        ("step, small", lambda: step("branin", 8, 32, 20, repeats)),
        ("step, large", lambda: step("hartmann6", 32, 128, 40, repeats)),
        ("acquisition, cube", lambda: acquisition("hartmann6", 32, 128, 40, 0, repeats)),
        ("acquisition, table", lambda: acquisition("hartmann6", 8, 64, 40, 8000, repeats)),
        ("growth", lambda: growth(repeats)),
        ("meta-fit, large", lambda: meta_fit("hartmann6", 32, 128, repeats)),
    ]
    results = []
    for name, stage in stages:
        console.print(f"[dim]measuring {name} ...[/dim]")
        results.append(stage())
        show(results[-1:])
    write(arguments.out, source, threads=torch.get_num_threads(), repeats=repeats, results=results)
    console.print(f"Written: {arguments.out}")


if __name__ == "__main__":
    main()
