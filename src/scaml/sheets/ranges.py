"""Types and ranges of the parameters: the space of the new task, the distributions of past tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from scaml.errors import SpaceError
from scaml.sheets.cells import at, listed, shown
from scaml.sheets.columns import EMPTY, MOST_CHOICES, Column
from scaml.sheets.rows import Split
from scaml.sheets.table import Table
from scaml.spaces.space import Space, encode_value
from scaml.tasks.arrays import COORDINATES

__all__ = ["Distributions", "check_new", "inferred_space", "only_value", "past_distributions", "typed"]

Distributions = Mapping[str, BaseDistribution]

# A parameter is logarithmic if its positive values span at least three decades and at least this part
# of them lies in the lower half of the decades. Many values drawn evenly from 0 to 1 span three decades
# too, but few of them are small.
_LOG_RATIO, _LOWER_PART = 1000.0, 0.2
_LARGEST_WHOLE = 2**53


def inferred_space(table: Table, parts: Split, notes: list[str]) -> tuple[Space, Distributions]:
    """The space of the new task, and the distributions of all columns."""
    known = {column.name: column for own in parts.own.values() for column in own}
    known |= {column.name: column for column in parts.parameters}
    own: dict[str, BaseDistribution] = {}
    used = parts.used
    for name in (name for name in table.header if name in known):
        rows = [i for i in used if i not in known[name].gaps]
        distribution = _distribution(known[name], rows) if rows else None
        if distribution is None or distribution.single():
            notes.append(f"Column {shown(name)} has one value in the rows used; it is left out.")
            continue
        own[name] = distribution
        notes.append(_describe(name, distribution))
    names = {column.name for column in parts.parameters}
    alone = [name for name in own if name not in names]
    if alone:
        notes.append(
            f"Columns that are empty in the new task are not parameters of it: {listed(alone)}."
        )
    if not names & own.keys():
        raise SpaceError(
            f"No column of {table.name} varies within a task, so there is nothing to choose; give "
            "columns of parameters, or a space."
        )
    return Space({name: own[name] for name in own if name in names}), own


def past_distributions(
    table: Table, parts: Split, space: Space, columns: Sequence[Column], notes: list[str]
) -> Distributions:
    """The distributions of the past tasks in the columns of a space: they may have more choices."""
    rows = [i for task in parts.past.values() for i in task]
    own: dict[str, BaseDistribution] = {}
    for column in columns:
        mine = space.distributions[column.name]
        taken = {column.values[i] for i in rows} - {EMPTY}
        if isinstance(mine, CategoricalDistribution):
            foreign = {value for value in taken if value not in mine.choices}
            own[column.name] = CategoricalDistribution([*mine.choices, *sorted(foreign)])
            where = [i for i in sorted(rows) if column.values[i] in foreign]
            notes += _foreign(table, column.name, sorted(foreign), where)
        elif mine.single() and taken:
            own[column.name] = FloatDistribution(min(taken), max(taken))
        else:
            own[column.name] = mine
    return own


def _foreign(table: Table, name: str, choices: Sequence[str], rows: Sequence[int]) -> list[str]:
    """A note about choices that only past tasks have; refuses a column with too many of them."""
    if not choices:
        return []
    numbers = [table.numbers[i] for i in rows]
    if len(choices) > MOST_CHOICES:
        raise SpaceError(
            f"Row {numbers[0]}, column {shown(name)} is the first of {len(choices)} different texts "
            "that the space does not offer; add the missing choices to the space, or remove the column "
            "from it."
        )
    return [
        f"Column {shown(name)} has {listed(choices)}, which the space does not offer; past tasks keep "
        f"such rows: {listed(numbers)}."
    ]


def check_new(table: Table, parts: Split, space: Space, columns: Sequence[Column]) -> None:
    """Refuse rows of the new task that lie far outside the space: the model cannot use them."""
    for i in sorted(parts.observed + parts.pending):
        for column in columns:
            value, distribution = column.values[i], space.distributions[column.name]
            if value is not EMPTY and not _inside(column.name, distribution, value):
                raise SpaceError(
                    f"{at(table.numbers, i, column.name)} is {shown(value)} in the new task, outside "
                    f"its {_range(distribution)}; correct the cell or the space."
                )


def _inside(name: str, distribution: BaseDistribution, value: Any) -> bool:
    low, high = COORDINATES
    try:
        x = encode_value(name, distribution, value)
    except SpaceError:
        return False
    return all(low <= at <= high for at in x) and (bool(x) or value == only_value(distribution))


def _range(distribution: BaseDistribution) -> str:
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return f"range from {distribution.low:g} to {distribution.high:g}"
    assert isinstance(distribution, CategoricalDistribution)
    return f"choices {listed(distribution.choices)}"


def _distribution(column: Column, rows: Sequence[int]) -> BaseDistribution:
    """The distribution of the values in some rows, none of which is empty."""
    taken = {column.values[i] for i in rows}
    if not column.numeric:
        return CategoricalDistribution(sorted(taken))
    low, high = min(taken), max(taken)
    log = low > 0 and high / low >= _LOG_RATIO
    if log:
        middle = math.sqrt(low) * math.sqrt(high)
        log = sum(value < middle for value in taken) >= _LOWER_PART * len(taken)
    if all(value.is_integer() and abs(value) <= _LARGEST_WHOLE for value in taken):
        return IntDistribution(int(low), int(high), log=log)
    return FloatDistribution(low, high, log=log)


def typed(distribution: BaseDistribution, value: Any) -> Any:
    """A value in the type of its parameter: whole numbers of an integer parameter become int."""
    whole = isinstance(distribution, IntDistribution) and float(value).is_integer()
    return int(value) if whole else value


def only_value(distribution: BaseDistribution) -> Any:
    """The only value of a parameter that cannot vary."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution.low


def _describe(name: str, distribution: BaseDistribution) -> str:
    """A note about a parameter that was inferred."""
    if isinstance(distribution, CategoricalDistribution):
        if set(distribution.choices) == {False, True}:
            return f"Column {shown(name)} is true or false."
        return f"Column {shown(name)} is a choice of {', '.join(map(shown, distribution.choices))}."
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    kind = "whole number" if isinstance(distribution, IntDistribution) else "number"
    scale = ", on a logarithmic scale" if distribution.log else ""
    low, high = (f"{end:.10g}" for end in (distribution.low, distribution.high))
    return f"Column {shown(name)} is a {kind} from {low} to {high}{scale}."
