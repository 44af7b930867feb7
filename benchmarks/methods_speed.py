"""What the methods cost: a step of every ensemble beside one of ScaML-GP, and the networks' training.

Run by `make methods-speed`, all of them in one process on one thread. What they find is in `results/`.
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
from scaml import Task, suggest
from scaml.bench import FAMILIES
from scaml.methods import ABLR, FSBO, GC3P, RGPE, RMGPUCB, SGPT, Method, ScaML, StackGP

ENSEMBLES: dict[str, Method] = {
    "ScaML": ScaML(),
    "RGPE": RGPE(),
    "SGPT": SGPT(),
    "StackGP": StackGP(),
    "RMGPUCB": RMGPUCB(),
}
NETWORKS: dict[str, Method] = {"ABLR": ABLR(), "FSBO": FSBO(), "GC3P": GC3P()}

console = Console()


def costs(arguments: argparse.Namespace) -> None:
    """A step of every ensemble beside one of ScaML-GP; meta-training of every network."""
    torch.set_num_threads(1)
    source = provenance("make methods-speed")
    results: dict[str, Any] = {"steps": _steps(arguments.repeats), "meta_training": {}}
    for family, tasks, points in (("branin", 8, 32), ("hartmann6", 32, 128)):
        meta = FAMILIES[family].meta_data(tasks, points, 0)
        for name, method in NETWORKS.items():
            seconds = _seconds(partial(method.meta_fit, meta, seed=0))
            results["meta_training"][f"{name}, {tasks} x {points} x {meta.d}D"] = seconds
    for title, figures in results.items():
        table = Table("what", "seconds", title=title)
        for key, value in figures.items():
            table.add_row(key, f"{value:.3g}")
        console.print(table)
    write(arguments.out, source, results=results)


def _steps(repeats: int) -> dict[str, float]:
    """Medians of a whole step, the methods taking turns, and shares of ScaML-GP's."""
    family = FAMILIES["hartmann6"]
    meta, function = family.meta_data(32, 128, 0), family.draw(0)
    X = torch.rand(40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before, task = Task(X[:39], function(X[:39])), Task(X, function(X))
    priors = {}
    for name, method in ENSEMBLES.items():
        priors[name] = method.meta_fit(meta, seed=0)
        suggest(priors[name], before, seed=0)  # a step comes after others
    taken: dict[str, list[float]] = {name: [] for name in ENSEMBLES}
    for i in range(repeats):
        for name, prior in priors.items():
            # One more observation than before, as in a run: what a method keeps of steps, it has.
            grown = before.append(task.X[39:], task.y[39:] + 1e-9 * i)
            taken[name].append(_seconds(partial(suggest, prior, grown, seed=i)))
    medians = {name: float(np.median(seconds)) for name, seconds in taken.items()}
    shares = {
        f"{name} / ScaML": medians[name] / medians["ScaML"] for name in ENSEMBLES if name != "ScaML"
    }
    return medians | shares


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    costs(parser.parse_args())


if __name__ == "__main__":
    main()
