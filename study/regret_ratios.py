"""Ratios of cumulative regret between methods, and the best method without one family of problems.

A ratio is the mean cumulative regret of a method, divided by that of a reference on the same runs.
Regrets on a table are divided by the span of the table. Below 1, the method is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from scaml.bench.families import FAMILIES
from scaml.bench.safety import SAFETY
from scaml.errors import SettingError

__all__ = [
    "cumulative",
    "family_of",
    "geometric_mean",
    "geometric_mean_error",
    "kind_of",
    "leave_one_family_out",
    "overview",
    "overview_errors",
    "ratio_errors",
    "ratios",
]

_KINDS = ("tables", "synthetic", "safety")
_SETTING = ["problem", "meta_tasks", "points"]


def family_of(problem: str) -> str:
    """The family of a problem: problems of a family share tasks or formulas and are not independent."""
    if problem in SAFETY:
        return "safety"
    for family in ("fcnet", "hartmann"):
        if problem.startswith(family):
            return family
    return problem


def kind_of(problem: str) -> str:
    """The kind of a problem: "tables", "synthetic" or "safety"."""
    if problem in SAFETY:
        return "safety"
    if problem in FAMILIES:
        return "synthetic"
    return "tables"


def cumulative(frame: pd.DataFrame, evaluations: int | None = None) -> pd.Series[float]:
    """The cumulative regret by setting (problem, M, N_m), run and method.

    Args:
        frame: The results, one row per evaluation.
        evaluations: The number of evaluations of each run that count; None for all.
    """
    if evaluations is not None:
        frame = frame[frame["step"] <= evaluations]
    unit = frame["span"].fillna(1.0).replace(0.0, 1.0)
    regrets = frame.assign(regret=frame["regret"] / unit)
    sums: pd.Series[float] = regrets.groupby([*_SETTING, "run", "method"])["regret"].sum()
    return sums


def ratios(frame: pd.DataFrame, reference: str, evaluations: int | None = None) -> pd.DataFrame:
    """Ratios to the reference: one row per method, one column per setting (problem, M, N_m).

    Args:
        frame: The results, one row per evaluation.
        reference: The method that the others are compared with.
        evaluations: The number of evaluations of each run that count; None for all.

    Raises:
        SettingError: If the reference has no results.
    """
    return _compared(frame, reference, evaluations, _ratio)


def ratio_errors(frame: pd.DataFrame, reference: str, evaluations: int | None = None) -> pd.DataFrame:
    """Standard errors of `ratios`, from the differences of regret and ratio times reference per run."""
    return _compared(frame, reference, evaluations, _ratio_error)


def _compared(
    frame: pd.DataFrame,
    reference: str,
    evaluations: int | None,
    compare: Callable[[pd.Series[float], pd.Series[float]], float],
) -> pd.DataFrame:
    sums = cumulative(frame, evaluations).unstack("method")
    if reference not in sums:
        raise SettingError(
            f"The results have no method {reference!r}; compare with one of {', '.join(sums)}."
        )
    found: dict[str, dict[tuple[str, int, int], float]] = {method: {} for method in sums}
    for setting, group in sums.groupby(level=_SETTING):
        for method in sums:
            both = (
                group[[method, reference]].dropna() if method != reference else group[[method]].dropna()
            )
            if len(both):
                found[method][setting] = compare(both[method], both[reference])
    table = pd.DataFrame(found).T
    table.columns = pd.MultiIndex.from_tuples(list(table.columns), names=_SETTING)
    return table.sort_index(axis=1)


def _ratio(ours: pd.Series[float], theirs: pd.Series[float]) -> float:
    return float(ours.mean() / theirs.mean())


def _ratio_error(ours: pd.Series[float], theirs: pd.Series[float]) -> float:
    off = ours - _ratio(ours, theirs) * theirs
    return float(off.std() / math.sqrt(len(off)) / theirs.mean())


def geometric_mean(values: pd.Series[float]) -> float:
    """The geometric mean of the values that are not NaN; NaN if there are none."""
    logs = [math.log(value) for value in values.dropna() if value > 0]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan


def geometric_mean_error(values: pd.Series[float], errors: pd.Series[float]) -> float:
    """Standard error of `geometric_mean` of independent ratios, to first order."""
    there = values[values > 0]
    relative = (errors[there.index] / there).to_numpy()
    return geometric_mean(values) * math.hypot(*relative) / len(there) if len(there) else math.nan


def leave_one_family_out(table: pd.DataFrame) -> pd.DataFrame:
    """For every family: the method that is best on all other families, and its ratio on this family.

    Args:
        table: Ratios; methods that lack a setting are left out.

    Returns:
        One row per family: the method, `chosen`, and its geometric mean over the family's settings,
        `ratio`.
    """
    whole = table.dropna()
    families = pd.Series([family_of(problem) for problem, *_ in whole.columns], index=whole.columns)
    rows = {}
    for family in dict.fromkeys(families):
        inside = families == family
        elsewhere = whole.loc[:, ~inside].apply(geometric_mean, axis=1)
        chosen = elsewhere.idxmin()
        rows[family] = {"chosen": chosen, "ratio": geometric_mean(whole.loc[chosen, inside])}
    return pd.DataFrame(rows).T


def overview(table: pd.DataFrame) -> pd.DataFrame:
    """Geometric means of every method over tables, synthetic and safety families, and its worst table.

    Args:
        table: Ratios.
    """
    kinds = _kinds(table)
    columns = {
        kind: table.loc[:, kinds == kind].apply(geometric_mean, axis=1) for kind in _present(kinds)
    }
    if (kinds == "tables").any():
        columns["worst table"] = table.loc[:, kinds == "tables"].max(axis=1)
    return pd.DataFrame(columns)


def overview_errors(table: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """Standard errors of the geometric means of `overview`.

    Args:
        table: Ratios.
        errors: The standard errors of the ratios, see `ratio_errors`.
    """
    kinds = _kinds(table)
    return pd.DataFrame(
        {
            kind: [
                geometric_mean_error(
                    table.loc[method, kinds == kind], errors.loc[method, kinds == kind]
                )
                for method in table.index
            ]
            for kind in _present(kinds)
        },
        index=table.index,
    )


def _kinds(table: pd.DataFrame) -> pd.Series[str]:
    return pd.Series([kind_of(problem) for problem, *_ in table.columns], index=table.columns)


def _present(kinds: pd.Series[str]) -> list[str]:
    return [kind for kind in _KINDS if (kinds == kind).any()]
