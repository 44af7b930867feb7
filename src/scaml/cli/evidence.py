"""`scaml bench ablate` and `calibrate`: the evidence behind the defaults."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from scaml.cli.bench import Methods, Out, Runs, needs_extra, run_settings
from scaml.cli.terminal import AsJson, Jobs, Quiet, integer, print_json, progress, unwritable
from scaml.errors import SettingError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ablate", "calibrate"]

_RUNS, _EVALUATIONS = 16, 30
_DEFAULT, _REFERENCE = "scaml", "scaml-ucb"
_BESIDE = (_DEFAULT, _REFERENCE, "scaml-paper", "gpbo")
Problems = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PROBLEM]...", help="Names; see scaml bench list. All by default."),
]


def ablate(
    problems: Problems = None,
    methods: Methods = None,
    evaluations: Annotated[
        int, typer.Option(metavar="INT", parser=integer, help="Of the test-task.")
    ] = _EVALUATIONS,
    runs: Runs = _RUNS,
    jobs: Jobs = 1,
    out: Out = Path("choices"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare the default and its alternatives with scaml-ucb, one choice at a time.

    scaml-ucb is the default with the paper's acquisition function. Prints ratios of cumulative regret
    to its own: below 1 an alternative is better. A choice is named by its factor and value, as in
    kernel=matern52; several together as in kernel=matern52+sqrt-beta=2; all single ones by default.
    Goes on where a stopped command was.
    """
    with needs_extra():
        from scaml.bench import ablation
        from scaml.bench.choices import choices
        from scaml.bench.problems import PROBLEMS
        from scaml.bench.results import check_same, read
        from scaml.bench.settings import Setting

        names = list(dict.fromkeys([*_BESIDE, *(methods or choices())]))
        chosen = dict.fromkeys(problems or PROBLEMS)
        settings = [Setting.of(name, evaluations=evaluations) for name in chosen]
        check_same(out, settings)
        run_settings(out, settings, names, runs, jobs, quiet or as_json, tell=not as_json)
        frame, _ = read(out)
        table = ablation.ratios(frame, _REFERENCE)
        overview = ablation.overview(table).loc[names]
        errors = ablation.overview_errors(table, ablation.ratio_errors(frame, _REFERENCE))
        without = ablation.leave_one_family_out(table)
    if as_json:
        print_json(
            {
                "ratios": [
                    {"method": method}
                    | {key: _number(value) for key, value in row.items()}
                    | {f"{kind} error": _number(error) for kind, error in errors.loc[method].items()}
                    for method, row in overview.iterrows()
                ],
                "without": [{"family": family} | row.to_dict() for family, row in without.iterrows()],
            }
        )
        return
    for kind in errors:
        overview[kind] = [
            f"{value:.2f}" if math.isnan(error) else f"{value:.2f} ± {error:.2f}"
            for value, error in zip(overview[kind], errors.loc[names, kind], strict=True)
        ]
    _print("Ratio of cumulative regret to that of scaml-ucb, ± its standard error", overview, "method")
    _print("The best choice without a family, and its ratio there", without, "family")


def calibrate(
    problems: Problems = None,
    methods: Methods = None,
    runs: Runs = _RUNS,
    jobs: Jobs = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV file of every run's coverage.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Count how often intervals of 50, 80 and 95 % hold the truth, on tables.

    Before any data, after 5 and after 20 random rows. The error is the mean over tables of the distance
    between what is covered and what should be.
    """
    with needs_extra():
        from scaml.bench.calibration import calibrate as measure
        from scaml.bench.calibration import coverage_error
        from scaml.bench.problems import PROBLEMS, TableProblem

        tables = [name for name, where in PROBLEMS.items() if isinstance(where, TableProblem)]
        names = methods or [_DEFAULT, "scaml-paper"]
        if out is not None and not out.parent.is_dir():
            raise SettingError(f"--out is {str(out)!r}, in no folder; make {str(out.parent)!r} first.")
        with progress(quiet or as_json) as report:
            frame = measure(
                list(dict.fromkeys(problems or tables)),
                list(dict.fromkeys(names)),
                runs,
                n_jobs=jobs,
                progress=lambda done, total: report("Conditioning", done, total),
            )
        if out is not None:
            _write(frame, out)
        found = coverage_error(frame)
    if as_json:
        print_json(found.to_dict("records"))
        return
    for n, part in found.groupby("observations"):
        shown = part.pivot(index="method", columns="level", values=["covered", "error"])
        shown.columns = [f"{what} {100 * level:.0f} %" for what, level in shown.columns]
        _print(f"Coverage after {n} observations", shown.loc[list(dict.fromkeys(names))], "method")
    if out is not None:
        typer.echo(f"Coverage: {out}")


def _write(frame: pd.DataFrame, path: Path) -> None:
    from scaml.common.files import replacing

    try:
        with replacing(path) as draft:
            frame.to_csv(draft, index=False, float_format="%.6g")
    except OSError as error:
        raise unwritable(path, error, "give an --out file where you may write") from error


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _print(title: str, frame: pd.DataFrame, index: str) -> None:
    table = Table(title=title)
    table.add_column(index, no_wrap=True)
    for column in frame.columns:
        table.add_column(str(column), justify="right")
    for name, row in frame.iterrows():
        cells = [value if isinstance(value, str) else f"{value:.2f}" for value in row]
        table.add_row(str(name), *("–" if cell == "nan" else cell for cell in cells))
    console = Console()
    Console(width=None if console.is_terminal else 120).print(table)
