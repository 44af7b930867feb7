"""The display while methods run: how far they are, how long it will take, and the regrets so far."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scaml.cli.terminal import duration

if TYPE_CHECKING:
    from scaml.bench.runner import StudyState

__all__ = ["shown"]

_BETWEEN_LINES = 10.0  # seconds, where there is no terminal
_SETTINGS_SHOWN = 6


@contextmanager
def shown(out: Path, quiet: bool) -> Iterator[Callable[[StudyState], None]]:
    """A live display on a terminal; elsewhere one line every 10 seconds."""
    console = Console(stderr=True)
    if quiet:
        yield lambda state: None
    elif console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            yield lambda state: live.update(_display(state), refresh=True)
    else:
        last = -_BETWEEN_LINES

        def report(state: StudyState) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _BETWEEN_LINES or state.finished == state.total:
                typer.echo(f"{out}: {_state(state)}", err=True)
                last = now

        yield report


def _state(state: StudyState) -> str:
    left = state.remaining_seconds
    words = f"{state.finished} of {state.total} runs"
    if state.failures:
        words += f", {len(state.failures)} failed"
    if left is not None and state.finished < state.total:
        words += f", {duration(left)} left"
    return words


def _display(state: StudyState) -> Group:
    bar = ProgressBar(total=max(state.total, 1), completed=state.finished, width=40)
    line = Table.grid(padding=(0, 2))
    line.add_row(bar, _state(state))
    # Only settings with finished runs: the others have not begun.
    current = [s for s, found in state.cumulative.items() if any(found.values())][:_SETTINGS_SHOWN]
    table = Table(title="Mean cumulative regret so far")
    table.add_column("method")
    names = list(dict.fromkeys(name for found in state.cumulative.values() for name in found))
    for setting in current:
        title = f"{setting.problem}\n{setting.meta_tasks} x {setting.points}"
        table.add_column(Text(title), justify="right")
    for name in names:
        table.add_row(Text(name), *(_mean(state.cumulative[s].get(name, [])) for s in current))
    return Group(line, table) if current else Group(line)


def _mean(values: list[float]) -> str:
    return f"{statistics.fmean(values):.3g} ({len(values)})" if values else ""
