"""`python -m study compact`: make results small enough to commit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaml.cli.terminal import integer, progress
from study.commands.shared import DRAWN, Folders, needs_group

__all__ = ["compact"]


def compact(
    folders: Folders,
    digits: Annotated[
        int | None,
        typer.Option(
            metavar="INT",
            parser=integer,
            help="Significant digits of the seconds per suggestion; all by default.",
        ),
    ] = None,
) -> None:
    """Make stored results and their figures small enough to commit.

    Drops the points, values and weights of every evaluation, which neither tables nor figures show, and
    stores DIR/figures/*.png with a palette. Regrets keep all their digits. Compact results can be
    continued.
    """
    with needs_group(), progress() as report:
        from study.stored_results import compact as compact_results
        from study.stored_results import compact_figures

        sizes = []
        for root in folders:
            before = _bytes(root)
            report(f"Compacting {root}", 0, None)
            compact_results(root, digits=digits)
            compact_figures(root / DRAWN)
            sizes.append((root, before, _bytes(root)))
    for root, before, after in sizes:
        typer.echo(f"{root}: {before / 1e6:.2f} MB before, {after / 1e6:.2f} MB after")


def _bytes(root: Path) -> int:
    """The size of all files in the folders of the root: settings and figures."""
    return sum(path.stat().st_size for path in root.glob("*/*") if path.is_file())
