"""Rows as text, Markdown and CSV; names of methods may have any characters."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from csv import writer
from dataclasses import dataclass, fields, replace
from io import StringIO
from typing import Literal

from rich.align import Align
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scaml.bench.problems import PROBLEMS
from scaml.bench.summary.rows import Row
from scaml.bench.summary.standings import Standing, marks, overview, settings

__all__ = ["csv", "markdown", "text"]

_CAPTION = (
    "Mean ± standard error over runs. Bold: lowest cumulative regret; "
    "*: above the lowest by at most its standard error. Mean rank: within the runs that all methods "
    "have."
)
_OVERVIEW_CAPTION = (
    "Ranks are means over settings. Lowest: settings with the lowest cumulative regret; "
    "within: those, and settings above the lowest by at most its standard error."
)
_TIMES_CAPTION = "Medians of a suggestion and of a meta-fit, and core-seconds of all runs."
_PAPER_CAPTION = "Core-seconds of all runs here, and scaled to as many runs as in the paper."
_TIMES = ("step_seconds", "meta_fit_seconds", "core_seconds")
_NOTHING = "–"


@dataclass(frozen=True)
class _Sheet:
    """A table of plain strings; `bold` has the places (row, column) of bold cells."""

    title: str
    caption: str
    header: list[str]
    cells: list[list[str]]
    bold: frozenset[tuple[int, int]] = frozenset()


def text(rows: Sequence[Row]) -> Group:
    """Tables for `rich.console.Console.print`: one per setting, and an overview of several settings.

    Args:
        rows: The rows of `summarize`.
    """
    return Group(*(part for sheet in _sheets(rows) for part in _rich(sheet)))


def markdown(rows: Sequence[Row]) -> str:
    """The same tables in GitHub's Markdown.

    Args:
        rows: The rows of `summarize`.
    """
    return "\n".join(_github(sheet) for sheet in _sheets(rows))


def csv(rows: Sequence[Row]) -> str:
    r"""One flat table with one line per row and all digits: equal results give equal bytes.

    The columns are the entries of `Row`, those of times only if the rows have times. None is written as
    an empty cell. A spreadsheet would take a name that begins with =, +, - or @ for a formula, so such
    a name gets a single quote in front. A name that begins with a quote gets one, too: whoever drops
    one leading quote has the name again. Line ends and other unprintable characters are written as \n,
    \x1b and so on.

    Args:
        rows: The rows of `summarize`.
    """
    timed = any(row.core_seconds is not None for row in rows)
    columns = [field.name for field in fields(Row) if timed or field.name not in _TIMES]
    file = StringIO(newline="")
    table = writer(file, lineterminator="\n")
    table.writerow(columns)
    table.writerows([_flat(getattr(row, column)) for column in columns] for row in rows)
    return file.getvalue()


def _flat(value: str | float | None) -> str:
    if isinstance(value, str):
        value = _printable(value)
        return f"'{value}" if value.startswith(("=", "+", "-", "@", "'")) else value
    return "" if value is None else repr(value)


def _printable(name: str) -> str:
    r"""The name on one line and without control characters: line ends become \n, ESC becomes \x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def _rich(sheet: _Sheet) -> list[RenderableType]:
    # Text, not str: rich would read a string as markup.
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for i, name in enumerate(sheet.header):
        # Header words below each other leave room for numbers. Where there is too little room, numbers
        # continue on the next line, because an ellipsis would hide digits.
        side: Literal["left", "right"] = "right" if i else "left"
        heading = Align(Text(name.replace(" ", "\n")), side, vertical="bottom")
        table.add_column(heading, justify=side, overflow="fold")
    for i, cells in enumerate(sheet.cells):
        styles = ["bold" if (i, j) in sheet.bold else "" for j in range(len(cells))]
        table.add_row(*(Text(cell, style) for cell, style in zip(cells, styles, strict=True)))
    # Not as title and caption of the table, which rich would wrap to the width of the columns.
    caption = [Text(sheet.caption, "dim")] if sheet.caption else []
    return [Text(sheet.title, "italic"), table, *caption, ""]


def _github(sheet: _Sheet) -> str:
    def cell(i: int, j: int) -> str:
        value = _escaped(sheet.cells[i][j])
        return f"**{value}**" if (i, j) in sheet.bold else value

    columns = range(len(sheet.header))
    lines = [
        [_escaped(name) for name in sheet.header],
        ["--:" if j else ":--" for j in columns],
        *([cell(i, j) for j in columns] for i in range(len(sheet.cells))),
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    caption = f"\n{_escaped(sheet.caption)}\n" if sheet.caption else ""
    return f"### {_escaped(sheet.title)}\n\n{table}\n{caption}"


def _escaped(plain: str) -> str:
    """Plain text for Markdown: characters with a meaning there are escaped."""
    return re.sub(r"([\\`*_\[\]<>&|~$#])", r"\\\1", plain)


def _sheets(rows: Sequence[Row]) -> list[_Sheet]:
    parts = settings(rows)
    timed = bool(rows) and all(row.core_seconds is not None for row in rows)
    sheets = [_setting(part) for part in parts]
    # All have the same caption, so only the last one shows it.
    sheets = [*(replace(sheet, caption="") for sheet in sheets[:-1]), *sheets[-1:]]
    return [*sheets, _overview(overview(rows), timed)] if timed or len(parts) > 1 else sheets


def _setting(rows: list[Row]) -> _Sheet:
    first, runs = rows[0], sorted({row.runs for row in rows})
    found = marks(rows)
    stars = {row: "* " if mark == "within" else "" for row, mark in zip(rows, found, strict=True)}
    columns: dict[str, Callable[[Row], str]] = {
        "method": lambda row: _printable(row.method),
        "cumulative regret": lambda row: stars[row] + _measured(row.cumulative, row.cumulative_se),
        "final regret": lambda row: _measured(row.final, row.final_se),
        "rank": lambda row: f"{row.rank:g}",
        "mean rank": lambda row: _number(row.mean_rank, ".2f"),
    }
    others = [row for row in rows if row.method != row.reference]
    if any(row.pairs for row in others):
        versus = f"difference to {_printable(first.reference)}"
        columns[versus] = lambda row: _measured(row.difference, row.difference_se, "+")
        if any(row.pairs != row.runs for row in others):
            columns["pairs"] = lambda row: str(row.pairs or _NOTHING)
    if len(runs) > 1:
        columns["runs"] = lambda row: str(row.runs)
    caption = _CAPTION
    if any(row.core_seconds is not None for row in rows):
        caption = f"{_CAPTION} {_TIMES_CAPTION}"
        columns |= {
            "step [s]": lambda row: _seconds(row.step_seconds),
            "meta-fit [s]": lambda row: _seconds(row.meta_fit_seconds),
            "core [s]": lambda row: _seconds(row.core_seconds),
        }
    total = f"{runs[0]} to {_counted(runs[-1], 'run')}" if len(runs) > 1 else _counted(runs[0], "run")
    name = PROBLEMS[first.problem].title if first.problem in PROBLEMS else first.problem
    title = (
        f"{_printable(name)}: M = {first.meta_tasks}, "
        f"N_m = {first.points}, {_counted(first.evaluations, 'evaluation')}, {total}"
    )
    bold = frozenset((i, 1) for i, mark in enumerate(found) if mark == "lowest")
    cells = [[show(row) for show in columns.values()] for row in rows]
    return _Sheet(title, caption, list(columns), cells, bold)


def _overview(standings: list[Standing], timed: bool) -> _Sheet:
    columns: dict[str, Callable[[Standing], str]] = {
        "method": lambda one: _printable(one.method),
        "settings": lambda one: str(one.settings),
        "rank": lambda one: f"{one.rank:.2f}",
        "mean rank": lambda one: _number(one.mean_rank, ".2f"),
        "lowest": lambda one: str(one.lowest),
        "within": lambda one: str(one.within),
    }
    if timed:
        columns |= {
            "core [s]": lambda one: _seconds(one.core_seconds),
            "paper [s]": lambda one: _seconds(one.paper_core_seconds),
        }
    caption = f"{_OVERVIEW_CAPTION} {_PAPER_CAPTION}" if timed else _OVERVIEW_CAPTION
    cells = [[show(one) for show in columns.values()] for one in standings]
    return _Sheet("Overview", caption, list(columns), cells)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _number(value: float | None, form: str) -> str:
    return _NOTHING if value is None else format(value, form)


def _seconds(value: float | None) -> str:
    return _number(value, ".3g" if value is not None and value < 100 else ",.0f")


def _measured(mean: float | None, error: float | None, sign: str = "") -> str:
    """Mean ± standard error to two digits of the latter; four digits of the mean without one."""
    if mean is None:
        return _NOTHING
    if not error:
        return f"{mean:{sign}.4g}" + ("" if error is None else " ± 0")
    if not 1e-4 <= error < 1e6:
        return f"{mean:{sign}.3e} ± {error:.1e}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{mean:{sign}.{digits}f} ± {error:.{digits}f}"
