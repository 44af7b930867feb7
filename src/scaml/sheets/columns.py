"""Columns of parameters: cells as values, inferred from the cells or given by a space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from optuna.distributions import CategoricalDistribution

from scaml.errors import SpaceError, TaskDataError
from scaml.sheets.cells import at, flag, is_date, listed, number, numbers, shown
from scaml.sheets.table import Table
from scaml.spaces.space import Space

__all__ = [
    "EMPTY",
    "MOST_CHOICES",
    "Column",
    "all_numbers",
    "check_decimals",
    "given",
    "inferred",
    "mostly_numbers",
]

# Stands for an empty cell. It is not None, because None may be a choice.
EMPTY: Final = object()

# A column with more different texts holds remarks or identifiers.
MOST_CHOICES = 20
# In a table of so many rows, a column 1, 2, 3, ... is not a parameter.
_FEWEST_COUNTED = 10


@dataclass(frozen=True)
class Column:
    """The values of a parameter, row by row; `EMPTY` in rows without a value."""

    name: str
    values: Sequence[Any]
    numeric: bool

    @cached_property
    def gaps(self) -> frozenset[int]:
        """The rows that have no value."""
        if EMPTY not in self.values:  # a fast check for the usual case
            return frozenset()
        return frozenset(i for i, value in enumerate(self.values) if value is EMPTY)


def inferred(
    table: Table, names: Sequence[str], groups: Mapping[str, Sequence[int]]
) -> tuple[list[Column], list[str]]:
    """The columns that can be parameters, inferred from their cells.

    Args:
        table: The table.
        names: The names of the columns that are neither task nor objective.
        groups: The rows of every task.

    Returns:
        The columns of parameters, and one note per other column.
    """
    columns, notes = [], []
    found = {name: _column(table, name) for name in names}
    gaps = [column.gaps for column in found.values() if isinstance(column, Column)]
    blank = frozenset.intersection(*gaps) if gaps else frozenset[int]()  # rows to be filled in
    said = {name: [i for i in rows if i not in blank] for name, rows in groups.items()}
    for name, column in found.items():
        why = column if isinstance(column, str) else _no_parameter(column, said)
        if isinstance(column, Column) and not why:
            columns.append(column)
        else:
            notes.append(f"Column {shown(name)} {why}; it is left out.")
    return columns, notes


def _column(table: Table, name: str) -> Column | str:
    """A column of numbers, of true and false or of a few texts; for any other column, what it holds."""
    cells = table.columns[name]
    filled = [cell for cell in cells if cell]
    if not filled:
        return "is empty"
    values = numbers(cells, comma=table.comma)
    if mostly_numbers(values):
        return _numbers(table, name, values)
    kinds = set(filled)
    if all(flag(cell) is not None for cell in kinds):
        return Column(
            name, [EMPTY if (value := flag(cell)) is None else value for cell in cells], numeric=False
        )
    if all(map(is_date, kinds)):
        return "holds dates"
    if len(kinds) > MOST_CHOICES:
        return f"holds {len(kinds)} different texts, but a choice has at most {MOST_CHOICES}"
    return Column(name, [cell or EMPTY for cell in cells], numeric=False)


def mostly_numbers(values: Sequence[float | None]) -> bool:
    """Whether a column has more numbers than texts: then the texts are mistakes."""
    texts = values.count(None)
    if not texts:
        return any(value is not None and not math.isnan(value) for value in values)
    return sum(value is not None and math.isfinite(value) for value in values) > texts


def _no_parameter(column: Column, groups: Mapping[str, Sequence[int]]) -> str:
    """Why the column is not a parameter; empty if it can be one."""
    values = column.values
    taken = set(values) - {EMPTY}
    if len(taken) < 2:
        return f"has one value, {shown(next(iter(taken)))}" if taken else "holds no value"
    if len(values) >= _FEWEST_COUNTED and any(
        all(value == i for i, value in enumerate(values, first)) for first in (0, 1)
    ):
        return "counts the rows"
    known = [rows for rows in groups.values() if not column.gaps.issuperset(rows)]
    empty = sum(len(column.gaps.intersection(rows)) for rows in known)
    total = sum(map(len, known))
    if 2 * empty >= total:  # probably remarks; as a parameter it would exclude too many rows
        return f"is empty in {empty} of {total} rows"
    if all(len({values[i] for i in rows} - {EMPTY}) < 2 for rows in known):
        return "has one value in every task, so it describes the tasks"
    return ""


def given(table: Table, names: Sequence[str], space: Space) -> tuple[list[Column], list[str]]:
    """The columns of a space's parameters, read as the space says.

    Args:
        table: The table.
        names: The names of the columns that are neither task nor objective.
        space: The space of the new task.

    Returns:
        One column per parameter that the table has, and notes.
    """
    if not any(name in names for name in space.names if space.columns[name]):
        raise SpaceError(
            f"{table.name} has no column for {listed(space.names)} of the space, but "
            f"{listed(names) or 'no other'}; "
            "name the parameters as the columns."
        )
    columns, notes = [], []
    for name, distribution in space.distributions.items():
        if name not in names:
            if not distribution.single():
                notes.append(
                    f"Parameter {shown(name)} of the space has no column, so no past task has it."
                )
        elif isinstance(distribution, CategoricalDistribution):
            columns.append(_choices(table, name, distribution))
        else:
            columns.append(_numbers(table, name, numbers(table.columns[name], comma=table.comma)))
    others = [name for name in names if name not in space.names]
    if others:
        notes.append(f"Columns that are not in the space are left out: {listed(others)}.")
    return columns, notes


def _numbers(table: Table, name: str, values: list[float | None]) -> Column:
    checked = all_numbers(table, name, values)
    if any(map(math.isnan, checked)):
        return Column(name, [EMPTY if math.isnan(value) else value for value in checked], numeric=True)
    return Column(name, checked, numeric=True)


def all_numbers(table: Table, name: str, values: list[float | None]) -> list[float]:
    """The same values, NaN for empty cells; refuses a column with other text."""
    if None in values:
        row = values.index(None)
        raise TaskDataError(
            f"{at(table.numbers, row, name)} is {shown(table.columns[name][row])} where a number "
            "belongs; write it like 1234.5, without unit or thousands separator, or leave it empty."
        )
    return cast(list[float], values)


def _choices(table: Table, name: str, distribution: CategoricalDistribution) -> Column:
    cells = table.columns[name]
    meant = {cell: _meant(cell, distribution.choices) for cell in set(cells)}
    return Column(name, [meant[cell] if cell else EMPTY for cell in cells], numeric=False)


def _meant(cell: str, choices: Sequence[Any]) -> Any:
    """The choice that a cell stands for; the text itself if it is none of the choices."""
    value = number(cell)
    for choice in choices:
        if isinstance(choice, str):
            same = choice.strip() == cell
        elif isinstance(choice, bool):
            same = flag(cell) is choice
        elif choice is None:
            same = cell.lower() == "none"
        else:
            same = value == choice
        if same:
            return choice
    return cell


def check_decimals(table: Table, names: Sequence[str]) -> list[str]:
    """Refuse a table that mixes commas and points in numbers: one may separate thousands.

    Args:
        table: The table.
        names: The names of the columns of numbers.

    Returns:
        A note if numbers have decimal commas.
    """
    if not table.comma:
        return []
    commas, points = (_first_with(mark, table, names) for mark in ",.")
    if commas and points:
        raise TaskDataError(
            f"{at(table.numbers, *points)} is {shown(table.columns[points[1]][points[0]])} but row "
            f"{table.numbers[commas[0]]}, column {shown(commas[1])} is "
            f"{shown(table.columns[commas[1]][commas[0]])}; use one decimal mark and no thousands "
            "separators."
        )
    if not commas:
        return []
    cell = table.columns[commas[1]][commas[0]]
    return [f"Commas in numbers are decimal commas: {shown(cell)} is {number(cell, comma=True):g}."]


def _first_with(mark: str, table: Table, names: Sequence[str]) -> tuple[int, str] | None:
    """Row and column of the first number that contains the mark."""
    for name in names:
        for row, cell in enumerate(table.columns[name]):
            if mark in cell and number(cell, comma=True) is not None:
                return row, name
    return None
