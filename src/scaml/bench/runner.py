"""Runs a comparison: every run that is not stored yet, on several processes."""

from __future__ import annotations

import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaml.bench.contestants import Contestant
from scaml.bench.history import note
from scaml.bench.results import Results, done, in_use
from scaml.bench.settings import Setting, fits
from scaml.bench.single_run import Row, SingleRun, evaluate
from scaml.common.checks import check_integer
from scaml.common.parallel import each, effective_n_jobs
from scaml.errors import SettingError

__all__ = ["Failure", "Progress", "StudyState", "run_study"]


@dataclass(frozen=True)
class Failure:
    """A run that ended with an exception, its one-line reason, and the file with the traceback."""

    run: SingleRun
    reason: str
    log: Path


@dataclass
class StudyState:
    """How far a comparison is: what the display shows.

    Args:
        total: The number of all runs, including those of earlier commands.
        finished: The number of runs that are stored.
        cumulative: The cumulative regrets of the finished runs, by setting and method.
        failures: Runs that failed. The next command tries them again.
        damaged: Files that could not be read and were renamed.
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
        """An estimate from the time of finished runs of the same kind; None before the first one."""
        known = [seconds for values in self._spent.values() for seconds in values]
        if not known:
            return None
        overall = sum(known) / len(known)
        means = {kind: sum(values) / len(values) for kind, values in self._spent.items()}
        return sum(n * means.get(kind, overall) for kind, n in self._left.items()) / self._jobs


Progress = Callable[[StudyState], None]


def run_study(
    out: Path,
    settings: Sequence[Setting],
    contestants: Sequence[Contestant],
    runs: int,
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
    source: dict[str, Any] | None = None,
) -> StudyState:
    """Run what is missing, and store every run as soon as it is finished.

    Args:
        out: The folder of the results.
        settings: What to run.
        contestants: The methods to run in each setting where they are affordable.
        runs: The number of runs per setting and method, numbered from 0.
        n_jobs: Processes to use, -1 for one per core. The results do not depend on it.
        progress: Called at the start and after every run.
        source: Added to the history of the folder if there is anything to run.

    Raises:
        SettingError: If two contestants have the same name, or stored results were made with other
            hyperparameters.
    """
    check_integer(runs, "The number of runs", least=1)
    by_name = {contestant.name: contestant for contestant in contestants}
    if len(by_name) < len(contestants):
        raise SettingError("Two contestants have the same name; give each method a name of its own.")
    report: Progress = progress or (lambda state: None)
    state = StudyState(_jobs=effective_n_jobs(n_jobs))
    with in_use(out):
        folders = {setting: Results(out, setting) for setting in settings}
        missing = _missing(state, folders, by_name, runs)
        if missing and source is not None:
            note(out, source | {"units": len(missing)})
        report(state)
        for run, seconds, outcome in each(_attempt, missing, n_jobs):
            _keep(state, folders[run.setting], run, seconds, outcome)
            report(state)
        for results in folders.values():
            results.pack()
    return state


def _missing(
    state: StudyState, folders: dict[Setting, Results], contestants: dict[str, Contestant], runs: int
) -> list[SingleRun]:
    """The runs to do, first runs of all methods before second ones; stored runs go into the state."""
    made_with = {name: contestant.settings for name, contestant in contestants.items()}
    finished = set()
    for setting, results in folders.items():
        results.clean()
        table, damaged = results.load()
        state.damaged += damaged
        there = done(table, made_with, setting.evaluations, results.folder)
        regrets: dict[tuple[str, int], float] = defaultdict(float)
        columns = table.select(["method", "run", "regret"]).to_pydict()
        for method, run, regret in zip(*columns.values(), strict=True):
            regrets[method, run] += regret
        state.cumulative[setting] = {name: [] for name in contestants if fits(name, setting)}
        for (method, run), regret in regrets.items():
            if method in state.cumulative[setting] and run < runs:
                state.cumulative[setting][method].append(regret)
        finished |= {(setting, *key) for key in there}
    wanted = [
        SingleRun(setting, contestants[name], number)
        for number in range(runs)
        for setting in folders
        for name in state.cumulative[setting]
    ]
    missing = [run for run in wanted if (run.setting, run.contestant.name, run.number) not in finished]
    state.total, state.finished = len(wanted), len(wanted) - len(missing)
    for run in missing:
        state._left[run.setting, run.contestant.name] += 1
    return missing


def _attempt(run: SingleRun) -> tuple[SingleRun, float, list[Row] | tuple[str, str]]:
    """The rows of a run; if it fails, the reason in one line and the traceback."""
    start = time.perf_counter()
    try:
        outcome: list[Row] | tuple[str, str] = evaluate(run)
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}", traceback.format_exc()
    return run, time.perf_counter() - start, outcome


def _keep(
    state: StudyState,
    results: Results,
    run: SingleRun,
    seconds: float,
    outcome: list[Row] | tuple[str, str],
) -> None:
    name = run.contestant.name
    state._left[run.setting, name] -= 1
    state._spent[run.setting, name].append(seconds)
    if isinstance(outcome, tuple):
        reason, traceback_text = outcome
        state.failures.append(Failure(run, reason, results.log(name, run.number, traceback_text)))
        return
    results.add(outcome)
    state.finished += 1
    state.cumulative[run.setting][name].append(sum(row["regret"] for row in outcome))
