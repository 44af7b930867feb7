"""What the documentation says about the default and the former one, checked with the results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from scaml.bench.results import read
from study import regret_ratios
from study.calibration import coverage_error
from study.choices import choices
from study.choices_figure import ChoiceRatios, compute

RESULTS = Path(__file__).parents[2] / "results"
DEFAULT, EXPLAINED, FORMER = "scaml", "scaml-explained", "scaml-shared"


@pytest.fixture(scope="module")
def everything() -> pd.DataFrame:
    return read(RESULTS / "choices")[0]


@pytest.fixture(scope="module")
def frame(everything: pd.DataFrame) -> pd.DataFrame:
    """The study of single choices: its problems, without what came after it."""
    there = everything.loc[everything["method"] == "scaml-ucb", "problem"].unique()
    later = everything["method"].isin([DEFAULT, EXPLAINED])
    return everything[everything["problem"].isin(there) & ~later]


@pytest.fixture(scope="module")
def found(frame: pd.DataFrame) -> ChoiceRatios:
    return compute(frame)


def of_kind(table: pd.DataFrame, kind: str, method: str = FORMER) -> pd.Series:
    """Ratios of a method on the problems of a kind."""
    return table.loc[method, [s for s in table.columns if regret_ratios.kind_of(s[0]) == kind]]


def test_the_default_against_the_former_one(everything: pd.DataFrame) -> None:
    table = regret_ratios.ratios(everything, FORMER)
    tables, synthetic = (of_kind(table, kind, DEFAULT) for kind in ("tables", "synthetic"))
    assert len(tables) == 9
    assert regret_ratios.geometric_mean(tables) <= 0.85
    assert tables.max() <= 1.02
    assert synthetic.max() <= 1.1
    safety = of_kind(table, "safety", DEFAULT)
    assert len(safety) == 13
    assert regret_ratios.geometric_mean(safety) < 0.92
    # A shifted past cannot be told from an unrelated one.
    assert safety.drop("shifted", level=0).max() <= 1.03
    assert 1.1 < safety["shifted"].item() < 1.2


def test_the_default_against_a_plain_gp_with_its_acquisition_function(
    everything: pd.DataFrame,
) -> None:
    safety = everything[everything["problem"].map(regret_ratios.kind_of) == "safety"]
    assert safety[safety["method"] == DEFAULT].groupby("problem")["run"].nunique().min() >= 64
    ratio = regret_ratios.ratios(everything, "gpbo-nei").loc[DEFAULT]
    assert ratio["one-good"].item() <= 0.7
    assert ratio["two-groups"].item() <= 0.25
    assert 1.0 < ratio["unrelated"].item() <= 1.15  # the only one where the past costs evaluations
    assert ratio.drop("unrelated", level=0).max() < 1.0


def test_against_the_paper(frame: pd.DataFrame) -> None:
    table = regret_ratios.ratios(frame, "scaml-paper", evaluations=30)
    tables, synthetic = of_kind(table, "tables"), of_kind(table, "synthetic")
    assert len(tables) == 9
    assert len(synthetic) == 3
    assert regret_ratios.geometric_mean(tables) <= 0.8
    assert tables.max() <= 1.05
    assert synthetic.max() <= 1.05


def test_against_no_past(frame: pd.DataFrame) -> None:
    table = regret_ratios.ratios(frame, "gpbo", evaluations=30)
    assert of_kind(table, "tables").max() < 1.0
    safety = of_kind(table, "safety")
    assert len(safety) == 9
    assert safety.max() <= 1.1
    assert safety["one-good"].item() < 1.0


def test_everything_has_enough_runs(frame: pd.DataFrame, found: ChoiceRatios) -> None:
    assert frame.groupby(["problem", "method"])["run"].nunique().min() >= 16
    assert set(choices()) <= set(found.runs.index)


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
def test_choices_that_the_page_calls_worse(found: ChoiceRatios, choice: str) -> None:
    error = found.errors.loc[choice, "tables"]
    assert found.ratios.loc[choice, "tables"] - 2.0 * error > 1.0


def test_an_unrelated_past(frame: pd.DataFrame) -> None:
    unrelated = frame[frame["problem"] == "unrelated"]
    assert unrelated.groupby("method")["run"].nunique().min() >= 64
    one_good = frame[(frame["problem"] == "one-good") & frame["method"].isin([FORMER, "gpbo"])]
    assert one_good.groupby("method")["run"].nunique().min() >= 64
    against_gp = regret_ratios.ratios(unrelated, "gpbo")["unrelated"].squeeze(axis=1)
    assert against_gp[FORMER] <= 1.1
    assert against_gp["gpbo-nei"] < 1.0


def test_noisy_expected_improvement_is_better_than_ucb(frame: pd.DataFrame) -> None:
    table, errors = (f(frame, "scaml-ucb") for f in (regret_ratios.ratios, regret_ratios.ratio_errors))
    seen = [s for s in table.columns if regret_ratios.kind_of(s[0]) != "safety"]
    ratio = regret_ratios.geometric_mean(table.loc[FORMER, seen])
    error = regret_ratios.geometric_mean_error(table.loc[FORMER, seen], errors.loc[FORMER, seen])
    assert ratio + 2.0 * error < 1.0
    assert regret_ratios.geometric_mean(of_kind(table, "safety")) < 1.0


MATERN = "acquisition=nei+kernel=matern52"


@pytest.mark.parametrize("wrong_past", [True, False])
def test_noisy_expected_improvement_is_chosen_without_any_family(
    frame: pd.DataFrame, wrong_past: bool
) -> None:
    kept = frame if wrong_past else frame[frame["problem"].map(regret_ratios.kind_of) != "safety"]
    found = regret_ratios.leave_one_family_out(regret_ratios.ratios(kept, "scaml-ucb"))
    assert set(found["chosen"]) <= {FORMER, MATERN}
    assert regret_ratios.geometric_mean(found["ratio"].astype(float)) < 0.95


@pytest.mark.parametrize("wrong_past", [True, False])
def test_it_is_chosen_among_those_with_the_kernel_of_the_default(
    frame: pd.DataFrame, wrong_past: bool
) -> None:
    kept = frame[~frame["method"].str.contains("matern52")]
    if not wrong_past:
        kept = kept[kept["problem"].map(regret_ratios.kind_of) != "safety"]
    found = regret_ratios.leave_one_family_out(regret_ratios.ratios(kept, "scaml-ucb"))
    others = found[~found["chosen"].isin([FORMER, "acquisition=lognei"])]
    assert list(others.index) == ([] if wrong_past else ["hartmann"])
    assert (others["ratio"] > 1.0).all()
    assert regret_ratios.geometric_mean(found["ratio"].astype(float)) < 0.96


def test_a_rougher_kernel_is_better_on_tables_alone(frame: pd.DataFrame) -> None:
    table = regret_ratios.ratios(frame, FORMER)
    errors = regret_ratios.overview_errors(table, regret_ratios.ratio_errors(frame, FORMER)).loc[MATERN]
    found = regret_ratios.overview(table).loc[MATERN]
    assert found["tables"] + 2.0 * errors["tables"] < 1.0
    assert found["worst table"] < 1.05
    assert found["synthetic"] > 1.0


def test_closed_form_and_monte_carlo_are_even(frame: pd.DataFrame) -> None:
    table = regret_ratios.ratios(frame, FORMER)
    errors = regret_ratios.overview_errors(table, regret_ratios.ratio_errors(frame, FORMER))
    found = (regret_ratios.overview(table) - 1.0).loc["acquisition=lognei", list(errors)].abs()
    assert (found < 2.0 * errors.loc["acquisition=lognei"]).all()


def test_intervals() -> None:
    frame = pd.read_csv(RESULTS / "coverage.csv")
    assert set(frame["observations"]) == {0, 5, 20}
    assert frame["problem"].nunique() == 9
    error = coverage_error(frame).groupby("method")["error"].mean()
    assert error[FORMER] < error["scaml-paper"]


def test_explanations_help_with_a_wrong_past_and_lose_on_tables(everything: pd.DataFrame) -> None:
    """What the page says of `weights="explained"`, and why it is not always the default."""
    shared = regret_ratios.ratios(everything, FORMER).loc[EXPLAINED]
    for family in ("unrelated", "three-points", "outliers", "one-good"):
        assert shared[family].item() < 1.0
    matern = regret_ratios.ratios(everything, MATERN).loc[EXPLAINED]
    tables = [s for s in matern.index if regret_ratios.kind_of(s[0]) == "tables"]
    assert len(tables) == 9
    assert regret_ratios.geometric_mean(matern[tables]) > 1.0
