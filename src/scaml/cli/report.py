"""`scaml report`: the next experiments and what explains them, as one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scaml.cli.options import takes
from scaml.cli.show_past import past_json
from scaml.cli.show_suggestions import as_json
from scaml.cli.source import Number, SourceOptions
from scaml.cli.terminal import check_free, print_json, progress

__all__ = ["ReportOptions", "report"]

_STAGE = "Explaining what was learned"


@dataclass(frozen=True)
class ReportOptions(SourceOptions):
    """The options of `scaml report`."""

    n: Number = 3
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("report.html")


@takes(ReportOptions)
def report(options: ReportOptions) -> None:
    """Explain on one HTML page what was learned from which past task, and what to try next.

    The page works without a network. Arguments are those of scaml suggest.
    """
    check_free(options.out, options.force)
    with progress(options.silent) as tell:
        subject, _ = options.learn(tell)
        from scaml.explain.run import Run
        from scaml.report.document import page_of_run

        tell(_STAGE, 0, None)
        run = Run.of(subject, seed=options.seed)
        page_of_run(run, options.out, progress=partial(tell, _STAGE))
    if options.as_json:
        print_json({"report": str(options.out), **as_json(run.suggestions, subject), **past_json(run)})
    else:
        typer.echo(f"Report: {options.out}")
