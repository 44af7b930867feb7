"""One row per setting and method: regrets with standard errors, ranks, paired differences, and times.

Sums are exact before they are rounded, so a summary depends neither on the order of the results nor on
the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scaml.bench.contestants import CONTESTANTS
from scaml.errors import SettingError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Row", "place", "summarize"]

_SETTING = ["problem", "meta_tasks", "points"]
_RUN = [*_SETTING, "method", "run"]
_STEP = [*_RUN, "step"]


@dataclass(frozen=True)
class Row:
    """The summary of the runs of one method in one setting; None where something is not known.

    The cumulative regret of a run is the sum of its simple regrets over all steps. Standard errors are
    those of the mean over runs, and need at least two runs.

    Args:
        problem: The name of the problem; with the next two entries, the setting.
        meta_tasks: M.
        points: N_m.
        evaluations: The number of steps of every run.
        method: The name of the method.
        runs: The number of runs.
        cumulative: Mean cumulative regret.
        cumulative_se: Standard error of the mean cumulative regret.
        final: Mean simple regret after the last step.
        final_se: Standard error of the mean final regret.
        rank: Rank of the mean cumulative regret among the methods; 1 is lowest, ties share their mean.
        mean_rank: Rank within a run, averaged over the runs that all methods have.
        reference: The method that the others are compared with.
        difference: Mean of the cumulative regret minus that of the reference, over the runs that both
            have.
        difference_se: Standard error of the mean difference.
        pairs: The number of runs that both have; 0 for the reference itself.
        step_seconds: Median time of a suggestion.
        meta_fit_seconds: Median time of a meta-fit.
        core_seconds: Time of all meta-fits and suggestions together.
    """

    problem: str
    meta_tasks: int
    points: int
    evaluations: int
    method: str
    runs: int
    cumulative: float
    cumulative_se: float | None
    final: float
    final_se: float | None
    rank: float
    mean_rank: float | None
    reference: str
    difference: float | None
    difference_se: float | None
    pairs: int
    step_seconds: float | None = None
    meta_fit_seconds: float | None = None
    core_seconds: float | None = None


def summarize(frame: pd.DataFrame, *, timings: bool = False, reference: str = "scaml") -> list[Row]:
    """One row per setting and method: settings sorted, known methods first.

    Args:
        frame: The results, one row per evaluation, in any order.
        timings: Also summarize times, which differ between machines.
        reference: The method that the others are compared with; it may be missing.

    Raises:
        SettingError: If columns, values or steps are missing, or a step is there twice.
    """
    if frame.empty:
        return []
    columns = [*_STEP, "regret", *(["seconds", "meta_fit_seconds"] if timings else [])]
    frame = _checked(frame, columns)
    return [
        row
        for (problem, meta_tasks, points), part in frame.groupby(_SETTING)
        for row in _rows(part, reference, (problem, int(meta_tasks), int(points)))
    ]


def _checked(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """These columns, sorted; all runs must be complete, or sums of regret could not be compared."""
    missing = [column for column in columns if column not in frame]
    if missing:
        raise SettingError(
            f"The results have no column {', '.join(missing)}; give results of scaml bench run."
        )
    for column in columns:
        values = frame[column]
        bad = ~np.isfinite(values) if values.dtype.kind == "f" else values.isna()
        if bad.any():
            raise SettingError(
                f"The results have {values[bad].iloc[0]} as {column} in {bad.sum()} of {len(frame)} "
                "rows; leave out the runs that have these rows."
            )
    # As text: categories may have another order.
    frame = frame[columns].astype({"problem": str, "method": str}).sort_values(_STEP, ignore_index=True)
    steps = frame.groupby(_RUN)["step"].agg(["size", "nunique", "max"])
    steps["all"] = steps.groupby(_SETTING)["max"].transform("max")
    whole = steps[["size", "nunique", "max"]].eq(steps["all"], axis=0).all(axis=1)
    if not whole.all():
        problem, meta_tasks, points, method, run = steps.index[~whole][0]
        first = steps[~whole].iloc[0]
        raise SettingError(
            f"Run {run} of {method!r} on {problem} (M = {meta_tasks}, N_m = {points}) has "
            f"{first['size']} rows instead of one for each step from 1 to {first['all']}; "
            "finish it or leave it out."
        )
    return frame


@dataclass(frozen=True)
class _Runs:
    """The runs of one method in one setting: regrets by the number of the run, and times."""

    evaluations: int
    cumulative: dict[int, float]
    final: dict[int, float]
    times: dict[str, Any]

    @classmethod
    def of(cls, part: pd.DataFrame) -> _Runs:
        evaluations = int(part["step"].max())

        def by_run(column: str) -> list[list[float]]:
            values: NDArray[np.float64] = part[column].to_numpy(dtype=np.float64)
            return values.reshape(-1, evaluations).tolist()

        numbers = part["run"].iloc[::evaluations].tolist()
        regrets = dict(zip(numbers, by_run("regret"), strict=True))
        times = {}
        if "seconds" in part:
            steps = [seconds for run in by_run("seconds") for seconds in run]
            fits = [run[0] for run in by_run("meta_fit_seconds")]
            times = {
                "step_seconds": median(steps),
                "meta_fit_seconds": median(fits),
                "core_seconds": math.fsum(steps + fits),
            }
        cumulative = {number: math.fsum(run) for number, run in regrets.items()}
        return cls(evaluations, cumulative, {number: run[-1] for number, run in regrets.items()}, times)


def _rows(part: pd.DataFrame, reference: str, setting: tuple[str, int, int]) -> list[Row]:
    """The rows of one setting."""
    found = {name: _Runs.of(rows) for name, rows in part.groupby("method")}
    names = sorted(found, key=place)
    ranks = _ranks([mean(found[name].cumulative.values()) for name in names]).tolist()
    shared = sorted(set.intersection(*(set(runs.cumulative) for runs in found.values())))
    within = _ranks([[found[name].cumulative[run] for name in names] for run in shared])
    baseline = found[reference].cumulative if reference in found else {}
    rows = []
    for i, name in enumerate(names):
        own = found[name].cumulative
        final = list(found[name].final.values())
        pairs = [own[run] - baseline[run] for run in own if run in baseline and name != reference]
        rows.append(
            Row(
                *setting,
                evaluations=found[name].evaluations,
                method=name,
                runs=len(own),
                cumulative=mean(own.values()),
                cumulative_se=_error(list(own.values())),
                final=mean(final),
                final_se=_error(final),
                rank=ranks[i],
                mean_rank=mean(within[:, i].tolist()) if shared else None,
                reference=reference,
                difference=mean(pairs) if pairs else None,
                difference_se=_error(pairs),
                pairs=len(pairs),
                **found[name].times,
            )
        )
    return rows


def place(method: str) -> tuple[int, str]:
    """A key to sort methods: known methods in a fixed order, then the others by name."""
    known = CONTESTANTS.index(method) if method in CONTESTANTS else len(CONTESTANTS)
    return known, method


def _error(values: Sequence[float]) -> float | None:
    """Standard error of the mean."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def _ranks(values: Any) -> NDArray[np.float64]:
    """Ranks from 1 along the last dimension; ties share the mean of their ranks."""
    array = np.asarray(values, dtype=np.float64)
    others, own = array[..., None, :], array[..., :, None]
    ranks: NDArray[np.float64] = (others < own).sum(-1) + ((others == own).sum(-1) + 1) / 2
    return ranks
