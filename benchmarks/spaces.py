"""Regret of `ScaMLSampler` where the past studies and the new one have different parameters.

Run by `make spaces`: the paper's synthetic families, 8 past studies, paired runs. An irrelevant
parameter on either side must cost little; a past that shares nothing must be as good as no past.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.report import provenance, write
from scaml import ScaMLSampler
from scaml.bench import FAMILIES

PAST, EVALUATIONS = 8, 20
UNIT = FloatDistribution(0.0, 1.0)
CASES = ("matched", "one more in the past", "one more in the new study", "nothing shared", "no past")

console = Console()


def run(family_name: str, case: str, seed: int) -> float:
    """Cumulative regret of one run."""
    family = FAMILIES[family_name]
    meta = family.meta_data(PAST, family.points, seed)
    rng = np.random.default_rng(seed)
    irrelevant = rng.random((PAST, family.points))
    names = [f"x{i}" for i in range(family.d)]
    past = []
    for m, task in enumerate(meta):
        columns = {name: task.X[:, i].tolist() for i, name in enumerate(names)}
        if case == "one more in the past":
            columns["other"] = irrelevant[m].tolist()
        if case == "nothing shared":
            columns = {f"other {name}": values for name, values in columns.items()}
        past.append(study_of(meta.names[m], columns, task.y.tolist()))
    space: dict[str, BaseDistribution] = dict.fromkeys(names, UNIT)
    if case == "one more in the new study":
        space["new"] = UNIT
    sampler = ScaMLSampler(
        meta_studies=[] if case == "no past" else past, search_space=space, seed=seed
    )
    return regret(family_name, sampler, space, names, seed)


def regret(
    family_name: str,
    sampler: ScaMLSampler,
    space: dict[str, BaseDistribution],
    names: list[str],
    seed: int,
) -> float:
    """Sum of the simple regrets after every evaluation."""
    family = FAMILIES[family_name]
    function = family.draw(seed)
    noise = family.noise * np.random.default_rng(seed + 1).standard_normal(EVALUATIONS)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    best, total = -np.inf, 0.0
    for i in range(EVALUATIONS):
        trial = study.ask(space)
        value = function([[trial.params[name] for name in names]]).item()
        study.tell(trial, value + noise[i])
        best = max(best, value)
        total += function.maximum - best
    return float(total)


def study_of(name: str, columns: dict[str, list[float]], values: list[float]) -> optuna.Study:
    """A finished study of given trials."""
    study = optuna.create_study(direction="maximize", study_name=name)
    space: dict[str, BaseDistribution] = dict.fromkeys(columns, UNIT)
    rows = zip(*columns.values(), strict=True)
    study.add_trials(
        optuna.trial.create_trial(
            params=dict(zip(columns, row, strict=True)), distributions=space, value=value
        )
        for row, value in zip(rows, values, strict=True)
    )
    return study


def main() -> None:
    """Run all cases, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", default=["branin", "hartmann3"])
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("spaces.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    source = provenance("make spaces")
    results: list[dict[str, Any]] = []
    with Progress(console=console) as progress:
        bar = progress.add_task("runs", total=len(arguments.families) * len(CASES) * arguments.runs)
        for family in arguments.families:
            for case in CASES:
                values = []
                for seed in range(arguments.runs):
                    values.append(run(family, case, seed))
                    progress.advance(bar)
                mean, error = np.mean(values), np.std(values, ddof=1) / len(values) ** 0.5
                results.append(
                    {
                        "family": family,
                        "case": case,
                        "mean": mean,
                        "standard_error": error,
                        "runs": values,
                    }
                )
    table = Table("family", "case", "cumulative regret", "standard error")
    for row in results:
        table.add_row(row["family"], row["case"], f"{row['mean']:.4g}", f"{row['standard_error']:.2g}")
    console.print(table)
    write(arguments.out, source, results=results)


if __name__ == "__main__":
    main()
