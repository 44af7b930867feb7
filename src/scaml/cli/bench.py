"""`scaml bench`: compare methods, your own included."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from scaml.cli.options import takes
from scaml.cli.show_runs import shown
from scaml.cli.terminal import AsJson, Jobs, Quiet, folder, integer, method_name, print_json, progress
from scaml.errors import BenchRunError, SettingError

if TYPE_CHECKING:
    from scaml.bench.contestants import Contestant
    from scaml.bench.settings import Setting

__all__ = ["Methods", "Out", "Runs", "app", "needs_extra", "run_and_store", "spread", "tell_damaged"]

app = typer.Typer(
    name="bench",
    help="Compare methods on problems: run them, tabulate and draw the results.",
    epilog="Example: scaml bench run branin --methods scaml gpbo --runs 2 --out runs",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

_METHODS = "--methods"
_FORMATS = ("text", "markdown", "csv", "json")
_RUNS, _DRAWN = 16, "figures"

Methods = Annotated[
    list[str] | None,
    typer.Option(
        _METHODS,
        metavar="NAME...",
        parser=method_name,
        help="Methods to compare, or FILE.py:CLASS for one of your own; all of the paper's by default.",
    ),
]
Runs = Annotated[int, typer.Option(metavar="INT", parser=integer, help="Runs of every method.")]
Out = Annotated[
    Path, typer.Option(metavar="DIR", help="Folder of the results; an existing one is continued.")
]


def spread(words: Sequence[str]) -> list[str]:
    """Let `--methods a b c` take several words: the option parser expects one word per option."""
    taken: list[str] = []
    names = -1  # the number of names behind --methods so far; -1 elsewhere
    for word in [*words, "--"]:
        if names >= 0 and not word.startswith("-"):
            taken += [_METHODS, word]
            names += 1
            continue
        if names == 0:
            raise SettingError("--methods names none; give at least one, as in --methods scaml gpbo.")
        names = 0 if word == _METHODS else -1
        if names < 0:
            taken.append(word)
    return taken[:-1]


@app.command("list", epilog="Example: scaml bench list")
def list_problems(as_json: AsJson = False) -> None:
    """List the problems: dimension, tasks, points, and the paper's settings of each."""
    with needs_extra(), progress(as_json):
        from scaml.bench.problems import PROBLEMS

    names = ("problem", "title", "d", "tasks", "points", "M", "N_m", "evaluations")
    found = [
        (
            name,
            problem.title,
            problem.d,
            None if problem.most_meta_tasks is None else problem.most_meta_tasks + 1,
            problem.most_points,
            problem.meta_tasks,
            problem.points,
            problem.evaluations,
        )
        for name, problem in PROBLEMS.items()
    ]
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in found])
        return
    table = Table()
    for name in names:  # names of problems stay whole, because users type them
        text = name in names[:2]
        table.add_column(name, justify="left" if text else "right", no_wrap=name == names[0])
    for row in found:
        table.add_row(*("∞" if cell is None else str(cell) for cell in row))
    Console().print(table)
    typer.echo("hpobench:FOLDER/MODEL is a problem too, if FOLDER has HPOBench's tables.")


@dataclass(frozen=True)
class RunOptions:
    """The options of `scaml bench run`."""

    problems: Annotated[
        list[str], typer.Argument(metavar="PROBLEM", help="Names; see scaml bench list.")
    ]
    methods: Methods = None
    meta_tasks: Annotated[
        int | None,
        typer.Option(metavar="INT", parser=integer, help="M; the paper's number by default."),
    ] = None
    points: Annotated[
        int | None,
        typer.Option(metavar="INT", parser=integer, help="N_m; the paper's number by default."),
    ] = None
    evaluations: Annotated[
        int | None,
        typer.Option(metavar="INT", parser=integer, help="Of the test-task; the paper's by default."),
    ] = None
    runs: Runs = _RUNS
    jobs: Jobs = 1
    out: Out = Path("runs")
    quiet: Quiet = False


@app.command(epilog="Example: scaml bench run branin svm --methods scaml gpbo --runs 4 --out runs")
@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Compare methods on problems, run by run; continue a command that was stopped.

    Within a run all methods get the same meta-data, test function and noise. Every finished run of a
    method is stored. The numbers do not depend on --jobs.
    """
    with needs_extra():
        from scaml.bench.contestants import COMPARED, contestant
        from scaml.bench.results import check_same
        from scaml.bench.settings import Setting

        settings = [
            Setting.of(name, options.meta_tasks, options.points, options.evaluations)
            for name in dict.fromkeys(options.problems)
        ]
        check_same(options.out, settings)
        chosen = [contestant(name) for name in dict.fromkeys(options.methods or COMPARED)]
        finished = run_and_store(
            options.out,
            settings,
            chosen,
            options.runs,
            jobs=options.jobs,
            quiet=options.quiet,
            command=["scaml", *sys.argv[1:]],
        )
    out = options.out
    typer.echo(f"Results: {out}, {finished} runs; see scaml bench table {out}")


@app.command(epilog="Example: scaml bench plot runs --out figures")
def plot(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the results.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the figure; DIR/figures by default.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw mean regret over evaluations, one panel per setting, as PNG and PDF."""
    where = results / _DRAWN if out is None else out
    with needs_extra(), progress(quiet) as report:
        from scaml.bench import regret_figure
        from scaml.bench.results import read

        frame, damaged = read(results)
        tell_damaged(damaged)
        with folder(where):
            report("Drawing", 0, None)
            paths = regret_figure.draw(frame, where)
    for path in paths:
        typer.echo(f"Figure: {path}")


@app.command(epilog="Example: scaml bench table runs --format markdown --timings")
def table(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the results.")],
    style: Annotated[
        str, typer.Option("--format", metavar="|".join(_FORMATS), help="How it is written.")
    ] = "text",
    timings: Annotated[bool, typer.Option("--timings", metavar="", help="Seconds too.")] = False,
    reference: Annotated[
        str, typer.Option(metavar="METHOD", help="The method that others are compared with.")
    ] = "scaml",
) -> None:
    """Tabulate cumulative and final regret, ranks, and paired differences from a reference method.

    Cumulative regret is the sum of the simple regrets after every evaluation.
    """
    if style not in _FORMATS:
        raise SettingError(f"--format is {style!r}; choose one of {', '.join(_FORMATS)}.")
    with needs_extra(), progress():
        from scaml.bench import summary
        from scaml.bench.results import read

        frame, damaged = read(results)
        tell_damaged(damaged)
        rows = summary.summarize(frame, timings=timings, reference=reference)
    if style == "json":
        print_json([asdict(row) for row in rows])
    elif style == "text":
        console = Console()
        Console(width=None if console.is_terminal else 120).print(summary.text(rows))
    else:
        typer.echo(summary.csv(rows) if style == "csv" else summary.markdown(rows), nl=False)


def run_and_store(
    out: Path,
    settings: Sequence[Setting],
    contestants: Sequence[Contestant],
    runs: int,
    *,
    jobs: int,
    quiet: bool,
    command: Sequence[str],
) -> int:
    """Run what is missing, show the progress, and return the number of all stored runs.

    Args:
        out: The folder of the results.
        settings: What to run.
        contestants: The methods to run in each setting.
        runs: The number of runs per setting and method.
        jobs: Processes to use.
        quiet: Show nothing.
        command: The words of the command, for the history of the folder.

    Raises:
        BenchRunError: If runs failed.
    """
    from scaml.bench.history import provenance
    from scaml.bench.runner import run_study

    source = provenance(command)
    with folder(out), shown(out, quiet) as report:
        state = run_study(out, settings, contestants, runs, n_jobs=jobs, progress=report, source=source)
    tell_damaged(state.damaged)
    if state.failures:
        first = state.failures[0]
        raise BenchRunError(
            f"{len(state.failures)} of {state.total} runs failed, the first of "
            f"{first.run.contestant.name} with {first.reason.splitlines()[0]} (see {first.log}); the "
            "others are stored, and the same command tries these again."
        )
    return state.finished


def tell_damaged(paths: Sequence[Path]) -> None:
    """Name the damaged files, which have been renamed."""
    for path in paths:
        typer.echo(f"scaml: a damaged file was set aside as {path}; run again for its runs.", err=True)


@contextmanager
def needs_extra() -> Iterator[None]:
    """Imports inside this block may need packages of the extra `bench`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(
            f"scaml bench needs {error.name}, which is not installed; run pip install 'scaml[bench]'."
        ) from error
