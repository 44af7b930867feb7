"""`python -m study more-past`: regret over the number of past tasks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scaml.cli.bench import Methods, Out, Runs, run_and_store, tell_damaged
from scaml.cli.terminal import AsJson, Jobs, Quiet, integer, print_json
from study.commands.shared import RUNS, command_words, needs_group, print_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["more_past"]

_METHODS, _EVALUATIONS = ("scaml",), 30


def more_past(
    problems: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROBLEM", help="svm, lr, rf, xgb and two-groups by default."),
    ] = None,
    methods: Methods = None,
    evaluations: Annotated[
        int, typer.Option(metavar="INT", parser=integer, help="Of the test-task.")
    ] = _EVALUATIONS,
    runs: Runs = RUNS,
    jobs: Jobs = 1,
    out: Out = Path("results/more-past"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare regrets with 2, 4, 9 and all past tasks, of which fewer are the first of more.

    Prints the mean cumulative regret and its change from the number before, each with its standard
    error. More past should lower the regret, or leave it within one standard error. Continues a command
    that was stopped.
    """
    with needs_group():
        from scaml.bench.results import read
        from study.contestants import contestant
        from study.more_past import PROBLEMS, settings_of, summary

        settings = settings_of(problems or PROBLEMS, evaluations)
        chosen = [contestant(name) for name in dict.fromkeys(methods or _METHODS)]
        silent, words = quiet or as_json, command_words()
        finished = run_and_store(out, settings, chosen, runs, jobs=jobs, quiet=silent, command=words)
        frame, damaged = read(out)
        tell_damaged(damaged)
        found = summary(frame, settings, [method.name for method in chosen])
    if as_json:
        print_json([_without_nan(row) for row in found.to_dict("records")])
        return
    typer.echo(f"Results: {out}, {finished} runs; see scaml bench table {out}")
    for (name, method), part in found.groupby(["problem", "method"], sort=False):
        print_table(f"{name}, {method}: cumulative regret", _shown(part), "past tasks")


def _shown(part: pd.DataFrame) -> pd.DataFrame:
    rows = part.set_index("meta_tasks").to_dict("index")
    columns = {number: _cells(row) for number, row in rows.items()}
    return type(part).from_dict(columns, orient="index")


def _cells(row: dict[Any, Any]) -> dict[str, str]:
    change, error = row["change"], row["change_error"]
    if math.isnan(change) or math.isnan(error):
        verdict = "nan"
    elif abs(change) <= error:
        verdict = "within one error"
    else:
        verdict = "falls" if change < 0 else "grows"
    return {
        "runs": str(row["runs"]),
        "regret": _with_error(row["regret"], row["error"]),
        "change": _with_error(change, error, "+"),
        "regret with more past": verdict,
    }


def _with_error(value: float, error: float, sign: str = "") -> str:
    if math.isnan(error):
        return f"{value:{sign}.3f}" if not math.isnan(value) else "nan"
    return f"{value:{sign}.3f} ± {error:.3f}"


def _without_nan(row: dict[Any, Any]) -> dict[Any, Any]:
    """JSON has no NaN."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in row.items()
    }
