"""An overview of all settings: mean ranks of every method, and what the paper's study would cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from scaml.bench.families import FAMILIES
from scaml.bench.problems import PROBLEMS
from scaml.bench.safety import SAFETY
from scaml.bench.summary.rows import Row, place
from scaml.errors import SettingError

__all__ = ["PAPER_RUNS", "Mark", "Standing", "extrapolate", "marks", "overview", "settings"]

PAPER_RUNS: dict[str, int] = {
    name: 128 if name in FAMILIES else 256 for name in PROBLEMS if name not in SAFETY
}
"""The number of runs per setting in the paper, by problem.

Section 5.1: "For each benchmark, we conduct 128 independent runs". Section 5.2, tables and FC-Net: "We
report the mean simple regret together with the standard error of the mean computed over 256 independent
runs".
"""

Mark = Literal["lowest", "within", ""]
"""Whether a mean cumulative regret is the lowest, within a standard error of the lowest, or higher."""


@dataclass(frozen=True)
class Standing:
    """How good one method is over all settings that it has runs in.

    Args:
        method: The name of the method.
        settings: The number of settings with runs of the method.
        rank: Mean of the ranks.
        mean_rank: Mean of the mean ranks, where they are known.
        lowest: The number of settings with the lowest mean cumulative regret; a tie counts for all.
        within: The number of settings with the lowest mean, or a mean that is higher by at most the
            standard error of the lowest.
        core_seconds: Time of all runs, if the rows have times.
        paper_core_seconds: The same for as many runs as in the paper, see `extrapolate`.
    """

    method: str
    settings: int
    rank: float
    mean_rank: float | None
    lowest: int
    within: int
    core_seconds: float | None
    paper_core_seconds: float | None


def overview(rows: Iterable[Row], runs: Mapping[str, int] = PAPER_RUNS) -> list[Standing]:
    """The standing of every method, known methods first.

    Args:
        rows: The rows of `summarize`.
        runs: The argument of `extrapolate`; without extrapolation if one of the problems is missing.
    """
    marked = [pair for setting in settings(rows) for pair in zip(setting, marks(setting), strict=True)]
    timed = all(row.core_seconds is not None for row, _ in marked)
    known = timed and all(row.problem in runs for row, _ in marked)
    paper = extrapolate((row for row, _ in marked), runs) if known else {}
    standings = []
    for method in sorted({row.method for row, _ in marked}, key=place):
        own = [row for row, _ in marked if row.method == method]
        counted = Counter(mark for row, mark in marked if row.method == method)
        mean_ranks = [row.mean_rank for row in own if row.mean_rank is not None]
        standings.append(
            Standing(
                method=method,
                settings=len(own),
                rank=mean(row.rank for row in own),
                mean_rank=mean(mean_ranks) if mean_ranks else None,
                lowest=counted["lowest"],
                within=counted["lowest"] + counted["within"],
                core_seconds=math.fsum(row.core_seconds or 0.0 for row in own) if timed else None,
                paper_core_seconds=paper.get(method),
            )
        )
    return standings


def extrapolate(rows: Iterable[Row], runs: Mapping[str, int] = PAPER_RUNS) -> dict[str, float]:
    """Core-seconds of every method if each of its settings had as many runs as `runs` says.

    Args:
        rows: The rows of `summarize` with `timings=True`.
        runs: The number of runs per setting, by problem.

    Raises:
        SettingError: If a row has no times, or its problem is not in `runs`.
    """
    terms: dict[str, list[float]] = {}
    for row in rows:
        if row.core_seconds is None:
            raise SettingError(
                f"The row of {row.method!r} has no core_seconds; summarize with timings."
            )
        if row.problem not in runs:
            raise SettingError(
                f"The problem {row.problem!r} has no runs to extrapolate to; add it to runs."
            )
        terms.setdefault(row.method, []).append(row.core_seconds * runs[row.problem] / row.runs)
    return {method: math.fsum(terms[method]) for method in sorted(terms, key=place)}


def settings(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of every setting, in the order in which the settings come."""
    groups: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.problem, row.meta_tasks, row.points), []).append(row)
    return list(groups.values())


def marks(setting: Sequence[Row]) -> list[Mark]:
    """The marks of the rows of one setting; the standard error is that of the lowest mean."""
    lowest = min(row.cumulative for row in setting)
    error = max(row.cumulative_se or 0.0 for row in setting if row.cumulative == lowest)

    def mark(value: float) -> Mark:
        return "lowest" if value == lowest else "within" if value <= lowest + error else ""

    return [mark(row.cumulative) for row in setting]
