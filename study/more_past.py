"""Does more past help? Regret over the number of past tasks.

Fewer past tasks are the first of more of them, and the new task is the same, so regrets are compared
run by run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import pandas as pd

from scaml.bench.problems import problem
from scaml.bench.settings import Setting
from study.regret_ratios import cumulative

__all__ = ["PROBLEMS", "numbers_of_tasks", "settings_of", "summary"]

PROBLEMS = ("svm", "lr", "rf", "xgb", "two-groups")
"""The problems by default."""
_NUMBERS = (2, 4, 9)  # and all


def numbers_of_tasks(name: str) -> list[int]:
    """The numbers of past tasks, M: 2, 4, 9 and all that the problem has.

    Args:
        name: The name of a problem. Of one without a limit, all are those of the paper's figure.
    """
    where = problem(name)
    most = where.meta_tasks if where.most_meta_tasks is None else where.most_meta_tasks
    return [*(number for number in _NUMBERS if number < most), most]


def settings_of(problems: Sequence[str], evaluations: int) -> list[Setting]:
    """One setting per problem and number of past tasks."""
    return [
        Setting.of(name, number, evaluations=evaluations)
        for name in dict.fromkeys(problems)
        for number in numbers_of_tasks(name)
    ]


def summary(frame: pd.DataFrame, settings: Sequence[Setting], methods: Sequence[str]) -> pd.DataFrame:
    """Regret by number of past tasks, and its change from the number before.

    Args:
        frame: The results, one row per evaluation.
        settings: Those to show, see `settings_of`; the folder may have others.
        methods: The names of the methods to show.

    Returns:
        One row per problem, method and number of past tasks, `meta_tasks`: `runs`; the mean cumulative
        regret, `regret`, and its standard `error`; the mean `change` from the number before in runs
        that have both, and its standard error, `change_error`. NaN where there is none.
    """
    keys = ["problem", "meta_tasks", "points"]
    asked = pd.DataFrame([asdict(setting) for setting in settings])[keys]
    sums = cumulative(frame).rename("regret").reset_index().merge(asked, on=keys)
    rows: list[dict[str, Any]] = []
    for name, method in product(dict.fromkeys(asked["problem"]), methods):
        group = sums[(sums["problem"] == name) & (sums["method"] == method)]
        by_number = group.pivot(index="run", columns="meta_tasks", values="regret").sort_index(axis=1)
        changes = by_number.diff(axis=1)
        for number in by_number:
            regret, change = by_number[number].dropna(), changes[number].dropna()
            rows.append(
                {
                    "problem": name,
                    "method": method,
                    "meta_tasks": int(number),
                    "runs": len(regret),
                    "regret": float(regret.mean()),
                    "error": _standard_error(regret),
                    "change": float(change.mean()) if len(change) else math.nan,
                    "change_error": _standard_error(change),
                }
            )
    return pd.DataFrame(rows)


def _standard_error(values: pd.Series[float]) -> float:
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else math.nan
