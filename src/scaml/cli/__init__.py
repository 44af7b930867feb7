"""The command line: suggest, report, demo, methods, bench. No other package prints."""

from __future__ import annotations

import errno
import io
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from scaml.errors import ScaMLError

__all__ = ["app", "main"]

_FULL = (errno.ENOSPC, errno.EDQUOT)  # the disk, or the user's share of it
_METHODS = "--methods"
_LONGEST_WAIT = 5.0  # seconds per queue, after Ctrl-C

# For each command: its module, its function and an example. The module is imported when the command
# runs or when the help lists it.
_COMMANDS = {
    "suggest": ("suggest", "suggest", "scaml suggest runs.csv --task new -n 3 --out next.csv"),
    "report": ("report", "report", "scaml report runs.csv --task new --out report.html"),
    "demo": ("demo", "demo", "scaml demo --family hartmann6 --seed 1 --out figures"),
    "methods": ("demo", "methods", "scaml methods"),
}
_GROUP = "bench"
_MARKUP: Any = "markdown"


class _Commands(Mapping[str, Any]):
    """All commands by name, each imported when it is first asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _group() if name == _GROUP else _command(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*_COMMANDS, _GROUP))

    def __len__(self) -> int:
        return len(_COMMANDS) + 1


def _command(name: str) -> Any:
    module, function, example = _COMMANDS[name]
    single = typer.Typer(add_completion=False, rich_markup_mode=_MARKUP)
    single.command(name, epilog=f"Example: {example}")(
        getattr(import_module(f"scaml.cli.{module}"), function)
    )
    return typer.main.get_command(single)


@cache
def _group() -> Any:
    from scaml.cli import bench

    return typer.main.get_group(bench.app)


class _LazyGroup(TyperGroup):
    """A group that does not import all of its commands to run one of them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, for the help."""
        return list(self.commands)


app = typer.Typer(
    name="scaml",
    cls=_LazyGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=_MARKUP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    The exit code is 0 for success, 2 for a mistake in the input, 130 for Ctrl-C, 1 for a bug in scaml.

    Args:
        args: The words after `scaml`; those of the process by default.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # some terminals have no ±
    words = list(sys.argv[1:] if args is None else args)
    try:
        code = app(_spread(words), prog_name="scaml", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except ScaMLError as error:
        return _refuse(str(error))
    except Exception as error:
        return _failed(error, words)
    if code == 130:
        _wait_for_queues()
        typer.echo("scaml: stopped.", err=True)
    return int(code or 0)


def _spread(words: list[str]) -> list[str]:
    """Let `--methods a b c` take several words, which Typer's options do not."""
    if _METHODS not in words:
        return words
    from scaml.cli.bench import spread

    return spread(words)


def _wait_for_queues() -> None:
    """Let the queues of stopped worker processes close.

    The exit would cut off their threads, and a thread that is cut off while it frees a semaphore makes
    joblib warn about a leak.
    """
    for thread in threading.enumerate():
        if thread.name.startswith("QueueFeederThread"):
            thread.join(_LONGEST_WAIT)


def _failed(error: Exception, words: Sequence[str]) -> int:
    """Tell a mistake of the user from a full disk and from a bug."""
    # Typer does not export the class of its usage errors, but they have a method for their message.
    phrase = getattr(error, "format_message", None)
    if phrase is not None:
        message = " ".join(phrase().split())
        return _refuse(_usage(message, words)) if message else 0  # without a message, it was help
    if isinstance(error, OSError) and error.errno in _FULL:
        return _refuse(f"The disk is full ({error.strerror}); make room and try again.")
    return _apologize(error)


def _usage(message: str, words: Sequence[str]) -> str:
    """Typer's message, and the help to read."""
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
    """Write the traceback to a file that the user can send."""
    report = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="scaml-", suffix=".log", encoding="utf-8", delete=False
        ) as log:
            log.write(f"scaml {version('scaml')}, Python {sys.version}\n\n{report}")
        where = log.name
    except OSError:  # no place for a file: print it, so that it is not lost
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
