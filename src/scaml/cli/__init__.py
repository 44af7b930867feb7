"""The command line: suggest, report, demo, methods, bench. The only place that prints."""

from __future__ import annotations

import errno
import io
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer

from scaml.cli import bench
from scaml.cli.demo import FAMILY_NAMES, demo, methods
from scaml.cli.suggest import report, suggest
from scaml.errors import ScaMLError

__all__ = ["FAMILY_NAMES", "app", "main"]

_FULL = (errno.ENOSPC, errno.EDQUOT)

app = typer.Typer(
    name="scaml",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog="Example: scaml suggest runs.csv --task new -n 3 --out next.csv")(suggest)
app.command(epilog="Example: scaml report runs.csv --task new --out report.html")(report)
app.command(epilog="Example: scaml demo --family hartmann6 --seed 1 --out figures")(demo)
app.command(epilog="Example: scaml methods")(methods)
app.add_typer(bench.app, name="bench")


def main(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0 is success, 2 something for the user to mend, 130 Ctrl-C, and 1 a fault of scaml.

    Args:
        args: The words after `scaml`; those of the process by default.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal has a ±
    words = list(sys.argv[1:] if args is None else args)
    try:
        code = app(bench.spread(words), prog_name="scaml", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except ScaMLError as error:
        return _refuse(str(error))
    except Exception as error:
        return _failed(error, words)
    if code == 130:
        typer.echo("scaml: stopped.", err=True)
    return int(code or 0)


def _failed(error: Exception, words: Sequence[str]) -> int:
    """Whose fault it is."""
    # Typer does not export the class of its usage errors; they can phrase themselves.
    phrase = getattr(error, "format_message", None)
    if phrase is not None:
        message = " ".join(phrase().split())
        return _refuse(_usage(message, words)) if message else 0  # else it was asked for help
    if isinstance(error, OSError) and error.errno in _FULL:
        return _refuse(f"The disk is full ({error.strerror}); make room and try again.")
    return _apologize(error)


def _usage(message: str, words: Sequence[str]) -> str:
    """Typer's sentence, and where to look further."""
    path = "scaml"
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path += f" {word}"
    sentence = message.rstrip(".")
    return f"{sentence}{' See' if sentence.endswith('?') else '; see'} {path} --help."


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
        typer.Option(
            "--version",
            metavar="",
            help="Show the version and exit.",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Bayesian optimization that learns from past experiments (ScaML-GP)."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
