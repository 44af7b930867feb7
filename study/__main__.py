"""The command line of the study; run `python -m study --help` at the top of the repository."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from scaml.cli.bench import spread
from scaml.errors import ScaMLError
from study.commands.ablate import ablate
from study.commands.build_table import build_table
from study.commands.calibrate import calibrate
from study.commands.compact import compact
from study.commands.more_past import more_past
from study.commands.paper import paper
from study.commands.plateau import plateau
from study.commands.plot import plot
from study.commands.rename_settings import rename_settings
from study.commands.shared import COMMAND
from study.commands.twin import twin

__all__ = ["app", "main"]

app = typer.Typer(
    name="study",
    help="The evidence behind scaml: the paper's figures, its defaults, and its tables.",
    epilog=f"Example: {COMMAND} paper --figure illustration --out runs",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command, _example in (
    (paper, "paper --figure synthetic --runs 16 --jobs 2 --out runs"),
    (plot, "plot results --figure hpo"),
    (ablate, "ablate svm --methods sqrt-beta=1 --out choices"),
    (calibrate, "calibrate svm --methods scaml gpbo --runs 2"),
    (more_past, "more-past svm two-groups --methods scaml scaml-shared --runs 4 --out more-past"),
    (twin, "twin one-good-99 --methods scaml scaml-shared --runs 4 --out twin.parquet"),
    (plateau, "plateau --studies 8 --only table --out plateau.json"),
    (build_table, "build-table svm --jobs 2 --out tables"),
    (compact, "compact results"),
    (rename_settings, "rename-settings results results/choices"),
):
    app.command(epilog=f"Example: {COMMAND} {_example}")(_command)


def main(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 for success, 2 for wrong input, 130 for Ctrl-C.

    Other exceptions are faults of the study, and leave with their traceback.

    Args:
        args: The words after `python -m study`; those of the process by default.
    """
    words = list(sys.argv[1:] if args is None else args)
    try:
        code = app(spread(words), prog_name=COMMAND, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except ScaMLError as error:
        return _refuse(str(error))
    except Exception as error:
        # Typer does not export the class of its usage errors; they can phrase themselves.
        phrase = getattr(error, "format_message", None)
        if phrase is None:
            raise
        message = " ".join(phrase().split()).rstrip(".")
        link = " See" if message.endswith("?") else "; see"
        return _refuse(f"{message}{link} {COMMAND} --help.") if message else 0
    if code == 130:
        typer.echo("study: stopped.", err=True)
    return int(code or 0)


def _refuse(message: str) -> int:
    typer.echo(f"study: {message}", err=True)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
