"""Results of studies that never ran, for the tests of summaries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from scaml.bench import summary
from scaml.bench.summary import Row

BRANIN, SVM = ("branin", 8, 32), ("svm", 19, 64)


def records(
    setting: tuple[str, int, int], method: str, runs: list[int], steps: int = 5, seed: int = 0
) -> list[dict[str, Any]]:
    """Evaluations as the runner writes them, with random regrets that fall."""
    generator = np.random.default_rng([seed, *method.encode(), *runs])
    found = []
    for run in runs:
        regrets = np.minimum.accumulate(generator.exponential(size=steps)).tolist()
        fit = float(generator.random())
        for step, regret in enumerate(regrets, start=1):
            found.append(
                {
                    **dict(zip(("problem", "meta_tasks", "points"), setting, strict=True)),
                    "method": method,
                    "settings": "()",
                    "run": run,
                    "step": step,
                    "x": [0.5],
                    "y": -regret,
                    "value": -regret,
                    "regret": regret,
                    "span": math.nan,
                    "seconds": float(generator.random()),
                    "meta_fit_seconds": fit,
                    "weights": None,
                }
            )
    return found


def study() -> list[dict[str, Any]]:
    """Two settings whose methods do not have all runs, and one method a single one."""
    return [
        *records(SVM, "random", [0, 1, 2], steps=3),
        *records(BRANIN, "./mine.py:Mine", [2, 3, 4]),
        *records(BRANIN, "gpbo", [0, 1, 2, 3]),
        *records(BRANIN, "scaml", [1, 2, 3, 5]),
        *records(BRANIN, "another", [3]),
        *records(SVM, "scaml", [0, 1, 2], steps=3),
    ]


def shuffled(rows: list[dict[str, Any]], seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(rows).sample(frac=1.0, random_state=seed)


def one_step(regrets: dict[str, list[float]]) -> list[Row]:
    """A summary of one-step runs of Branin, whose cumulative regrets are these."""
    rows = [
        {**records(BRANIN, method, [run], 1)[0], "regret": regret}
        for method, values in regrets.items()
        for run, regret in enumerate(values)
    ]
    return summary.summarize(pd.DataFrame(rows))


def row_of(rows: list[Row], method: str, problem: str = "branin") -> Row:
    (found,) = [row for row in rows if (row.method, row.problem) == (method, problem)]
    return found
