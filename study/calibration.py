"""Coverage of prediction intervals on tables: how often intervals of 50, 80 and 95 % hold the truth.

A model predicts unseen rows of the test-task: before any data, after 5 and after 20 random rows. The
intervals of a calibrated model cover as much as they say.
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

from scaml.bench.contestants import Contestant
from scaml.bench.problems import TableProblem, problem
from scaml.common.checks import check_integer
from scaml.common.parallel import each
from scaml.errors import SettingError
from scaml.gp.posterior import mean_and_variance
from scaml.tasks.task import Task

__all__ = ["LEVELS", "OBSERVATIONS", "calibrate", "coverage_error"]

OBSERVATIONS = (0, 5, 20)
"""The numbers of observed rows, n_t."""
LEVELS = (0.5, 0.8, 0.95)
"""The shares of rows that the intervals should cover."""
_ROWS = 1000  # the largest number of rows of a table that are predicted
_ORDER_OF_ROWS = 6  # the stream of random numbers of a run that shuffles the rows
_AT_ONCE = 256


@dataclass(frozen=True)
class _Case:
    problem: str
    contestant: Contestant
    run: int


def calibrate(
    problems: Sequence[str],
    contestants: Sequence[Contestant],
    runs: int,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Shares of rows inside the intervals.

    Args:
        problems: The names of tables.
        contestants: The methods.
        runs: The number of runs, numbered from 0. Past and test-task are those of `scaml bench run`.
        n_jobs: Processes to use, -1 for one per core. The result does not depend on it.
        progress: Called with the number of finished runs and the number of all runs.

    Returns:
        One row per problem, method, run, number of observations and level, with the share `covered`.
    """
    check_integer(runs, "The number of runs", least=1)
    for name in problems:
        if not isinstance(problem(name), TableProblem):
            raise SettingError(f"{name!r} is no table; calibration needs one, such as 'svm'.")
    for contestant in contestants:
        if contestant.method is None:
            raise SettingError(f"{contestant.name!r} predicts nothing; give a method with a model.")
    cases = [_Case(*key) for key in product(problems, contestants, range(runs))]
    report = progress or (lambda done, total: None)
    report(0, len(cases))
    rows: list[dict[str, str | int | float]] = []
    for done, found in enumerate(each(_coverage, cases, n_jobs), start=1):
        rows += found
        report(done, len(cases))
    order = ["problem", "method", "run", "observations", "level"]
    return pd.DataFrame(rows).sort_values(order, ignore_index=True)


def coverage_error(frame: pd.DataFrame) -> pd.DataFrame:
    """The mean coverage over runs and tables, and the mean error of coverage over tables.

    The error of a table is the absolute difference between its mean coverage and the level.

    Returns:
        One row per method, number of observations and level, with `covered` and `error`.
    """
    by = ["method", "observations", "level"]
    tables = frame.groupby(["problem", *by], as_index=False)["covered"].mean()
    tables["error"] = (tables["covered"] - tables["level"]).abs()
    return tables.groupby(by, as_index=False)[["covered", "error"]].mean()


def _coverage(case: _Case) -> list[dict[str, str | int | float]]:
    method = case.contestant.method
    assert method is not None
    where = problem(case.problem)
    instance = where.draw(case.run)
    assert instance.candidates is not None
    prior = method.meta_fit(instance.meta, seed=case.run)
    generator = np.random.default_rng([_ORDER_OF_ROWS, case.run])
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
            rows.append(
                {
                    "problem": case.problem,
                    "method": case.contestant.name,
                    "run": case.run,
                    "observations": n,
                    "level": level,
                    "covered": covered,
                }
            )
    return rows


def _predicted(model: Model, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of observations at the rows, including noise."""
    with torch.no_grad():
        posteriors = [
            model.posterior(part.unsqueeze(-2), observation_noise=True) for part in X.split(_AT_ONCE)
        ]
    found = [mean_and_variance(posterior) for posterior in posteriors]
    mean = torch.cat([mean.flatten() for mean, _ in found])
    variance = torch.cat([variance.flatten() for _, variance in found])
    return mean, variance.sqrt()
