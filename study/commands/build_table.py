"""`python -m study build-table`: make a table of `scaml.bench` again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaml.cli.terminal import Jobs, Quiet, folder, progress
from study.commands.shared import needs_group

__all__ = ["build_table"]


def build_table(
    model: Annotated[str, typer.Argument(metavar="svm|lr|rf|xgb", help="Which table.")],
    jobs: Jobs = 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the table.")] = Path("tables"),
    quiet: Quiet = False,
) -> None:
    """Train a model on its whole grid and 20 or more real data sets, and write the table of errors.

    Takes 10 to 60 minutes on one core. Continues a command that was stopped.
    """
    with needs_group():
        from study.tables.building import build, names_of

        names = names_of(model)  # an unknown model is refused before the folder is made
        with folder(out), progress(quiet) as report:
            report("Training", 0, len(names))
            path = build(model, out, n_jobs=jobs, progress=report)
    typer.echo(f"Table: {path}")
