"""`python -m study plateau`: flat new tasks, which must not end a study with an exception."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from scaml.cli.terminal import Jobs, Quiet, check_free, integer, progress, write_all
from study.commands.shared import needs_group, print_table

__all__ = ["plateau"]

_STUDIES, _EVALUATIONS = 200, 40


def plateau(
    studies: Annotated[
        int,
        typer.Option(metavar="INT", parser=integer, help="Studies in all; the variants take turns."),
    ] = _STUDIES,
    evaluations: Annotated[
        int, typer.Option(metavar="INT", parser=integer, help="Of the new task, in every study.")
    ] = _EVALUATIONS,
    only: Annotated[
        str,
        typer.Option(
            metavar="WORDS",
            help="Only variants with all these words: table, cube, mixed or optuna; se, matern52 or "
            "paper; 1, 2, 3 or needle.",
        ),
    ] = "",
    jobs: Jobs = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON file of how every study ended.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Run studies of a flat task after 40 past tasks that are not flat, and count exceptions.

    The new task has one, two or three values, or one better point in 168 (a needle), in a table, in the
    unit square, in a space with steps, and with the Optuna sampler; with both kernels and with the
    paper's setting.
    """
    with needs_group():
        from study.plateau import exceptions, needles, run_studies, variants

        check_free(out, force=True)
        with progress(quiet) as report:
            outcomes = run_studies(
                variants(only),
                studies,
                evaluations,
                n_jobs=jobs,
                progress=lambda done, total: report("Optimizing", done, total),
            )
        ended, found = exceptions(outcomes), needles(outcomes)
    failed = sum(outcome.error is not None for outcome in outcomes)
    print_table(f"Exceptions: {failed} of {len(outcomes)} studies ended early", ended, "variant")
    if len(found):
        print_table("Evaluations until the better one of 168 rows was found", found, "method")
    if out is not None:
        rows = [{**asdict(o.variant), **asdict(o)} for o in outcomes]
        for row in rows:
            del row["variant"]
        about = {"studies": studies, "evaluations": evaluations, "only": only, "outcomes": rows}
        write_all({out: json.dumps(about, indent=1) + "\n"})
        typer.echo(f"Outcomes: {out}")
