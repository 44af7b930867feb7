"""Single cells of a table: numbers, dates and empty cells, and how messages name a cell."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import cast

__all__ = [
    "at",
    "flag",
    "is_date",
    "listed",
    "marked",
    "number",
    "numbers",
    "shown",
    "unmarked",
]

# What people and programs write into a column of numbers if there is no number.
_NOTHING = frozenset(
    {"", "na", "n/a", "nan", "null", "none", "-", "--", "?"}
    | {"#n/a", "#div/0!", "#value!", "#ref!", "#num!", "#name?"}
)
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})( .*)?"
    r"|\d{1,2}:\d{2}(:\d{2})?"
)
_FORMULA = ("=", "+", "-", "@")  # a spreadsheet reads a cell that begins so as a formula
_FLAGS = {"true": True, "false": False}
_LONGEST_SHOWN = 40
_MOST_LISTED = 5


def number(cell: str, *, comma: bool = False) -> float | None:
    """The number in a cell: NaN for an empty cell, "n/a" or infinity, None for any other text.

    Args:
        cell: Text without spaces around it.
        comma: Whether "1,5" is 1.5.
    """
    text = cell.replace(",", ".") if comma and cell.count(",") == 1 and "." not in cell else cell
    try:
        value = float(text)
    except ValueError:
        return math.nan if cell.lower() in _NOTHING else None
    if "_" in cell:  # Python reads 1_000 as a number, but people do not write numbers like this
        return None
    return value if math.isfinite(value) else math.nan


def numbers(cells: Sequence[str], *, comma: bool = False) -> list[float | None]:
    """`number` of every cell."""
    try:  # almost always all cells are numbers, and this is ten times faster
        values: list[float | None] = list(map(float, cells))
        if all(map(math.isfinite, cast(list[float], values))) and "_" not in "".join(cells):
            return values
    except ValueError:
        pass
    return [number(cell, comma=comma) for cell in cells]


def flag(cell: str) -> bool | None:
    """True or False for a cell "true" or "false" in any letter case; None for any other cell."""
    return _FLAGS.get(cell.lower())


def is_date(cell: str) -> bool:
    """Whether a cell is a date or a time of day."""
    return _DATE.fullmatch(cell) is not None


def marked(cell: str) -> str:
    """The cell with an apostrophe in front if a spreadsheet would read the cell as a formula."""
    return f"'{cell}" if cell.lstrip().startswith(_FORMULA) else cell


def unmarked(cell: str) -> str:
    """The inverse of `marked`."""
    return cell[1:] if cell.startswith("'") and marked(cell[1:]) == cell else cell


def shown(cell: object) -> str:
    """A value in quotation marks, shortened for a sentence."""
    text = repr(cell)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 4]}...{text[0]}"


def listed(items: Iterable[object]) -> str:
    """Numbers or names for a sentence: "2, 3, 7, 8, 9 and 12 more"."""
    texts = [shown(item) for item in items]
    more = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def at(numbers: Sequence[int], row: int, column: str) -> str:
    """The place of a cell, with row numbers as in a spreadsheet."""
    return f"Row {numbers[row]}, column {shown(column)}"
