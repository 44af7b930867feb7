"""`Table`: a header and columns of text, from any type of file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scaml.errors import TaskDataError
from scaml.sheets.cells import shown, unmarked

__all__ = ["Table", "tabulate"]

Record = tuple[int, Sequence[str]]  # the number of a row in the spreadsheet, and its cells


@dataclass(frozen=True)
class Table:
    """Columns of text, without spaces around the cells."""

    name: str  # of the file
    columns: Mapping[str, Sequence[str]]  # in the order of the file
    numbers: Sequence[int]  # of the rows, as a spreadsheet counts them
    padded: frozenset[str]  # columns where spaces around a cell were removed
    comma: bool  # whether "1,5" may be 1.5
    notes: tuple[str, ...]

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(self.numbers)


def tabulate(
    name: str, rows: Sequence[Sequence[str]], *, comma: bool = False, notes: Sequence[str] = ()
) -> Table:
    """Rows of raw text as a table; the first row that is not blank is the header.

    Args:
        name: The name of the file, for messages.
        rows: All rows of the file, blank ones included, so that the row numbers are right.
        comma: Whether "1,5" may be 1.5.
        notes: Notes about the file.
    """
    # Spreadsheets leave blank rows below a table.
    records = [(i, row) for i, row in enumerate(rows, 1) if any(map(str.strip, row))]
    if not records:
        raise TaskDataError(f"{name} is empty; give a table with a header and one row per experiment.")
    first, raw = records.pop(0)
    header = [cell.strip() for cell in raw]
    while not header[-1]:
        header.pop()
    if not records:
        raise TaskDataError(f"{name} has a header but no rows; give one row per experiment.")
    _check_widths(records, len(header))
    names, said = _names(header, raw, records, first)
    columns, padded = {}, set()
    # Not strict: some rows have empty cells beyond the header.
    turned = list(zip(*(cells for _, cells in records), strict=False))
    for place, column in names.items():
        columns[column] = tuple(map(str.strip, turned[place]))
        if columns[column] != turned[place]:
            padded.add(column)
    numbers = [number for number, _ in records]
    _check_formulas(columns, numbers, first)
    for column, cells in columns.items():
        if any(cell.startswith("'") for cell in cells):
            columns[column] = tuple(map(unmarked, cells))
    return Table(name, columns, numbers, frozenset(padded), comma, (*notes, *said))


def _check_widths(records: Sequence[Record], width: int) -> None:
    for number, cells in records:
        if len(cells) < width:
            raise TaskDataError(
                f"Row {number} has {len(cells)} cells, but the header has {width}; add the missing "
                "cell, or leave it empty between two separators."
            )
        if any(map(str.strip, cells[width:])):
            raise TaskDataError(
                f"Row {number} has {len(cells)} cells, but the header has {width}; delete the cells "
                "beyond it, or put a cell that holds the separator in quotation marks."
            )


def _names(
    header: Sequence[str], raw: Sequence[str], records: Sequence[Record], first: int
) -> tuple[dict[int, str], list[str]]:
    """The names of the columns that have one, by their place, and notes about the others."""
    names: dict[int, str] = {}
    notes: list[str] = []
    for place, name in enumerate(header):
        if name in names.values():
            other = next(i for i in names if names[i] == name)
            raise TaskDataError(
                f"Columns {_letter(other)} and {_letter(place)} are both called {shown(name)}; rename "
                "one of them."
            )
        if name:
            names[place] = name
        elif _counts([cells[place] for _, cells in records]):
            notes.append(f"Column {_letter(place)} has no name and counts the rows; it is left out.")
        elif any(cells[place].strip() for _, cells in records):
            raise TaskDataError(
                f"Column {_letter(place)} has no name in row {first}; name it or delete it."
            )
    spaced = [cell for cell, name in zip(raw, header, strict=False) if cell != name]
    if spaced:
        notes.append(
            f"Spaces around names in the header were removed: {', '.join(map(shown, spaced))}."
        )
    return names, notes


def _counts(cells: Sequence[str]) -> bool:
    """Whether cells are 0, 1, 2, ... or 1, 2, 3, ..., as programs number the rows they write."""
    return any(all(cell == str(i) for i, cell in enumerate(cells, first)) for first in (0, 1))


def _check_formulas(columns: Mapping[str, Sequence[str]], numbers: Sequence[int], first: int) -> None:
    for name, cells in columns.items():
        if "\n=" not in "\n" + "\n".join((name, *cells)):  # faster than a look at every cell
            continue
        for number, cell in zip((first, *numbers), (name, *cells), strict=True):
            if cell.startswith("="):
                raise TaskDataError(
                    f"Row {number}, column {shown(name)} holds the formula {shown(cell)}; save values, "
                    "not formulas."
                )


def _letter(place: int) -> str:
    """A, B, ..., Z, AA, AB, ...: the name of a column in a spreadsheet."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
