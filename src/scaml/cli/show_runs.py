"""The display of a study that runs: how far it is, how long it will take, and the regrets so far."""

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
    from scaml.bench.runner import Study

__all__ = ["shown"]

_BETWEEN_LINES = 10.0  # seconds, where there is no terminal
_SETTINGS_SHOWN = 6


@contextmanager
def shown(out: Path, quiet: bool) -> Iterator[Callable[[Study], None]]:
    """A live display on a terminal; elsewhere now and then a line."""
    console = Console(stderr=True)
    if quiet:
        yield lambda study: None
    elif console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            yield lambda study: live.update(_display(study), refresh=True)
    else:
        last = -_BETWEEN_LINES

        def report(study: Study) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _BETWEEN_LINES or study.finished == study.total:
                typer.echo(f"{out}: {_state(study)}", err=True)
                last = now

        yield report


def _state(study: Study) -> str:
    left = study.remaining_seconds
    words = f"{study.finished} of {study.total} runs"
    if study.failures:
        words += f", {len(study.failures)} failed"
    if left is not None and study.finished < study.total:
        words += f", {duration(left)} left"
    return words


def _display(study: Study) -> Group:
    bar = ProgressBar(total=max(study.total, 1), completed=study.finished, width=40)
    line = Table.grid(padding=(0, 2))
    line.add_row(bar, _state(study))
    # Those that are being run now: the earlier ones are complete, the later ones have not begun.
    current = [s for s, found in study.cumulative.items() if any(found.values())][:_SETTINGS_SHOWN]
    table = Table(title="Mean cumulative regret so far")
    table.add_column("method")
    names = list(dict.fromkeys(name for found in study.cumulative.values() for name in found))
    for setting in current:
        title = f"{setting.problem}\n{setting.meta_tasks} x {setting.points}"
        table.add_column(Text(title), justify="right")
    for name in names:
        table.add_row(Text(name), *(_mean(study.cumulative[s].get(name, [])) for s in current))
    return Group(line, table) if current else Group(line)


def _mean(values: list[float]) -> str:
    return f"{statistics.fmean(values):.3g} ({len(values)})" if values else ""
