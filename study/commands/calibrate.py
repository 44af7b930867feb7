"""`python -m study calibrate`: how often prediction intervals hold the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scaml.cli.bench import Methods, Runs
from scaml.cli.terminal import AsJson, Jobs, Quiet, print_json, progress, unwritable
from scaml.errors import SettingError
from study.commands.shared import RUNS, Problems, needs_group, print_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["calibrate"]

_METHODS = ("scaml", "scaml-paper")


def calibrate(
    problems: Problems = None,
    methods: Methods = None,
    runs: Runs = RUNS,
    jobs: Jobs = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV file of every run's coverage.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Count how often intervals of 50, 80 and 95 % hold the truth, on tables.

    Before any data, after 5 and after 20 random rows. The error is the mean over tables of the absolute
    difference between the share that is covered and the share that should be.
    """
    with needs_group():
        from scaml.bench.problems import PROBLEMS, TableProblem
        from study.calibration import calibrate as measure
        from study.calibration import coverage_error
        from study.contestants import contestant

        tables = [name for name, where in PROBLEMS.items() if isinstance(where, TableProblem)]
        names = list(dict.fromkeys(methods or _METHODS))
        if out is not None and not out.parent.is_dir():
            raise SettingError(f"--out is {str(out)!r}, in no folder; make {str(out.parent)!r} first.")
        with progress(quiet or as_json) as report:
            frame = measure(
                list(dict.fromkeys(problems or tables)),
                [contestant(name) for name in names],
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
        print_table(f"Coverage after {n} observations", shown.loc[names], "method")
    if out is not None:
        typer.echo(f"Coverage: {out}")


def _write(frame: pd.DataFrame, path: Path) -> None:
    from scaml.common.files import replacing

    try:
        with replacing(path) as draft:
            frame.to_csv(draft, index=False, float_format="%.6g")
    except OSError as error:
        raise unwritable(path, error, "give an --out file where you may write") from error
