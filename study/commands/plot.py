"""`python -m study plot`: draw a figure from stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaml.cli.terminal import Quiet
from study.commands.shared import DRAWN, draw, needs_group

__all__ = ["plot"]


def plot(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the results.")],
    figure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="synthetic, ablation-tasks, ablation-points, appendix-tasks, appendix-points, hpo, "
            "illustration, or choices, which shows the results of python -m study ablate.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the figure; DIR/figures by default.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw a figure of the paper, or that of the choices, as PNG and PDF."""
    with needs_group():
        draw(results, figure, results / DRAWN if out is None else out, quiet)
