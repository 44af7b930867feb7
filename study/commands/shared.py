"""What several commands share: options, and where results and figures go."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from scaml.cli.bench import tell_damaged
from scaml.cli.terminal import folder, progress
from scaml.errors import SettingError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COMMAND",
    "DRAWN",
    "RUNS",
    "Folders",
    "Problems",
    "command_words",
    "draw",
    "needs_group",
    "print_table",
]

COMMAND = "python -m study"
RUNS, DRAWN = 16, "figures"

Problems = Annotated[
    list[str] | None,
    typer.Argument(metavar="PROBLEM", help="Names; see scaml bench list. All by default."),
]
Folders = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of results.")]


def command_words() -> list[str]:
    """The words of this command, for the history of results."""
    return [*COMMAND.split(), *sys.argv[1:]]


@contextmanager
def needs_group() -> Iterator[None]:
    """Imports inside this block may need packages of the dependency group `study`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(
            f"{COMMAND} needs {error.name}, which is not installed; run pip install --group study."
        ) from error


def draw(results: Path, figure: str, out: Path, quiet: bool) -> None:
    """Draw one figure from results, and tell where it is.

    Args:
        results: The folder of the results; "illustration" needs none.
        figure: A figure of the paper, "illustration" or "choices".
        out: The folder of the figure.
        quiet: Show no progress.
    """
    with progress(quiet) as report:
        from scaml.bench.results import read
        from study import choices_figure
        from study.paper import figures, illustration

        frame, damaged = (None, []) if figure == "illustration" else read(results)
        tell_damaged(damaged)
        with folder(out):
            report(f"Drawing {figure}", 0, None)
            if frame is None:
                paths = illustration.draw(out)
            elif figure == "choices":
                paths = choices_figure.draw(frame, out)
            else:
                paths = figures.draw(frame, figure, out)
    for path in paths:
        typer.echo(f"Figure: {path}")


def print_table(title: str, frame: pd.DataFrame, index: str) -> None:
    """Print a data frame: text as it is, numbers with two digits, NaN as a dash."""
    table = Table(title=title)
    table.add_column(index, no_wrap=True)
    for column in frame.columns:
        table.add_column(str(column), justify="right")
    for name, row in frame.iterrows():
        cells = [value if isinstance(value, str) else f"{value:.2f}" for value in row]
        table.add_row(str(name), *("–" if cell == "nan" else cell for cell in cells))
    console = Console()
    Console(width=None if console.is_terminal else 120).print(table)
