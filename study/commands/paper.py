"""`python -m study paper`: run and draw the figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scaml.cli.bench import Methods, Out, Runs, run_and_store
from scaml.cli.terminal import Jobs, Quiet
from study.commands.shared import DRAWN, RUNS, command_words, draw, needs_group

__all__ = ["paper"]


def paper(
    figure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="synthetic, ablation-tasks, ablation-points, hpo, illustration, or all of them.",
        ),
    ] = "all",
    methods: Methods = None,
    runs: Runs = RUNS,
    jobs: Jobs = 1,
    out: Out = Path("runs"),
    quiet: Quiet = False,
) -> None:
    """Run what a figure of the paper shows, and draw it to OUT/figures.

    Continues a command that was stopped. The paper has 128 runs, and 256 of the tables.
    """
    with needs_group():
        from scaml.bench.contestants import COMPARED
        from study.contestants import contestant
        from study.paper.settings import FIGURES, figure_settings

        settings = figure_settings(figure)
        if settings:
            chosen = [contestant(name) for name in dict.fromkeys(methods or COMPARED)]
            words = command_words()
            finished = run_and_store(out, settings, chosen, runs, jobs=jobs, quiet=quiet, command=words)
            typer.echo(f"Results: {out}, {finished} runs; see scaml bench table {out}")
        for name in FIGURES[:-1] if figure == "all" else (figure,):
            draw(out, name, out / DRAWN, quiet)
