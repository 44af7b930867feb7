"""Time to suggest of `ScaMLSampler` beside Optuna's `GPSampler` on the same studies, in one process.

Run by `make sampler-speed`: one BLAS thread, the samplers taking turns, medians, ratios printed and
written to `benchmarks/sampler_speed.json`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.report import provenance, write
from scaml import ScaMLSampler

PAST, PAST_TRIALS, DONE = 20, 100, 50

console = Console()


def numbers(trial: optuna.Trial) -> list[float]:
    """Eight floats."""
    return [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(8)]


def mixed(trial: optuna.Trial) -> list[float]:
    """Eight parameters of all kinds."""
    return [
        trial.suggest_float("a", 0.0, 1.0),
        trial.suggest_float("b", 1e-3, 1.0, log=True),
        trial.suggest_float("c", 0.0, 1.0),
        trial.suggest_int("layers", 1, 10) / 10,
        trial.suggest_int("units", 1, 200, log=True) / 200,
        ("x", "y", "z").index(trial.suggest_categorical("kind", ["x", "y", "z"])) / 2,
        trial.suggest_float("dropout", 0.0, 2.0, step=0.25) / 2,
        float(trial.suggest_categorical("flag", [True, False])),
    ]


def study_of(
    space: Callable[[optuna.Trial], list[float]], shift: float, n: int, seed: int
) -> optuna.Study:
    """A study of n random trials of a shifted bowl."""
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=seed), study_name=f"past-{seed}"
    )
    study.optimize(lambda trial: objective(space(trial), shift), n_trials=n)
    return study


def objective(x: list[float], shift: float) -> float:
    """A bowl with waves."""
    z = np.array(x) - 0.5 - shift
    return float((z**2).sum() + 0.1 * np.sin(8.0 * z).sum())


def ask(study: optuna.Study, space: Callable[[optuna.Trial], list[float]]) -> float:
    """Seconds of one suggestion for a copy of the study, which stays as it is."""
    copy = optuna.create_study(sampler=study.sampler)
    copy.add_trials(study.trials)
    start = time.perf_counter()
    space(copy.ask())
    return time.perf_counter() - start


def measure(name: str, space: Callable[[optuna.Trial], list[float]], repeats: int) -> dict[str, Any]:
    """First and later suggestions of both samplers."""
    rng = np.random.default_rng(0)
    past = [study_of(space, 0.1 * rng.standard_normal(), PAST_TRIALS, seed) for seed in range(PAST)]
    new = study_of(space, 0.05, DONE, PAST)

    def with_sampler(sampler: optuna.samplers.BaseSampler) -> list[float]:
        new.sampler = sampler
        return [ask(new, space) for _ in range(repeats)]

    with_sampler(optuna.samplers.GPSampler(seed=0))  # imports
    theirs = with_sampler(optuna.samplers.GPSampler(seed=0))
    ours = with_sampler(ScaMLSampler(meta_studies=past, seed=0))
    with tempfile.TemporaryDirectory() as folder:
        with_sampler(ScaMLSampler(meta_studies=past, seed=0, cache=folder))
        cached = with_sampler(ScaMLSampler(meta_studies=past, seed=0, cache=folder))
    again = with_sampler(optuna.samplers.GPSampler(seed=1))
    gp = float(np.median(theirs + again))
    return {
        "what": f"{name}: {PAST} past studies of {PAST_TRIALS} trials, 8 parameters, {DONE} done",
        "gp_sampler_seconds": gp,
        "scaml_seconds": float(np.median(ours[1:])),
        "share": float(np.median(ours[1:])) / gp,
        "first_seconds": ours[0],
        "first_share": ours[0] / gp,
        "first_from_cache_seconds": cached[0],
        "first_from_cache_share": cached[0] / gp,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("sampler_speed.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    source, results = provenance("make sampler-speed"), []
    for name, space in (("numbers", numbers), ("mixed", mixed)):
        console.print(f"[dim]measuring {name} ...[/dim]")
        results.append(measure(name, space, arguments.repeats))
        table = Table(title=results[-1]["what"], show_header=False)
        for key, value in results[-1].items():
            if key != "what":
                table.add_row(key, f"{value:.4g}")
        console.print(table)
    write(arguments.out, source, results=results)


if __name__ == "__main__":
    main()
