"""What the commands share at the terminal: numbers from words, folders to write to, progress."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from scaml.errors import SettingError

__all__ = [
    "AsJson",
    "Jobs",
    "Progress",
    "Quiet",
    "Seed",
    "check_jobs",
    "check_seed",
    "duration",
    "folder",
    "integer",
    "method_name",
    "print_json",
    "progress",
    "unwritable",
]

Progress = Callable[[str, int, int | None], None]
"""Told what is done now, how many steps of it are done, and out of how many; None if nobody knows.

A stage begins with 0 steps done.
"""

_BAR = 20  # columns: the words on both sides of it fit into a narrow terminal


def integer(text: str) -> int:
    """Parse a number; Typer's own sentences about bad values leave them out or read like a parser's."""
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not an integer") from error


def method_name(text: str) -> str:
    """The name of a method, which `scaml methods` writes in capitals; FILE.py:CLASS stays as it is."""
    return text if ":" in text else text.lower()


def check_seed(seed: int) -> int:
    """Refuse a negative seed."""
    if seed < 0:
        raise SettingError(f"--seed is {seed}; give an integer of at least 0.")
    return seed


def check_jobs(jobs: int) -> int:
    """Refuse a number of processes that is not one."""
    if jobs < -1 or jobs == 0:
        raise SettingError(f"--jobs is {jobs}; give a positive integer, or -1 for one a core.")
    return jobs


Seed = Annotated[
    int,
    typer.Option(
        metavar="INT",
        parser=integer,
        callback=check_seed,
        help="Decides everything random; at least 0.",
    ),
]


Jobs = Annotated[
    int,
    typer.Option(
        metavar="INT",
        parser=integer,
        callback=check_jobs,
        help="Processes to use, -1 for one a core.",
    ),
]
# Without a metavar, help shows a flag as if it took a value.
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", metavar="", help="Print the result, and nothing else.")
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON, and nothing else.")]


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """A folder to write to: refused before any work is done, removed again if the work fails."""
    new: list[Path] = []
    try:
        try:
            if path.exists() and not path.is_dir():
                raise SettingError(f"--out is {str(path)!r}, a file; give a folder, new or existing.")
            new = [part for part in (path, *path.parents) if not part.exists()]
            path.mkdir(parents=True, exist_ok=True)
            # Permission bits do not tell of read-only file systems and full disks; a file does.
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise unwritable(path, error) from error
        yield
    except BaseException:
        with suppress(OSError):  # of the first folder that is not empty
            for part in new:
                part.rmdir()
        raise


def print_json(value: Any) -> None:
    """Print what JSON can carry; ASCII, so that every terminal and pipe takes it."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False))


def unwritable(
    path: Path, error: OSError, advice: str = "give an --out folder where you may write"
) -> SettingError:
    """What to say of a path that cannot be written."""
    reason = error.strerror or type(error).__name__
    return SettingError(f"{str(path)!r} cannot be written ({reason}); {advice}.")


def duration(seconds: float) -> str:
    """A time to the precision that somebody who waits wants to know."""
    minutes, hours = round(seconds / 60), seconds / 3600
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if hours < 2 else f"{hours:.1f} h"


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """How far the work is: a bar on a terminal, elsewhere one line for every stage.

    What is written to the standard error inside the block appears above the bar.
    """
    console = Console(stderr=True)
    if quiet:
        yield lambda what, done, total: None
    elif console.is_terminal:
        words = TextColumn("{task.description}", markup=False)
        with Bar(words, BarColumn(_BAR), _Clock(), console=console, transient=True) as bar:
            yield _on(bar)
    else:
        last = ""

        def report(what: str, done: int, total: int | None) -> None:
            nonlocal last
            if what != last:
                typer.echo(what, err=True)
            last = what

        yield report


def _on(bar: Bar) -> Progress:
    """Show one stage after the other, each with its own time."""
    row = bar.add_task("Starting", total=None)
    first = 0, 0.0  # steps, and when they were done

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal row, first
        if not done:
            bar.remove_task(row)
            row, first = bar.add_task(what, total=total), (0, 0.0)
            return
        elapsed = bar.tasks[0].elapsed or 0.0
        first = first if first[0] else (done, elapsed)
        whole = None
        # Not by the time of the first step, which may be of another kind, or starts processes.
        if total is not None and done > first[0]:
            whole = elapsed + (total - done) * (elapsed - first[1]) / (done - first[0])
        bar.update(row, description=what, completed=done, total=total, whole=whole)

    return report


class _Clock(ProgressColumn):
    """How long a stage still takes; where nobody knows, how long it has taken."""

    def render(self, task: Task) -> Text:
        elapsed, whole = task.elapsed or 0.0, task.fields.get("whole") or 0.0
        share = "" if task.total is None else f"{task.percentage:.0f}%, "
        if whole <= elapsed:  # not known, or not true
            return Text(f"{share}{duration(elapsed)} so far")
        return Text(f"{share}{duration(whole - elapsed)} left")
