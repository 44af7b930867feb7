"""What the pages promise of the default, from the results that are kept in the repository."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from scaml.bench import ablation
from scaml.bench.calibration import coverage_error
from scaml.bench.choices import choices
from scaml.bench.results import read
from scaml.bench.worth import Worth, compute

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return read(RESULTS / "choices")[0]


@pytest.fixture(scope="module")
def worth(frame: pd.DataFrame) -> Worth:
    return compute(frame)


def of_kind(table: pd.DataFrame, kind: str) -> pd.Series:
    """Ratios of the default on the problems of a kind."""
    return table.loc["scaml", [s for s in table.columns if ablation.kind_of(s[0]) == kind]]


def test_against_the_paper(frame: pd.DataFrame) -> None:
    table = ablation.ratios(frame, "scaml-paper", evaluations=30)
    tables, synthetic = of_kind(table, "tables"), of_kind(table, "synthetic")
    assert len(tables) == 9
    assert len(synthetic) == 3
    assert ablation.geometric_mean(tables) <= 0.8
    assert tables.max() <= 1.05
    assert synthetic.max() <= 1.05


def test_against_no_past(frame: pd.DataFrame) -> None:
    table = ablation.ratios(frame, "gpbo", evaluations=30)
    assert of_kind(table, "tables").max() < 1.0
    safety = of_kind(table, "safety")
    assert len(safety) == 9
    assert safety.max() <= 1.1
    assert safety["one-good"].item() < 1.0


def test_everything_has_enough_runs(frame: pd.DataFrame, worth: Worth) -> None:
    assert frame.groupby(["problem", "method"])["run"].nunique().min() >= 16
    assert set(choices()) <= set(worth.runs.index)


@pytest.mark.parametrize(
    "choice",
    [
        *(
            "normalization=union",
            "normalization=pooled",
            "normalization=level",
            "normalization=learned",
        ),
        *("weights=positive", "weights=signed", "weights=per-task", "weights=spike", "sqrt-beta=5"),
        *("hyperparameters=laplace", "warping=power", "acquisition=thompson"),
    ],
)
def test_choices_that_the_page_calls_worse(worth: Worth, choice: str) -> None:
    error = worth.errors.loc[choice, "tables"]
    assert worth.ratios.loc[choice, "tables"] - 2.0 * error > 1.0


def test_an_unrelated_past(frame: pd.DataFrame) -> None:
    unrelated = frame[frame["problem"] == "unrelated"]
    assert unrelated.groupby("method")["run"].nunique().min() >= 64
    against_gp = ablation.ratios(unrelated, "gpbo")["unrelated"].squeeze(axis=1)
    assert against_gp["scaml"] <= 1.1
    assert against_gp["gpbo-nei"] < 1.0


def test_noisy_expected_improvement_is_better_than_ucb(frame: pd.DataFrame) -> None:
    table, errors = (f(frame, "scaml-ucb") for f in (ablation.ratios, ablation.ratio_errors))
    seen = [s for s in table.columns if ablation.kind_of(s[0]) != "safety"]
    ratio = ablation.geometric_mean(table.loc["scaml", seen])
    error = ablation.geometric_mean_error(table.loc["scaml", seen], errors.loc["scaml", seen])
    assert ratio + 2.0 * error < 1.0
    assert of_kind(table, "safety").apply(float).mean() < 1.0


def test_noisy_expected_improvement_is_chosen_without_any_family(frame: pd.DataFrame) -> None:
    found = ablation.leave_one_family_out(ablation.ratios(frame, "scaml-ucb"))
    # The same function twice, in closed form and by Monte Carlo.
    assert set(found["chosen"]) <= {"scaml", "acquisition=lognei"}
    assert ablation.geometric_mean(found["ratio"].astype(float)) < 1.0


def test_intervals() -> None:
    frame = pd.read_csv(RESULTS / "coverage.csv")
    assert set(frame["observations"]) == {0, 5, 20}
    assert frame["problem"].nunique() == 9
    error = coverage_error(frame).groupby("method")["error"].mean()
    assert error["scaml"] < error["scaml-paper"]
