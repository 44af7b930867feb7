"""Suggestions as a table for the terminal, as CSV for a spreadsheet and as JSON for a program."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from scaml.explain.subject import Subject
    from scaml.explain.suggestions import Suggestion
    from scaml.sheets import Sheet

__all__ = ["as_csv", "as_json", "show"]

_SHOWN_TASKS = 3  # past tasks per suggestion
_WIDE = 10_000  # columns


def as_csv(found: Sequence[Suggestion], subject: Subject, sheet: Sheet | None, task_column: str) -> str:
    """Rows to paste below the table: the same columns, the measured one empty."""
    from scaml.sheets.cells import marked

    def cell(value: Any) -> Any:
        return marked(value) if isinstance(value, str) else value

    assert subject.space is not None
    columns = (*subject.space.names, subject.objective) if sheet is None else sheet.columns
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(cell, columns))
    for one in found:
        known = one.params if sheet is None else {**one.params, task_column.strip(): subject.title}
        writer.writerow(cell(known.get(column, "")) for column in columns)
    return file.getvalue()


def as_json(found: Sequence[Suggestion], subject: Subject) -> dict[str, Any]:
    """The suggestions and what they are for, as values that JSON has."""
    return {
        "task": subject.title,
        "objective": subject.objective,
        "maximize": subject.maximize,
        "observations": subject.task.n,
        "suggestions": [
            {
                "params": one.params,
                "expected": one.expected,
                "deviation": one.deviation,
                "beyond": one.beyond,
                "past_tasks": one.moved_by,
            }
            for one in found
        ],
    }


def show(found: Sequence[Suggestion], subject: Subject) -> None:
    """Print as many suggestions side by side as the terminal has room for without cutting numbers."""
    console, first = Console(), 0
    while first < len(found):
        last, table = first + 1, _table(found, subject, first, first + 1)
        while last < len(found):
            wider = _table(found, subject, first, last + 1)
            if _width(console, wider) > console.width:
                break
            last, table = last + 1, wider
        console.print(table)
        first = last
    legend = "± is two standard deviations"
    if any(one.moved_by for one in found):
        legend += "; past tasks raise or lower the prediction by their numbers"
    typer.echo(f"{legend}.")
    for text in dict.fromkeys(_reading(one) for one in found if one.beyond is not None):
        typer.echo(text)


def _reading(one: Suggestion) -> str:
    """How to read an expected value beyond all values so far."""
    less, lower = ("less", "lower") if one.is_below else ("more", "higher")
    limit = f"No experiment, past or new, gave {less} than {one.beyond:.4g}"
    return f"{limit}: read it as {lower} than so far."


def _width(console: Console, table: Table) -> int:
    """The width that a table needs if its lines are broken only between words."""
    return console.measure(table, options=console.options.update(width=_WIDE)).minimum


def _table(found: Sequence[Suggestion], subject: Subject, first: int, last: int) -> Table:
    """The suggestions from number `first`, counted from 0, up to and without number `last`."""
    assert subject.space is not None
    shown = found[first:last]
    table = Table()
    table.add_column(Text(f"next of {subject.title}"), overflow="fold")
    for i in range(first, last):
        table.add_column(str(i + 1), justify="right", overflow="fold")
    for name in subject.space.names:
        table.add_row(Text(name), *(Text(str(one.params[name])) for one in shown))
    table.add_section()
    table.add_row(Text(f"expected {subject.objective}"), *map(_expected, shown))
    moves = [
        "\n".join(f"{name} {move:+.3g}" for name, move in list(one.moved_by.items())[:_SHOWN_TASKS])
        for one in shown
    ]
    if any(moves):
        table.add_row(Text("effect of past tasks"), *map(Text, moves))
    return table


def _expected(one: Suggestion) -> str:
    """The expected value, with the remark that no experiment gave such a value."""
    if one.expected is None:
        return "–"
    text = f"{one.expected:.4g} ± {2 * (one.deviation or 0.0):.2g}"
    if one.beyond is None:
        return text
    return f"{text}\nnone {'below' if one.is_below else 'above'} {one.beyond:.4g}"
