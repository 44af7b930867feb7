"""`scaml bench`: the paper's study."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from scaml.cli.show_runs import shown
from scaml.cli.terminal import AsJson, Jobs, Quiet, folder, integer, method_name, print_json, progress
from scaml.errors import BenchRunError, SettingError

if TYPE_CHECKING:
    from scaml.bench.settings import Setting

__all__ = ["Methods", "Out", "Runs", "app", "needs_extra", "run_settings", "spread"]

app = typer.Typer(
    name="bench",
    help="The paper's study: run it, draw it, tabulate it.",
    epilog="Example: scaml bench run branin --methods scaml gpbo --runs 2 --out runs",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
tables = typer.Typer(
    name="tables",
    help="Tables of real tuning results.",
    epilog="Example: scaml bench tables build svm --out tables",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(tables)

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
    Path, typer.Option(metavar="DIR", help="Folder of the results; resumed if it is there.")
]


def spread(words: Sequence[str]) -> list[str]:
    """Let `--methods a b c` take several words, which the parser of options does not know."""
    taken: list[str] = []
    names = -1  # of --methods so far; -1 outside
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
    for name in names:  # names of problems are there to be typed: they stay whole
        text = name in names[:2]
        table.add_column(name, justify="left" if text else "right", no_wrap=name == names[0])
    for row in found:
        table.add_row(*("∞" if cell is None else str(cell) for cell in row))
    Console().print(table)
    typer.echo("hpobench:FOLDER/MODEL is a problem too, if FOLDER has HPOBench's tables.")


@app.command(epilog="Example: scaml bench run branin svm --methods scaml gpbo --runs 4 --out runs")
def run(
    problems: Annotated[
        list[str], typer.Argument(metavar="PROBLEM", help="Names; see scaml bench list.")
    ],
    methods: Methods = None,
    meta_tasks: Annotated[
        int | None,
        typer.Option(metavar="INT", parser=integer, help="M; the paper's number by default."),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(metavar="INT", parser=integer, help="N_m; the paper's number by default."),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(metavar="INT", parser=integer, help="Of the test-task; the paper's by default."),
    ] = None,
    runs: Runs = _RUNS,
    jobs: Jobs = 1,
    out: Out = Path("runs"),
    quiet: Quiet = False,
) -> None:
    """Compare methods on problems, run by run; go on where a stopped command was.

    Within a run all methods get the same meta-data, test function and noise. Every finished run of a
    method is kept. The numbers do not depend on --jobs.
    """
    with needs_extra():
        from scaml.bench.results import check_same
        from scaml.bench.settings import Setting

        settings = [
            Setting.of(name, meta_tasks, points, evaluations) for name in dict.fromkeys(problems)
        ]
        check_same(out, settings)
        run_settings(out, settings, methods, runs, jobs, quiet)


@app.command(epilog="Example: scaml bench paper --figure synthetic --runs 16 --jobs 2 --out runs")
def paper(
    figure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="synthetic, ablation-tasks, ablation-points, hpo, illustration, or all of them.",
        ),
    ] = "all",
    methods: Methods = None,
    runs: Runs = _RUNS,
    jobs: Jobs = 1,
    out: Out = Path("runs"),
    quiet: Quiet = False,
) -> None:
    """Run what a figure of the paper shows, and draw it to OUT/figures.

    Goes on where a stopped command was. The paper has 128 runs, and 256 of the tables.
    """
    with needs_extra():
        from scaml.bench.settings import FIGURES, figure_settings

        settings = figure_settings(figure)
        if settings:
            run_settings(out, settings, methods, runs, jobs, quiet)
        for name in FIGURES[:-1] if figure == "all" else (figure,):
            _draw(out, name, out / _DRAWN, quiet)


@app.command(epilog="Example: scaml bench plot runs --figure hpo")
def plot(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the results.")],
    figure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="synthetic, ablation-tasks, ablation-points, appendix-tasks, appendix-points, hpo, "
            "illustration, choices (from scaml bench ablate), or regret: whatever there is, a panel "
            "a setting.",
        ),
    ] = "regret",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the figure; DIR/figures by default.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw results as PNG and PDF: mean regret and its standard error over evaluations, or ratios."""
    with needs_extra():
        _draw(results, figure, results / _DRAWN if out is None else out, quiet)


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
        _tell(damaged)
        rows = summary.summarize(frame, timings=timings, reference=reference)
    if style == "json":
        print_json([asdict(row) for row in rows])
    elif style == "text":
        console = Console()
        Console(width=None if console.is_terminal else 120).print(summary.text(rows))
    else:
        typer.echo(summary.csv(rows) if style == "csv" else summary.markdown(rows), nl=False)


@tables.command(epilog="Example: scaml bench tables build svm --jobs 2 --out tables")
def build(
    model: Annotated[str, typer.Argument(metavar="svm|lr|rf|xgb", help="Which table.")],
    jobs: Jobs = 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the table.")] = Path("tables"),
    quiet: Quiet = False,
) -> None:
    """Train a model on its whole grid and 20 or more real data sets, and write the table of errors.

    Takes 10 to 60 minutes on one core. Goes on where a stopped command was.
    """
    with needs_extra():
        from scaml.bench.building import build as build_table
        from scaml.bench.building import data_sets

        data_sets(model)  # refused before the folder is made
        with folder(out), progress(quiet) as report:
            report("Training", 0, len(data_sets(model)))
            path = build_table(model, out, n_jobs=jobs, progress=report)
    typer.echo(f"Table: {path}")


def run_settings(
    out: Path,
    settings: Sequence[Setting],
    methods: list[str] | None,
    runs: int,
    jobs: int,
    quiet: bool,
    *,
    tell: bool = True,
) -> None:
    """Run what is missing, show how far it is, and tell where the results are."""
    from scaml.bench.history import provenance
    from scaml.bench.runner import run_study
    from scaml.bench.settings import PAPER_METHODS

    names = list(dict.fromkeys(methods or PAPER_METHODS))
    source = provenance(["scaml", *sys.argv[1:]])
    with folder(out), shown(out, quiet) as report:
        study = run_study(out, settings, names, runs, n_jobs=jobs, progress=report, source=source)
    _tell(study.damaged)
    if study.failures:
        first = study.failures[0]
        raise BenchRunError(
            f"{len(study.failures)} of {study.total} runs failed, the first of {first.unit.method} "
            f"with {first.reason.splitlines()[0]} (see {first.log}); the others are kept, and the "
            "same command tries these again."
        )
    if tell:
        typer.echo(f"Results: {out}, {study.finished} runs; see scaml bench table {out}")


def _draw(results: Path, figure: str, out: Path, quiet: bool) -> None:
    with progress(quiet) as tell:
        from scaml.bench import figures, illustration
        from scaml.bench.results import read

        frame, damaged = (None, []) if figure == "illustration" else read(results)
        _tell(damaged)
        with folder(out):
            tell(f"Drawing {figure}", 0, None)
            paths = illustration.draw(out) if frame is None else figures.draw(frame, figure, out)
    for path in paths:
        typer.echo(f"Figure: {path}")


def _tell(damaged: Sequence[Path]) -> None:
    for path in damaged:
        typer.echo(f"scaml: a damaged file was set aside as {path}; run again for its runs.", err=True)


@contextmanager
def needs_extra() -> Iterator[None]:
    """What is imported inside may need packages of the extra `bench`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(
            f"scaml bench needs {error.name}, which is not installed; run pip install 'scaml[bench]'."
        ) from error
