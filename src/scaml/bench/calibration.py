"""Whether a model knows what it does not know: how often its intervals hold the truth, on tables.

Before any data, after 5 and after 20 random rows of the test-task, intervals of 50, 80 and 95 % around
the predictions of the other rows. An honest model's cover as much as they say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.bench.contestants import contestant
from scaml.bench.problems import TableProblem, problem
from scaml.common.checks import check_integer
from scaml.common.parallel import each
from scaml.errors import SettingError
from scaml.tasks.task import Task

__all__ = ["LEVELS", "OBSERVATIONS", "calibrate", "coverage_error"]

OBSERVATIONS = (0, 5, 20)
"""n_t."""
LEVELS = (0.5, 0.8, 0.95)
"""What the intervals are said to cover."""
_ROWS = 1000  # of a table that are predicted, at most
_PURPOSE = 6  # of the random numbers of a run, those of the rows
_AT_ONCE = 256


@dataclass(frozen=True)
class _Unit:
    problem: str
    method: str
    run: int


def calibrate(
    problems: Sequence[str],
    methods: Sequence[str],
    runs: int,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Shares of rows inside the intervals.

    Args:
        problems: Names of tables.
        methods: Names of methods.
        runs: Runs of each, numbered from 0: those of a study of the same problems.
        n_jobs: Processes to use, -1 for one a core. The result does not depend on it.
        progress: Told how many runs are done, and out of how many.

    Returns:
        One row a problem, method, run, number of observations and level, with the share `covered`.
    """
    check_integer(runs, "The number of runs", least=1)
    for name in problems:
        if not isinstance(problem(name), TableProblem):
            raise SettingError(f"{name!r} is no table; calibration needs one, such as 'svm'.")
    for name in methods:
        if contestant(name).method is None:
            raise SettingError(f"{name!r} predicts nothing; give a method with a model.")
    units = [_Unit(*key) for key in product(problems, methods, range(runs))]
    report = progress or (lambda done, total: None)
    report(0, len(units))
    rows: list[dict[str, str | int | float]] = []
    for done, found in enumerate(each(_coverage, units, n_jobs), start=1):
        rows += found
        report(done, len(units))
    order = ["problem", "method", "run", "observations", "level"]
    return pd.DataFrame(rows).sort_values(order, ignore_index=True)


def coverage_error(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean coverage over runs and tables, and how far the tables' coverage is off on average.

    Returns:
        One row a method, number of observations and level, with `covered` and `error`.
    """
    by = ["method", "observations", "level"]
    tables = frame.groupby(["problem", *by], as_index=False)["covered"].mean()
    tables["error"] = (tables["covered"] - tables["level"]).abs()
    return tables.groupby(by, as_index=False)[["covered", "error"]].mean()


def _coverage(unit: _Unit) -> list[dict[str, str | int | float]]:
    method = contestant(unit.method).method
    assert method is not None
    where = problem(unit.problem)
    instance = where.draw(unit.run)
    assert instance.candidates is not None
    prior = method.meta_fit(instance.meta, seed=unit.run)
    generator = np.random.default_rng([_PURPOSE, unit.run])
    order = torch.from_numpy(generator.permutation(len(instance.candidates)))
    table = instance.candidates[order[: _ROWS + max(OBSERVATIONS)]]
    values = instance.function(table)
    rows: list[dict[str, str | int | float]] = []
    for n in OBSERVATIONS:
        model = prior.condition(Task(table[:n], values[:n]) if n else Task.empty(where.d))
        X, y = table[max(OBSERVATIONS) :], values[max(OBSERVATIONS) :]
        mean, deviation = _predicted(model, X)
        distance = (y - mean).abs() / deviation
        for level in LEVELS:
            half = torch.special.ndtri(torch.tensor(0.5 + level / 2.0, dtype=torch.float64))
            covered = (distance <= half).double().mean().item()
            rows.append(vars(unit) | {"observations": n, "level": level, "covered": covered})
    return rows


def _predicted(model: Model, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of observations at the rows, noise included."""
    with torch.no_grad():
        posteriors = [
            model.posterior(part.unsqueeze(-2), observation_noise=True) for part in X.split(_AT_ONCE)
        ]
    mean = torch.cat([posterior.mean.flatten() for posterior in posteriors])
    variance = torch.cat([posterior.variance.flatten() for posterior in posteriors])
    return mean, variance.sqrt()
