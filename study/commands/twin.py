"""`python -m study twin`: how soon the one good past task is found."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scaml.cli.bench import Methods, Runs
from scaml.cli.terminal import (
    AsJson,
    Jobs,
    Quiet,
    check_free,
    integer,
    print_json,
    progress,
    unwritable,
)
from study.commands.shared import RUNS, needs_group, print_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["twin"]

_PROBLEMS, _METHODS, _EVALUATIONS = ("one-good",), ("scaml",), 30


def twin(
    problems: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROBLEM", help="one-good, the default, or one-good-99, or both."),
    ] = None,
    methods: Methods = None,
    evaluations: Annotated[
        int, typer.Option(metavar="INT", parser=integer, help="Of the test-task.")
    ] = _EVALUATIONS,
    runs: Runs = RUNS,
    jobs: Jobs = 1,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Parquet file of all probabilities.")
    ] = Path("results/twin.parquet"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Ask a method after every evaluation which past tasks matter, where one of many does.

    Prints the median number of evaluations until the good task has a probability of at least one half,
    and the share of runs in which it is the most probable one after 20 evaluations. For a model without
    probabilities, the shares of absolute weights stand in.
    """
    with needs_group():
        import pandas as pd

        from study.contestants import contestant
        from study.twin import find_twins, summary

        check_free(out, force=True)
        with progress(quiet or as_json) as report:
            frame = find_twins(
                list(dict.fromkeys(problems or _PROBLEMS)),
                [contestant(name) for name in dict.fromkeys(methods or _METHODS)],
                runs,
                evaluations,
                n_jobs=jobs,
                progress=lambda done, total: report("Optimizing", done, total),
            )
        found = summary(frame)
        _write(frame, out)
    if as_json:
        rows = found.to_dict("records")
        # JSON has no infinity.
        print_json(
            [row | {"until": None if math.isinf(row["until"]) else row["until"]} for row in rows]
        )
        return
    shown = pd.DataFrame(
        {
            "method": found["method"],
            "runs": found["runs"].map(str),
            "median evaluations until p ≥ 0.5": found["until"].map("{:g}".format),
            "most probable after 20": found["first"].map("{:.0%}".format),
        }
    )
    print_table("The good past task", shown.set_axis(found["problem"]), "problem")
    typer.echo(f"Probabilities: {out}")


def _write(frame: pd.DataFrame, path: Path) -> None:
    from scaml.common.files import replacing

    try:
        with replacing(path) as draft:
            frame.to_parquet(draft, index=False, compression="zstd")
    except OSError as error:
        raise unwritable(path, error, "give an --out file where you may write") from error
