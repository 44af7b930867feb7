"""The command line: `scaml demo`, `scaml methods`. The only place that prints."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress as Bar
from rich.table import Table

from scaml.errors import ScaMLError, SettingError

if TYPE_CHECKING:
    from scaml.demo import DemoResult, Progress

__all__ = ["FAMILY_NAMES", "app", "main"]

# The keys of `scaml.bench.FAMILIES`, repeated: torch and BoTorch take seconds to import, so that only
# the commands that compute import what needs them.
FAMILY_NAMES = ("branin", "hartmann3", "hartmann6")

_SHOWN = (1, 5, 10, 15, 20)  # evaluations in the table of regrets

app = typer.Typer(
    name="scaml",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0 is success, 2 something for the user to mend, 130 Ctrl-C, and 1 a fault of scaml.

    Args:
        args: The words after `scaml`; those of the process by default.
    """
    try:
        code = app(args, prog_name="scaml", standalone_mode=False)
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
    return f"{' '.join(message.split()).rstrip('.')}; see {command} --help."


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


# Typer's own sentences about bad values leave out the value or read like a parser's.
def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not an integer") from error


def _check_seed(seed: int) -> int:
    if seed < 0:
        raise SettingError(f"--seed is {seed}; give an integer of at least 0.")
    return seed


def _check_family(name: str) -> str:
    if name not in FAMILY_NAMES:
        raise SettingError(f"--family is {name!r}; choose one of {', '.join(FAMILY_NAMES)}.")
    return name


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


@app.command(epilog="Example: scaml demo --family hartmann6 --seed 1 --out figures")
def demo(
    family: Annotated[
        str,
        typer.Option(metavar="|".join(FAMILY_NAMES), callback=_check_family, help="Kind of function."),
    ] = "branin",
    seed: Annotated[
        int,
        typer.Option(
            metavar="INT",
            parser=_integer,
            callback=_check_seed,
            help="Decides everything random; at least 0.",
        ),
    ] = 0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the figure; made if it is not there.")
    ] = Path("scaml-demo"),
) -> None:
    """Optimize a function with and without past tasks, and compare.

    ScaML-GP, which has 8 past tasks to learn from, runs beside a plain GP, which has none. Both
    evaluate the same new function 20 times. Takes less than a minute.
    """
    path = out / f"{family}-seed-{seed}.png"
    with _folder(out):
        with _progress() as report:
            from scaml.bench import FAMILIES
            from scaml.demo import draw, run_demo

            result = run_demo(FAMILIES[family], seed, progress=report)
        try:
            draw(result, path)
        except OSError as error:
            raise _unwritable(path, error) from error
    _show(result)
    typer.echo(f"Figure: {path}")


@app.command(epilog="Example: scaml methods")
def methods() -> None:
    """List the meta-learning methods: name, publication, cost, and one line on each."""
    from scaml import methods as known

    table = Table("method", "publication", "what it does", "cost", show_lines=True)
    for name in known.__all__:
        cls = getattr(known, name)
        if issubclass(cls, known.Method) and cls is not known.Method:
            table.add_row(name, cls.publication, cls.summary, cls.cost)
    Console().print(table)


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """A folder to write to: refused before any work is done, removed again if the work fails."""
    new: list[Path] = []
    try:
        try:
            if path.exists() and not path.is_dir():
                raise SettingError(f"--out is {str(path)!r}, a file; give a folder, new or existing.")
            new = [folder for folder in (path, *path.parents) if not folder.exists()]
            path.mkdir(parents=True, exist_ok=True)
            # Permission bits do not tell of read-only file systems and full disks; a file does.
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise _unwritable(path, error) from error
        yield
    except BaseException:
        with suppress(OSError):  # of the first folder that is not empty
            for folder in new:
                folder.rmdir()
        raise


def _unwritable(path: Path, error: OSError) -> SettingError:
    reason = error.strerror or type(error).__name__
    return SettingError(
        f"{str(path)!r} cannot be written ({reason}); give an --out folder where you may write."
    )


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal; elsewhere one line for every stage."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Bar(console=console, transient=True) as bar:
            row = bar.add_task("Starting", total=None)
            yield lambda what, done, total: bar.update(
                row, description=what, completed=done, total=total
            )
    else:
        last = ""

        def report(what: str, done: int, total: int) -> None:
            nonlocal last
            if what != last:
                typer.echo(what, err=True)
            last = what

        yield report


def _show(result: DemoResult) -> None:
    from scaml.demo import in_words

    console = Console()
    regrets = Table(title=f"Simple regret on {result.family.title}")
    regrets.add_column("evaluations", justify="right")
    for name in result.regrets:
        regrets.add_column(name, justify="right")
    for n in _SHOWN:
        regrets.add_row(str(n), *(f"{values[n - 1]:.3g}" for values in result.regrets.values()))
    weights = Table(title="Learned weights")
    weights.add_column("past task")
    weights.add_column("weight", justify="right")
    for name, weight in result.weights.items():
        weights.add_row(name, in_words(weight))
    console.print(regrets, weights, sep="\n")
