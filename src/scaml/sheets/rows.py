"""Rows as experiments: rows of past tasks, rows of the new task, and rows that cannot be used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scaml.errors import SpaceError, TaskDataError
from scaml.sheets.cells import at, listed, numbers, shown
from scaml.sheets.columns import Column, all_numbers
from scaml.sheets.table import Table
from scaml.tasks.arrays import LARGEST_Y

__all__ = ["Objective", "Split", "group", "split"]

# More rows without a value are a list of possible experiments, not experiments that run.
_MOST_PENDING = 1000


@dataclass(frozen=True)
class Objective:
    """The column of the objective, so that larger is better; NaN if a value cannot be used."""

    name: str
    cells: Sequence[str]
    values: Sequence[float]

    @classmethod
    def of(cls, table: Table, name: str, *, minimize: bool = False) -> Objective:
        """Read the column, the one place where a minimized objective is negated; refuses text."""
        checked = all_numbers(table, name, numbers(table.columns[name], comma=table.comma))
        sign = -1.0 if minimize else 1.0
        values = [sign * y if abs(y) <= LARGEST_Y else math.nan for y in checked]
        return cls(name, table.columns[name], values)


@dataclass
class Split:
    """The rows of a table, sorted by their use."""

    past: dict[str, list[int]] = field(default_factory=dict)
    own: dict[str, list[Column]] = field(default_factory=dict)  # the parameters that a past task has
    parameters: list[Column] = field(default_factory=list)  # the parameters of the new task
    observed: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def used(self) -> list[int]:
        """All rows that are used."""
        return [*(i for rows in self.past.values() for i in rows), *self.observed, *self.pending]


def group(table: Table, task_column: str) -> tuple[dict[str, list[int]], list[str]]:
    """The rows of every task, in the order of the file, and notes."""
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(table.columns[task_column]):
        if not name:
            raise TaskDataError(
                f"{at(table.numbers, row, task_column)} is empty; give every row the name of its task."
            )
        groups.setdefault(name, []).append(row)
    notes = []
    if task_column in table.padded:
        notes.append("Spaces around names of tasks were removed.")
    alike: dict[str, list[str]] = {}
    for name in groups:
        alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    notes += [
        f"Tasks {listed(names)} differ only in letter case or spaces; they count as different tasks."
        for names in alike.values()
        if len(names) > 1
    ]
    return groups, notes


def split(
    table: Table,
    groups: Mapping[str, Sequence[int]],
    new_task: str | None,
    objective: Objective,
    columns: Sequence[Column],
    required: Sequence[str] | None,
) -> Split:
    """Sort the rows.

    A column that is empty in all rows of a task is a parameter that the task does not have. Any other
    row of a past task with an empty parameter is left out, and so is a row without a value of the
    objective. In the new task, a row without a value is pending. A row with a value that lacks a
    parameter is refused, because the user can still correct it.

    Args:
        table: The table.
        groups: The rows of every task.
        new_task: The name of the new task.
        objective: Its column.
        columns: The parameters.
        required: The parameters that the new task must have; None to infer them from its rows.
    """
    result = Split()
    unmeasured: list[int] = []
    incomplete: list[int] = []
    short: list[str] = []
    for name, rows in groups.items():
        if name == new_task:
            continue
        own = _filled(columns, rows)
        gaps = frozenset[int]().union(*(column.gaps for column in own))
        usable = []
        for i in rows:
            if math.isnan(objective.values[i]):
                unmeasured.append(i)
            elif i in gaps:
                incomplete.append(i)
            else:
                usable.append(i)
        if len(usable) < 2:
            short.append(name)
        else:
            result.past[name], result.own[name] = usable, own
    _split_new(table, groups.get(new_task or "", ()), objective, columns, required, result)
    result.notes += _left_out(table, objective.name, unmeasured, incomplete, short)
    return result


def _split_new(
    table: Table,
    rows: Sequence[int],
    objective: Objective,
    columns: Sequence[Column],
    required: Sequence[str] | None,
    result: Split,
) -> None:
    # Planned rows may have gaps; only measured rows show which parameters the new task has.
    own = _filled(columns, [i for i in rows if objective.cells[i]]) or list(columns)
    result.parameters = own if required is None else [c for c in columns if c.name in required]
    missing = set(required or ()) - {column.name for column in columns}
    unfinished: list[int] = []
    for i in rows:
        empty = next((c.name for c in result.parameters if i in c.gaps), None)
        if not objective.cells[i]:
            (result.pending if empty is None and not missing else unfinished).append(i)
            continue
        if missing:
            raise SpaceError(
                f"Row {table.numbers[i]} is of the new task, but the table has no column "
                f"{shown(min(missing))}; add a column for each parameter of the space."
            )
        if empty is not None:
            raise TaskDataError(
                f"{at(table.numbers, i, empty)} is empty in the new task; fill it in or delete the row."
            )
        if math.isnan(objective.values[i]):
            raise TaskDataError(
                f"{at(table.numbers, i, objective.name)} is {shown(objective.cells[i])}; leave it "
                "empty while the experiment runs, or give a bad but finite value if it failed."
            )
        result.observed.append(i)
    if len(result.pending) > _MOST_PENDING:
        raise TaskDataError(
            f"{at(table.numbers, result.pending[0], objective.name)} is the first of "
            f"{len(result.pending)} empty cells of the new task, whose rows count as running; keep at "
            f"most {_MOST_PENDING} such rows."
        )
    if unfinished:
        result.notes.append(
            "Rows of the new task without value and without all parameters are left out: "
            f"{listed(table.numbers[i] for i in unfinished)}."
        )


def _filled(columns: Sequence[Column], rows: Sequence[int]) -> list[Column]:
    return [column for column in columns if not column.gaps.issuperset(rows)]


def _left_out(
    table: Table, objective: str, unmeasured: list[int], incomplete: list[int], short: list[str]
) -> list[str]:
    notes = []
    for rows, what in ((unmeasured, f"a number in {shown(objective)}"), (incomplete, "all parameters")):
        if rows:
            numbers = listed(sorted(table.numbers[i] for i in rows))
            notes.append(f"Rows of past tasks without {what} are left out: {numbers}.")
    if short:
        notes.append(
            f"Past tasks of fewer than two rows that can be used are left out: {listed(short)}."
        )
    return notes
