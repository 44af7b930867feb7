"""The command line: suggest, report, demo, methods, bench. The only place that prints."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from scaml.cli import bench
from scaml.cli.campaign import report, suggest
from scaml.cli.demo import FAMILY_NAMES, demo, methods
from scaml.errors import ScaMLError

__all__ = ["FAMILY_NAMES", "app", "main"]

app = typer.Typer(
    name="scaml",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog="Example: scaml demo --family hartmann6 --seed 1 --out figures")(demo)
app.command(epilog="Example: scaml methods")(methods)
app.command(epilog="Example: scaml suggest runs.csv --task new --objective yield -n 3 --out next.csv")(
    suggest
)
app.command(epilog="Example: scaml report runs.csv --task new --objective yield --out report.html")(
    report
)
app.add_typer(bench.app, name="bench")


def main(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0 is success, 2 something for the user to mend, 130 Ctrl-C, and 1 a fault of scaml.

    Args:
        args: The words after `scaml`; those of the process by default.
    """
    try:
        words = bench.spread(sys.argv[1:] if args is None else args)
        code = app(words, prog_name="scaml", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except ScaMLError as error:
        return _refuse(str(error))
    except Exception as error:
        # Typer does not export the class of its usage errors; they can phrase themselves.
        phrase = getattr(error, "format_message", None)
        return _apologize(error) if phrase is None else _refuse(_usage(phrase(), error))
    if code == 130:
        typer.echo("scaml: stopped.", err=True)
    return int(code or 0)


def _usage(message: str, error: Exception) -> str:
    """Typer's sentence, on one line, and where to look further."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "scaml"
    sentence = " ".join(message.split()).rstrip(".")
    return f"{sentence}{' See' if sentence.endswith('?') else '; see'} {command} --help."


def _refuse(message: str) -> int:
    typer.echo(f"scaml: {message}", err=True)
    return 2


def _apologize(error: Exception) -> int:
    """Put the traceback aside, where it can be reported from."""
    report = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="scaml-", suffix=".log", encoding="utf-8", delete=False
        ) as log:
            log.write(f"scaml {version('scaml')}, Python {sys.version}\n\n{report}")
        where = log.name
    except OSError:  # nowhere to put it: better here than lost
        typer.echo(report, err=True)
        where = "the lines above"
    typer.echo(
        f"scaml: an unexpected {type(error).__name__} is a fault of scaml; please report it with the "
        f"traceback in {where}.",
        err=True,
    )
    return 1


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"scaml {version('scaml')}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog="Example: scaml demo --seed 1")
def _scaml(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Bayesian optimization that learns from past experiments (ScaML-GP)."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
