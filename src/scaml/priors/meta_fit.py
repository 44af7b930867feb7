"""`meta_fit`: fit a method to past tasks, with progress and with a cache of earlier fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

from torch import Tensor

from scaml.common.parallel import each
from scaml.common.progress import StepProgress
from scaml.methods.base import MetaPrior, Method, joined
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["FitCache", "State", "meta_fit"]

# Entries of the kernel matrices of the tasks that are fitted between two calls of `progress`: about
# half a second.
_ENTRIES_PER_PART = 2**17

State = dict[str, Tensor]


class FitCache(Protocol):
    """Keeps what a method has learned from some tasks, for the next meta-fit."""

    def find(self, method: Method, tasks: Sequence[Task], seed: int) -> State | None:
        """The state that was kept for these tasks; None if there is none."""

    def keep(self, method: Method, tasks: Sequence[Task], seed: int, state: State) -> None:
        """Keep a state."""


def meta_fit(
    method: Method,
    meta: MetaData,
    *,
    seed: int = 0,
    n_jobs: int = 1,
    cache: FitCache | None = None,
    progress: StepProgress | None = None,
) -> MetaPrior:
    """`method.meta_fit`, bit for bit, in parts that can be counted and kept.

    A modular method learns each task by itself: its tasks are fitted a few at a time and cached one by
    one. Any other method learns all tasks in one part.

    Args:
        method: The meta-learning method.
        meta: The past tasks.
        seed: Decides every random draw.
        n_jobs: Processes to use, -1 for one per core. The result does not depend on it.
        cache: Keeps fits across calls; only new or changed tasks are fitted.
        progress: Called with the number of tasks fitted so far and with M.
    """
    if cache is None and (progress is None or not method.modular):
        return method.meta_fit(meta, seed=seed, n_jobs=n_jobs)
    tasks = [task.called(name) for name, task in zip(meta.names, meta, strict=True)]
    units = [[task] for task in tasks] if method.modular else [tasks]  # what is cached together
    states = [None if cache is None else cache.find(method, unit, seed) for unit in units]
    missing = [i for i, state in enumerate(states) if state is None]
    left = sum(len(units[i]) for i in missing)
    tell: StepProgress = progress or (lambda done, total: None)
    tell(len(tasks) - left, len(tasks))
    for part in _fitted(method, [units[i] for i in missing], seed, n_jobs):
        for place, state in part.items():
            unit = units[missing[place]]
            states[missing[place]] = state
            left -= len(unit)
            if cache is not None:
                cache.keep(method, unit, seed, state)
        tell(len(tasks) - left, len(tasks))
    complete = [state for state in states if state is not None]
    return method.restore(meta, joined(complete) if method.modular else complete[0])


def _fitted(
    method: Method, units: Sequence[list[Task]], seed: int, n_jobs: int
) -> Iterator[dict[int, State]]:
    """The states of all units by their places, part by part as they are finished."""
    if not method.modular:
        for place, unit in enumerate(units):
            yield {place: method.fit_state(MetaData(unit), seed=seed, n_jobs=n_jobs)}
        return
    tasks = [task for (task,) in units]
    work = [(places, [tasks[i] for i in places]) for places in _parts(tasks)]
    for places, state in each(partial(_fit_part, method, seed), work, n_jobs):
        yield {i: _row(state, row, tasks[i]) for row, i in enumerate(places)}


def _parts(tasks: Sequence[Task]) -> list[list[int]]:
    """The places of the tasks, a few at a time."""
    parts: list[list[int]] = []
    entries = _ENTRIES_PER_PART
    for i, task in enumerate(tasks):
        entries += task.n**2
        if entries > _ENTRIES_PER_PART:
            parts.append([])
            entries = task.n**2
        parts[-1].append(i)
    return parts


def _fit_part(method: Method, seed: int, part: tuple[list[int], list[Task]]) -> tuple[list[int], State]:
    places, tasks = part
    return places, method.fit_state(MetaData(tasks), seed=seed)


def _row(state: State, row: int, task: Task) -> State:
    """The state of one task, without the columns that only others have."""
    columns = task.d + task.extra.shape[1]
    return {
        key: value[row : row + 1, :columns] if value.ndim == 2 else value[row : row + 1]
        for key, value in state.items()
    }
