"""Files as tables of text: the standard library reads CSV, pandas reads workbooks and Parquet."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Callable
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from scaml.errors import SavedFileError, SettingError, TaskDataError
from scaml.sheets.cells import shown
from scaml.sheets.table import Table, tabulate

__all__ = ["read_table"]

_SEPARATORS = (",", ";", "\t")
_ROWS_SNIFFED, _TEXT_SNIFFED = 20, 100_000
_CONTROL = bytes([*range(9), *range(14, 32)])  # characters that text files do not contain
# The package that pandas needs for each type of file.
_PACKAGES = {
    ".xlsx": "openpyxl",
    ".xlsm": "openpyxl",
    ".xls": "xlrd",
    ".ods": "odfpy",
    ".parquet": "pyarrow",
}


def read_table(path: str | os.PathLike[str]) -> Table:
    """The table in a file; in a workbook, the first worksheet."""
    source = Path(path)
    try:
        data = source.read_bytes()
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        why = error.strerror if isinstance(error, OSError) else error
        raise SavedFileError(
            f"{source} cannot be read: {why}; give the path of a table that you may read."
        ) from error
    suffix = source.suffix.lower()
    if suffix == ".parquet":
        return _foreign(source, data, _parquet)
    return _foreign(source, data, _workbook) if suffix in _PACKAGES else _csv(source, data)


def _csv(source: Path, data: bytes) -> Table:
    text, notes = _decoded(source, data)
    separator = max(_SEPARATORS, key=lambda separator: _fits(text, separator))
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=True
    )
    rows: list[list[str]] = []
    try:
        rows += reader
    except csv.Error as error:
        raise TaskDataError(
            f"Row {len(rows) + 1} of {source} cannot be split into cells ({error}); close its "
            "quotation marks, or shorten the cell."
        ) from error
    table = tabulate(str(source), rows, comma=separator != ",", notes=notes)
    if len(table.header) == 1:
        raise TaskDataError(
            f"{source} has one column, {shown(table.header[0])}; separate the cells by commas, "
            "semicolons or tabs."
        )
    return table


def _decoded(source: Path, data: bytes) -> tuple[str, list[str]]:
    notes = []
    try:
        # The "Unicode text" of a spreadsheet is UTF-16 and begins with a byte order mark.
        wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
        notes.append(f"{source} is not in UTF-8; it was read as Latin-1.")
    plain = text.encode()
    if plain.translate(None, _CONTROL) != plain:
        raise SavedFileError(
            f"{source} is not a text file; save the table as CSV, or give the file the ending of its "
            f"type, one of {', '.join(_PACKAGES)}."
        )
    return text, notes


def _fits(text: str, separator: str) -> tuple[int, int]:
    """The number of columns with this separator, and the number of rows that have so many."""
    reader = csv.reader(
        io.StringIO(text[:_TEXT_SNIFFED], newline=""), delimiter=separator, skipinitialspace=True
    )
    try:
        widths = [len(row) for row in islice(filter(any, reader), _ROWS_SNIFFED)]
    except csv.Error:  # reading the whole file will name the row
        return 0, 0
    return (widths[0], widths.count(widths[0])) if widths else (0, 0)


def _foreign(
    source: Path, data: bytes, parse: Callable[[bytes], tuple[list[list[str]], list[str]]]
) -> Table:
    """The table in a file that pandas reads."""
    suffix = source.suffix.lower()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and engines, which do not matter here
            rows, notes = parse(data)
    except ImportError as error:
        raise SettingError(
            f"{source} needs the packages pandas and {_PACKAGES[suffix]}; run pip install "
            "'scaml[sheets]', or save the table as CSV."
        ) from error
    except Exception as error:  # these parsers raise exceptions of many kinds
        raise SavedFileError(
            f"{source} cannot be read as {suffix} ({type(error).__name__}: {shown(str(error))}); save "
            "the table again, or save it as CSV."
        ) from error
    return tabulate(str(source), rows, notes=notes)


def _parquet(data: bytes) -> tuple[list[list[str]], list[str]]:
    pandas = import_module("pandas")
    frame = pandas.read_parquet(io.BytesIO(data))
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    cells = frame.astype(object).where(frame.notna(), "").map(str)
    return [list(map(str, frame.columns)), *cells.to_numpy().tolist()], []


def _workbook(data: bytes) -> tuple[list[list[str]], list[str]]:
    pandas = import_module("pandas")
    with pandas.ExcelFile(io.BytesIO(data)) as book:
        frame = book.parse(0, header=None, dtype=object, na_filter=False)
        engine, worksheets = book.engine, book.sheet_names
    rows: list[list[str]] = frame.map(str).to_numpy().tolist()
    if engine == "openpyxl":
        _put_formulas(rows, data)
    notes = []
    if len(worksheets) > 1:
        notes.append(f"Only the first of {len(worksheets)} worksheets is read, {shown(worksheets[0])}.")
    return rows, notes


def _put_formulas(rows: list[list[str]], data: bytes) -> None:
    """Fill in formulas that no spreadsheet has computed yet: without this their cells look empty."""
    if all(map(all, rows)):
        return
    book: Any = import_module("openpyxl").load_workbook(io.BytesIO(data), read_only=True)
    try:
        for row, values in zip(rows, book.worksheets[0].iter_rows(values_only=True), strict=False):
            for place, (cell, value) in enumerate(zip(row, values, strict=False)):
                if not cell and isinstance(value, str):
                    row[place] = value
    finally:
        book.close()
