"""What the commands share: parsed numbers, files and folders to write to, JSON, progress."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from scaml.common.files import replacing_all
from scaml.common.progress import Progress
from scaml.errors import SettingError

__all__ = [
    "AsJson",
    "Jobs",
    "Quiet",
    "Seed",
    "check_free",
    "check_jobs",
    "check_seed",
    "duration",
    "folder",
    "integer",
    "method_name",
    "print_json",
    "progress",
    "unwritable",
    "write_all",
]

_BAR = 20  # columns: narrow, so that the words on both sides of the bar fit into a small terminal
_OTHER_FILE = "give another file"


def integer(text: str) -> int:
    """Parse an integer. Typer's own messages about bad values do not always show the value."""
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not an integer") from error


def method_name(text: str) -> str:
    """The name of a method in lower case; `scaml methods` lists class names. FILE.py:CLASS is kept."""
    return text if ":" in text else text.lower()


def check_seed(seed: int) -> int:
    """Refuse a negative seed."""
    if seed < 0:
        raise SettingError(f"--seed is {seed}; give an integer of at least 0.")
    return seed


def check_jobs(jobs: int) -> int:
    """Refuse a number of processes that is neither positive nor -1."""
    if jobs < -1 or jobs == 0:
        raise SettingError(f"--jobs is {jobs}; give a positive integer, or -1 for one per core.")
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
        help="Processes to use, -1 for one per core.",
    ),
]
# Without this metavar, the help shows a flag as if it took a value.
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", metavar="", help="Print the result, and nothing else.")
]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON, and nothing else.")]


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """A folder to write to: checked before the work begins, removed if it is new and the work fails."""
    new: list[Path] = []
    try:
        try:
            if path.exists() and not path.is_dir():
                raise SettingError(f"--out is {str(path)!r}, a file; give a folder, new or existing.")
            new = [part for part in (path, *path.parents) if not part.exists()]
            path.mkdir(parents=True, exist_ok=True)
            # Permission bits do not show read-only file systems and full disks; writing a file does.
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise unwritable(path, error) from error
        yield
    except BaseException:
        with suppress(OSError):  # raised by the first folder that is not empty
            for part in new:
                part.rmdir()
        raise


def check_free(path: Path | None, force: bool) -> None:
    """Refuse a file that exists already, or cannot be made, before any work is done."""
    if path is None:
        return
    try:
        if path.is_dir():
            raise SettingError(f"{str(path)!r} is a folder; give the name of a file.")
        if path.exists() and not force:
            raise SettingError(f"{str(path)!r} is there already; give another name, or --force.")
        if not path.absolute().parent.is_dir():
            raise SettingError(f"There is no folder {str(path.parent)!r}; make it, or give another.")
    except OSError as error:  # a name that is too long, or a folder that may not be entered
        raise unwritable(path, error, _OTHER_FILE) from error


def write_all(texts: Mapping[Path, str]) -> None:
    """Write all files, or none of them."""
    try:
        with replacing_all(list(texts)) as drafts:
            for draft, path in zip(drafts, texts, strict=True):
                draft.write_text(texts[path], encoding="utf-8", newline="")
    except OSError as error:
        raise unwritable(error.filename2 or path, error, _OTHER_FILE) from error


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII: every terminal and every pipe accepts that."""
    typer.echo(json.dumps(value, indent=1, allow_nan=False))


def unwritable(
    path: Path, error: OSError, advice: str = "give an --out folder where you may write"
) -> SettingError:
    """The error for a path that cannot be written."""
    reason = error.strerror or type(error).__name__
    return SettingError(f"{str(path)!r} cannot be written ({reason}); {advice}.")


def duration(seconds: float) -> str:
    """A duration for somebody who waits: seconds, minutes or hours."""
    minutes, hours = round(seconds / 60), seconds / 3600
    return f"{seconds:.0f} s" if seconds < 90 else f"{minutes} min" if hours < 2 else f"{hours:.1f} h"


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """Show the progress: a bar on a terminal, elsewhere one line per stage.

    Output to the standard error inside the block appears above the bar.
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
    """A callback that shows one stage after the other, each with its own time."""
    row = bar.add_task("Starting", total=None)
    first = 0, 0.0  # steps done at the first report, and the time of that report

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal row, first
        if not done:
            bar.remove_task(row)
            row, first = bar.add_task(what, total=total), (0, 0.0)
            return
        elapsed = bar.tasks[0].elapsed or 0.0
        first = first if first[0] else (done, elapsed)
        whole = None
        # The first step does not count: it may take longer, for example because it starts processes.
        if total is not None and done > first[0]:
            whole = elapsed + (total - done) * (elapsed - first[1]) / (done - first[0])
        bar.update(row, description=what, completed=done, total=total, whole=whole)

    return report


class _Clock(ProgressColumn):
    """The remaining time of a stage; if that is unknown, the time so far."""

    def render(self, task: Task) -> Text:
        elapsed, whole = task.elapsed or 0.0, task.fields.get("whole") or 0.0
        share = "" if task.total is None else f"{task.percentage:.0f}%, "
        if whole <= elapsed:  # unknown, or estimated too short
            return Text(f"{share}{duration(elapsed)} so far")
        return Text(f"{share}{duration(whole - elapsed)} left")
