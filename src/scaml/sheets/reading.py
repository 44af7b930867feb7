"""`read`: a table of experiments as a space, past tasks and the new task's own rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from scaml.common.wording import nearest
from scaml.errors import SettingError, TaskDataError
from scaml.sheets.cells import listed, numbers, shown
from scaml.sheets.columns import check_decimals, given, inferred, mostly_numbers
from scaml.sheets.files import read_table
from scaml.sheets.ranges import (
    Distributions,
    check_new,
    inferred_space,
    only_value,
    past_distributions,
    typed,
)
from scaml.sheets.rows import Objective, Split, group, split
from scaml.sheets.table import Table
from scaml.spaces.space import Space
from scaml.tasks.past_task import MOST_TRIALS, PastTask, thinned

__all__ = ["NewTask", "Sheet", "read"]

# Rows of the new task: fitting so many takes half a minute, at every suggestion.
_MOST_OBSERVED = 1000


@dataclass(frozen=True)
class NewTask:
    """The observations of the new task so far. Larger y is better."""

    name: str
    params: tuple[Mapping[str, Any], ...] = ()
    y: tuple[float, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """A table of experiments. Larger y is better: values of a minimized objective are negated.

    Args:
        space: The parameters of the new task, inferred or given.
        past: The other tasks, in the order of the file.
        task: The observations of the new task; none at first.
        pending: The parameters of the new task's rows that have no value yet.
        objective: The name of the column of the objective.
        maximize: Whether large values of the objective are good; if not, y is negated.
        columns: All columns, in the order of the file.
        notes: What was inferred, assumed and left out, one sentence each.
    """

    space: Space
    past: tuple[PastTask, ...]
    task: NewTask
    pending: tuple[Mapping[str, Any], ...]
    objective: str
    maximize: bool
    columns: tuple[str, ...]
    notes: tuple[str, ...]


def read(
    path: str | os.PathLike[str],
    *,
    task_column: str = "task",
    objective: str | None = None,
    space: Space | None = None,
    new_task: str | None = None,
    minimize: bool = False,
) -> Sheet:
    """Read a table of experiments, one row per experiment.

    Args:
        path: A CSV file, a workbook (its first worksheet) or a Parquet file.
        task_column: The column that says which task a row belongs to.
        objective: The column that was measured; the last one by default.
        space: The parameters; by default every other column that varies within a task, from its
            smallest to its largest value.
        new_task: The task to suggest for; it need not have a row yet.
        minimize: Whether small values of the objective are good.
    """
    table = read_table(path)
    task_column = task_column.strip()
    measured, notes = _objective(table, task_column, objective, space)
    groups, said = group(table, task_column)
    notes += said
    new_task = _new_task(new_task, groups, notes)
    values = Objective.of(table, measured, minimize=minimize)
    names = [name for name in table.header if name not in (task_column, measured)]
    columns, said = inferred(table, names, groups) if space is None else given(table, names, space)
    notes += said
    notes += check_decimals(table, [measured, *(c.name for c in columns if c.numeric)])
    required = None if space is None else [n for n in space.names if space.columns[n]]
    parts = split(table, groups, new_task, values, columns, required)
    if not parts.used:
        raise TaskDataError(
            f"No task of {table.name} has two rows with {shown(measured)} and all parameters; give "
            "some past experiments."
        )
    if space is None:
        space, own = inferred_space(table, parts, notes)
    else:
        own = past_distributions(table, parts, space, columns, notes)
        check_new(table, parts, space, columns)
    past = tuple(_past(name, parts, values, own) for name in parts.past)
    notes += parts.notes + _about_past(parts, space, new_task)
    notes += _thin(parts, values)
    task, pending = _new(new_task or "", parts, values, space)
    notes = [*table.notes, *notes]
    return Sheet(space, past, task, pending, measured, not minimize, table.header, tuple(notes))


def _objective(
    table: Table, task_column: str, objective: str | None, space: Space | None
) -> tuple[str, list[str]]:
    if task_column not in table.columns:
        close = nearest(task_column, table.header)
        raise SettingError(
            f"{table.name} has no column {shown(task_column)} but {listed(table.header)}; name the "
            f"column of tasks, perhaps --task-column {shown(close)}."
        )
    parameters = space.names if space else ()
    if task_column in parameters:
        raise SettingError(f"The column of tasks, {shown(task_column)}, is a parameter; name another.")
    others = [n for n in table.header if n != task_column and n not in parameters]
    if objective is not None:
        return _named(table, objective.strip(), others, task_column), []
    if not others:
        raise SettingError(f"{table.name} has no column that was measured; add the objective to it.")
    name = others[-1]
    if not mostly_numbers(numbers(table.columns[name], comma=table.comma)):
        raise SettingError(
            f"The last column, {shown(name)}, does not hold numbers; name the column that was "
            "measured, as in --objective yield."
        )
    return name, [f"The last column, {shown(name)}, is taken as the objective."]


def _named(table: Table, name: str, others: Sequence[str], task_column: str) -> str:
    if name not in table.columns:
        raise SettingError(
            f"{table.name} has no column {shown(name)}; name the one that was measured, perhaps "
            f"{shown(nearest(name, others or table.header))}."
        )
    if name not in others:
        what = "the column of tasks" if name == task_column else "a parameter of the space"
        raise SettingError(f"The objective {shown(name)} is {what}; name the column that was measured.")
    return name


def _new_task(name: str | None, groups: Mapping[str, object], notes: list[str]) -> str | None:
    if name is None:
        return None
    name = name.strip()
    if not name:
        raise SettingError("The name of the new task is empty; give it a name.")
    if name not in groups:
        close = get_close_matches(name, groups, n=1, cutoff=0.8)
        hint = f"; the nearest name there is {shown(close[0])}" if close else ""
        notes.append(f"Task {shown(name)} has no rows yet{hint}.")
    return name


def _past(name: str, parts: Split, values: Objective, own: Distributions) -> PastTask:
    all_rows = parts.past[name]
    rows = [all_rows[i] for i in thinned([values.values[i] for i in all_rows])]
    columns = [column for column in parts.own[name] if column.name in own]
    return PastTask(
        name,
        {column.name: own[column.name] for column in columns},
        [{c.name: typed(own[c.name], c.values[i]) for c in columns} for i in rows],
        [values.values[i] for i in rows],
    )


def _thin(parts: Split, values: Objective) -> list[str]:
    """Leave out rows of a long new task."""
    n, y = len(parts.observed), [values.values[i] for i in parts.observed]
    if n <= _MOST_OBSERVED:
        return []
    kept = thinned(y, most=_MOST_OBSERVED)
    parts.observed = [parts.observed[i] for i in kept]
    half = _MOST_OBSERVED // 2
    return [
        f"Of the new task's {n} rows the best {half} and a random choice of {half} others are kept."
    ]


def _new(
    name: str, parts: Split, values: Objective, space: Space
) -> tuple[NewTask, tuple[Mapping[str, Any], ...]]:
    columns = {column.name: column for column in parts.parameters}

    def params(i: int) -> dict[str, Any]:
        return {
            name: typed(space.distributions[name], columns[name].values[i])
            if name in columns
            else only_value(space.distributions[name])
            for name in space.names
        }

    observed = tuple(map(params, parts.observed))
    task = NewTask(name, observed, tuple(values.values[i] for i in parts.observed))
    return task, tuple(map(params, parts.pending))


def _about_past(parts: Split, space: Space, new_task: str | None) -> list[str]:
    notes = []
    long = [name for name, rows in parts.past.items() if len(rows) > MOST_TRIALS]
    if long:
        notes.append(
            f"Of past tasks of more than {MOST_TRIALS} rows the best {MOST_TRIALS // 2} and a random "
            f"choice of {MOST_TRIALS - MOST_TRIALS // 2} others are kept: {listed(long)}."
        )
    lacking: dict[str, list[str]] = {}
    for task, own in parts.own.items():
        have = {column.name for column in own}
        for column in parts.parameters:
            if column.name in space.names and column.name not in have:
                lacking.setdefault(column.name, []).append(task)
    notes += [
        f"Column {shown(name)} is empty in past tasks, which lack it: {listed(tasks)}."
        for name, tasks in lacking.items()
    ]
    if not parts.past:
        notes.append(
            f"All rows that can be used belong to the new task {shown(new_task)}: there is no past."
        )
    return notes
