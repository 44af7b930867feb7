"""`python -m study ablate`: compare the default and its alternatives, one choice at a time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scaml.cli.bench import Methods, Out, Runs, run_and_store
from scaml.cli.terminal import AsJson, Jobs, Quiet, integer, print_json
from study.commands.shared import RUNS, Problems, command_words, needs_group, print_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ablate"]

_EVALUATIONS = 30
_REFERENCE = "scaml-ucb"
_BESIDE = ("scaml", _REFERENCE, "scaml-paper", "gpbo")


def ablate(
    problems: Problems = None,
    methods: Methods = None,
    evaluations: Annotated[
        int, typer.Option(metavar="INT", parser=integer, help="Of the test-task.")
    ] = _EVALUATIONS,
    runs: Runs = RUNS,
    jobs: Jobs = 1,
    out: Out = Path("choices"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare the default and its alternatives with scaml-ucb, one choice at a time.

    scaml-ucb is the former default with the paper's acquisition function. Prints ratios of cumulative
    regret to that of scaml-ucb: below 1 an alternative is better. The name of a choice is its factor
    and value, as in kernel=matern52; a combination is written as in kernel=matern52+sqrt-beta=2. All
    single choices are run by default. Continues a command that was stopped.
    """
    with needs_group():
        from scaml.bench.problems import PROBLEMS
        from scaml.bench.results import check_same, read
        from scaml.bench.settings import Setting
        from study import regret_ratios
        from study.choices import choices
        from study.contestants import contestant

        names = list(dict.fromkeys([*_BESIDE, *(methods or choices())]))
        settings = [
            Setting.of(name, evaluations=evaluations) for name in dict.fromkeys(problems or PROBLEMS)
        ]
        check_same(out, settings)
        chosen = [contestant(name) for name in names]
        silent, words = quiet or as_json, command_words()
        finished = run_and_store(out, settings, chosen, runs, jobs=jobs, quiet=silent, command=words)
        frame, _ = read(out)
        table = regret_ratios.ratios(frame, _REFERENCE)
        overview = regret_ratios.overview(table).loc[names]
        errors = regret_ratios.overview_errors(table, regret_ratios.ratio_errors(frame, _REFERENCE))
        without = regret_ratios.leave_one_family_out(table)
    if as_json:
        print_json(_as_json(overview, errors, without))
        return
    typer.echo(f"Results: {out}, {finished} runs; see scaml bench table {out}")
    for kind in errors:
        overview[kind] = [
            f"{value:.2f}" if math.isnan(error) else f"{value:.2f} ± {error:.2f}"
            for value, error in zip(overview[kind], errors.loc[names, kind], strict=True)
        ]
    print_table("Ratio of cumulative regret to scaml-ucb, ± its standard error", overview, "method")
    print_table("The best choice without a family, and its ratio there", without, "family")


def _as_json(
    overview: pd.DataFrame, errors: pd.DataFrame, without: pd.DataFrame
) -> dict[str, list[dict[str, object]]]:
    return {
        "ratios": [
            {"method": method}
            | {key: _number(value) for key, value in row.items()}
            | {f"{kind} error": _number(error) for kind, error in errors.loc[method].items()}
            for method, row in overview.iterrows()
        ],
        "without": [{"family": family} | row.to_dict() for family, row in without.iterrows()],
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
