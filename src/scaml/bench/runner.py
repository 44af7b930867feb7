"""Runs a study: every unit that is not there yet, on several processes."""

from __future__ import annotations

import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaml.bench.contestants import contestant
from scaml.bench.history import note
from scaml.bench.results import Results, done, in_use
from scaml.bench.settings import Setting, fits
from scaml.bench.single_run import Row, Unit, evaluate
from scaml.common.checks import check_integer
from scaml.common.parallel import each, effective_n_jobs

__all__ = ["Failure", "Progress", "Study", "run_study"]


@dataclass(frozen=True)
class Failure:
    """A unit that ended in an exception, and where its traceback is."""

    unit: Unit
    reason: str
    log: Path


@dataclass
class Study:
    """How far a study is: what the display shows.

    Args:
        total: All units, those of earlier commands included.
        finished: Those that are there.
        cumulative: Cumulative regrets of the finished runs, by setting and method.
        failures: What went wrong; such units are tried again by the next command.
        damaged: Files that could not be read and were set aside.
    """

    total: int = 0
    finished: int = 0
    cumulative: dict[Setting, dict[str, list[float]]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)
    _jobs: int = 1
    _left: dict[tuple[Setting, str], int] = field(default_factory=lambda: defaultdict(int))
    _spent: dict[tuple[Setting, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def remaining_seconds(self) -> float | None:
        """How long it will take, from what units of the same kind took; None if nothing is known."""
        known = [seconds for values in self._spent.values() for seconds in values]
        if not known:
            return None
        overall = sum(known) / len(known)
        means = {kind: sum(values) / len(values) for kind, values in self._spent.items()}
        return sum(n * means.get(kind, overall) for kind, n in self._left.items()) / self._jobs


Progress = Callable[[Study], None]


def run_study(
    out: Path,
    settings: Sequence[Setting],
    methods: Sequence[str],
    runs: int,
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
    source: dict[str, Any] | None = None,
) -> Study:
    """Run what is missing, and keep every unit as soon as it is finished.

    Args:
        out: The folder of the results.
        settings: What to run.
        methods: On each of them, where they are affordable.
        runs: Runs of each, numbered from 0.
        n_jobs: Processes to use, -1 for one a core. The results do not depend on it.
        progress: Told at the start and after every unit.
        source: Added to the history of the folder if there is anything to run.
    """
    check_integer(runs, "The number of runs", least=1)
    contestants = {name: contestant(name).settings for name in methods}
    report: Progress = progress or (lambda study: None)
    study = Study(_jobs=effective_n_jobs(n_jobs))
    with in_use(out):
        folders = {setting: Results(out, setting) for setting in settings}
        units = _missing(study, folders, contestants, runs)
        if units and source is not None:
            note(out, source | {"units": len(units)})
        report(study)
        for unit, seconds, outcome in each(_attempt, units, n_jobs):
            _keep(study, folders[unit.setting], unit, seconds, outcome)
            report(study)
        for results in folders.values():
            results.pack()
    return study


def _missing(
    study: Study, folders: dict[Setting, Results], contestants: dict[str, str], runs: int
) -> list[Unit]:
    """The units to run, all first runs before all second ones; and what is there into the study."""
    finished = set()
    for setting, results in folders.items():
        results.clean()
        table, damaged = results.load()
        study.damaged += damaged
        there = done(table, contestants, setting.evaluations, results.folder)
        regrets: dict[tuple[str, int], float] = defaultdict(float)
        columns = table.select(["method", "run", "regret"]).to_pydict()
        for method, run, regret in zip(*columns.values(), strict=True):
            regrets[method, run] += regret
        study.cumulative[setting] = {name: [] for name in contestants if fits(name, setting)}
        for (method, run), regret in regrets.items():
            if method in study.cumulative[setting] and run < runs:
                study.cumulative[setting][method].append(regret)
        finished |= {(setting, *key) for key in there}
    units = [
        Unit(setting, method, run)
        for run in range(runs)
        for setting in folders
        for method in study.cumulative[setting]
    ]
    missing = [unit for unit in units if (unit.setting, unit.method, unit.run) not in finished]
    study.total, study.finished = len(units), len(units) - len(missing)
    for unit in missing:
        study._left[unit.setting, unit.method] += 1
    return missing


def _attempt(unit: Unit) -> tuple[Unit, float, list[Row] | tuple[str, str]]:
    """The rows of a unit, or what went wrong: in one line, and in full."""
    start = time.perf_counter()
    try:
        outcome: list[Row] | tuple[str, str] = evaluate(unit)
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}", traceback.format_exc()
    return unit, time.perf_counter() - start, outcome


def _keep(
    study: Study, results: Results, unit: Unit, seconds: float, outcome: list[Row] | tuple[str, str]
) -> None:
    kind = unit.setting, unit.method
    study._left[kind] -= 1
    study._spent[kind].append(seconds)
    if isinstance(outcome, tuple):
        reason, full = outcome
        study.failures.append(Failure(unit, reason, results.log(unit.method, unit.run, full)))
        return
    results.add(outcome)
    study.finished += 1
    study.cumulative[unit.setting][unit.method].append(sum(row["regret"] for row in outcome))
