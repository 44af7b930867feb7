"""What the commands share at the terminal: numbers from words, folders to write to, progress."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress as Bar

from scaml.errors import SettingError

__all__ = ["Progress", "Seed", "check_seed", "folder", "integer", "progress", "unwritable"]

Progress = Callable[[str, int, int], None]
"""Told what comes next, how many steps are done, and out of how many."""


def integer(text: str) -> int:
    """Parse a number; Typer's own sentences about bad values leave them out or read like a parser's."""
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not an integer") from error


def check_seed(seed: int) -> int:
    """Refuse a negative seed."""
    if seed < 0:
        raise SettingError(f"--seed is {seed}; give an integer of at least 0.")
    return seed


Seed = Annotated[
    int,
    typer.Option(
        metavar="INT",
        parser=integer,
        callback=check_seed,
        help="Decides everything random; at least 0.",
    ),
]


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


def unwritable(path: Path, error: OSError) -> SettingError:
    """What to say of a path that cannot be written."""
    reason = error.strerror or type(error).__name__
    return SettingError(
        f"{str(path)!r} cannot be written ({reason}); give an --out folder where you may write."
    )


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar on a terminal; elsewhere one line for every stage."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Bar(console=console, transient=True) as bar:
            row = bar.add_task("Starting", total=None)
            yield lambda what, done, total: bar.update(
                row, description=what, completed=done, total=total
            )
    else:
        last = ""

        def report(what: str, done: int, total: int) -> None:
            nonlocal last
            if what != last:
                typer.echo(what, err=True)
            last = what

        yield report
