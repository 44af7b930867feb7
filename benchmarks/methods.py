"""All methods side by side: regret on the synthetic families, and what a step and a meta-fit cost.

Run by `make methods`: within a run all methods get the same meta-data, test function and noise.
Finished runs are kept in `benchmarks/methods.json`, so that a stopped command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.report import provenance, write
from scaml import Task, suggest
from scaml.bench import FAMILIES
from scaml.methods import ABLR, FSBO, GC3P, GPBO, MTGP, RGPE, RMGPUCB, SGPT, Method, ScaML, StackGP

TASKS, POINTS, EVALUATIONS = 8, 32, 30
METHODS: dict[str, Method | None] = {
    "ScaML": ScaML(),
    "ScaML, union": ScaML(normalization="union"),
    "GPBO": GPBO(),
    "RGPE": RGPE(),
    "SGPT": SGPT(),
    "StackGP": StackGP(),
    "ABLR": ABLR(),
    "RMGPUCB": RMGPUCB(),
    "FSBO": FSBO(),
    "GC3P": GC3P(),
    "MTGP": MTGP(),
    "random search": None,
}
ENSEMBLES = ("ScaML", "RGPE", "SGPT", "StackGP", "RMGPUCB")
NETWORKS = ("ABLR", "FSBO", "GC3P")

console = Console()


def run(family_name: str, name: str, seed: int) -> dict[str, Any]:
    """One run of one method: simple regrets after every evaluation, and the time they took."""
    torch.set_num_threads(1)
    family, method = FAMILIES[family_name], METHODS[name]
    meta, function = family.meta_data(TASKS, POINTS, seed), family.draw(seed)
    noise = family.noise * np.random.default_rng([1, seed]).standard_normal(EVALUATIONS)
    start = time.perf_counter()
    prior = None if method is None else method.meta_fit(meta, seed=seed)
    fitted = time.perf_counter()
    draws = torch.Generator().manual_seed(seed)
    task, best, regrets = Task.empty(family.d), -np.inf, []
    for i in range(EVALUATIONS):
        if prior is None:
            x = torch.rand(1, family.d, generator=draws, dtype=torch.float64)
        else:
            x = suggest(prior, task, seed=1000 * seed + i)
        value = function(x).item()
        task = task.append(x, value + noise[i])
        best = max(best, value)
        regrets.append(function.maximum - best)
    return {
        "family": family_name,
        "method": name,
        "seed": seed,
        "meta_fit_seconds": fitted - start,
        "step_seconds": (time.perf_counter() - fitted) / EVALUATIONS,
        "regrets": regrets,
    }


def regrets(arguments: argparse.Namespace) -> None:
    """Run what is not there yet, and keep every run."""
    source = provenance("make methods")
    kept: list[dict[str, Any]] = []
    if arguments.out.exists():
        kept = json.loads(arguments.out.read_text())["runs"]
    done = {(row["family"], row["method"], row["seed"]) for row in kept}
    units = [
        (family, name, seed)
        for name in arguments.methods
        for family in arguments.families
        for seed in range(arguments.runs)
        if (family, name, seed) not in done
    ]
    parallel = joblib.Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")
    start = time.perf_counter()
    for i, row in enumerate(parallel(joblib.delayed(run)(*unit) for unit in units), 1):
        kept.append(row | {"revision": source["revision"]})
        kept.sort(key=lambda r: (r["family"], r["method"], r["seed"]))
        write(arguments.out, source, tasks=TASKS, points=POINTS, runs=kept)
        left = (time.perf_counter() - start) / i * (len(units) - i)
        console.print(f"[dim]{i} of {len(units)} runs, {left / 60:.0f} min left: {row['method']}[/dim]")
    show(kept, arguments.families)


def show(rows: list[dict[str, Any]], families: list[str]) -> None:
    """Cumulative and final regret, mean ± standard error, by method."""
    for family in families:
        columns = ("method", "runs", "cumulative regret", "final regret", "s a step", "s to meta-fit")
        setting = f"M = {TASKS}, N_m = {POINTS}, {EVALUATIONS} evaluations"
        table = Table(*columns, title=f"{FAMILIES[family].title}: {setting}")
        for name in METHODS:
            mine = [row for row in rows if (row["family"], row["method"]) == (family, name)]
            if mine:
                table.add_row(
                    name,
                    str(len(mine)),
                    _with_error([sum(row["regrets"]) for row in mine]),
                    _with_error([row["regrets"][-1] for row in mine]),
                    f"{np.median([row['step_seconds'] for row in mine]):.2f}",
                    f"{np.median([row['meta_fit_seconds'] for row in mine]):.2f}",
                )
        console.print(table)


def _with_error(values: list[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{np.mean(values):.3g} ± {error:.2g}"


def costs(arguments: argparse.Namespace) -> None:
    """A step of every ensemble beside one of ScaML-GP; meta-training of every network."""
    torch.set_num_threads(1)
    source = provenance("make methods-speed")
    results: dict[str, Any] = {"steps": _steps(arguments.repeats), "meta_training": {}}
    for family, tasks, points in (("branin", 8, 32), ("hartmann6", 32, 128)):
        meta = FAMILIES[family].meta_data(tasks, points, 0)
        for name in NETWORKS:
            method = METHODS[name]
            assert method is not None
            seconds = _seconds(partial(method.meta_fit, meta, seed=0))
            results["meta_training"][f"{name}, {tasks} x {points} x {meta.d}D"] = seconds
    for title, figures in results.items():
        table = Table("what", "seconds", title=title)
        for key, value in figures.items():
            table.add_row(key, f"{value:.3g}")
        console.print(table)
    write(arguments.out.with_name("methods_speed.json"), source, results=results)


def _steps(repeats: int) -> dict[str, float]:
    """Medians of a whole step, the methods taking turns, and shares of ScaML-GP's."""
    family = FAMILIES["hartmann6"]
    meta, function = family.meta_data(32, 128, 0), family.draw(0)
    X = torch.rand(40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before, task = Task(X[:39], function(X[:39])), Task(X, function(X))
    priors = {}
    for name in ENSEMBLES:
        method = METHODS[name]
        assert method is not None
        priors[name] = method.meta_fit(meta, seed=0)
        suggest(priors[name], before, seed=0)  # a step comes after others
    taken: dict[str, list[float]] = {name: [] for name in ENSEMBLES}
    for i in range(repeats):
        for name, prior in priors.items():
            # One more observation than before, as in a run: what a method keeps of steps, it has.
            grown = before.append(task.X[39:], task.y[39:] + 1e-9 * i)
            taken[name].append(_seconds(partial(suggest, prior, grown, seed=i)))
    medians = {name: float(np.median(seconds)) for name, seconds in taken.items()}
    shares = {f"{name} / ScaML": medians[name] / medians["ScaML"] for name in ENSEMBLES[1:]}
    return medians | shares


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Regrets, or what they cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", default=["branin", "hartmann3"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--costs", action="store_true", help="measure time, not regret")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("methods.json"))
    arguments = parser.parse_args()
    costs(arguments) if arguments.costs else regrets(arguments)


if __name__ == "__main__":
    main()
