"""Ratios, their geometric means, and the choice that is made without a family: against brute force."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from scaml import SettingError
from scaml.bench.problems import PROBLEMS
from study.regret_ratios import (
    family_of,
    geometric_mean,
    geometric_mean_error,
    kind_of,
    leave_one_family_out,
    overview,
    overview_errors,
    ratio_errors,
    ratios,
)

PROBLEM_NAMES = ("svm", "fcnet-slice", "fcnet-naval", "branin", "mirrored")
METHODS = ("scaml", "a", "b")


def regret(problem: str, method: str, run: int, step: int) -> float:
    place = PROBLEM_NAMES.index(problem) + 1
    return place * (1.0 + METHODS.index(method)) * (1.0 + 0.3 * run) / (step + METHODS.index(method))


def results(runs: int = 3, steps: int = 4) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "problem": problem,
                "meta_tasks": 8,
                "points": 32,
                "method": method,
                "run": run,
                "step": step,
                "regret": regret(problem, method, run, step),
                "span": 2.0 + run if problem in ("svm", "fcnet-slice", "fcnet-naval") else None,
            }
            for problem, method, run, step in product(
                PROBLEM_NAMES, METHODS, range(runs), range(1, steps + 1)
            )
        ]
    )


def by_hand(problem: str, method: str, runs: int, steps: int) -> float:
    def mean(name: str) -> float:
        spans = [2.0 + run if problem in PROBLEM_NAMES[:3] else 1.0 for run in range(runs)]
        sums = [
            sum(regret(problem, name, run, step) for step in range(1, steps + 1)) / spans[run]
            for run in range(runs)
        ]
        return float(np.mean(sums))

    return mean(method) / mean("scaml")


@pytest.mark.parametrize("steps", [2, 4])
def test_ratios_are_those_of_sums_by_hand(steps: int) -> None:
    found = ratios(results().sample(frac=1.0, random_state=1), "scaml", steps)
    assert set(found.index) == set(METHODS)
    for problem, method in product(PROBLEM_NAMES, METHODS):
        expected = by_hand(problem, method, 3, steps)
        assert found.loc[method, (problem, 8, 32)] == pytest.approx(expected, rel=1e-12)


def test_only_runs_that_both_have_count() -> None:
    frame = results()
    missing = (frame["method"] == "a") & (frame["run"] == 2) & (frame["problem"] == "svm")
    found = ratios(frame[~missing], "scaml")
    assert found.loc["a", ("svm", 8, 32)] == pytest.approx(by_hand("svm", "a", 2, 4), rel=1e-12)
    assert found.loc["b", ("svm", 8, 32)] == pytest.approx(by_hand("svm", "b", 3, 4), rel=1e-12)
    gone = ratios(frame[(frame["method"] != "a") | (frame["problem"] != "svm")], "scaml")
    assert math.isnan(gone.loc["a", ("svm", 8, 32)])


def test_a_reference_that_is_not_there() -> None:
    with pytest.raises(SettingError, match=r"no method 'gpbo'; compare with one of a, b, scaml\.$"):
        ratios(results(), "gpbo")


def test_geometric_mean() -> None:
    assert geometric_mean(pd.Series([0.5, 2.0, math.nan])) == pytest.approx(1.0)
    assert math.isnan(geometric_mean(pd.Series([math.nan])))


def test_error_of_a_geometric_mean_is_that_of_noisy_ratios() -> None:
    rng = np.random.default_rng(0)
    values, errors = pd.Series([0.5, 1.1, 2.0]), pd.Series([0.01, 0.03, 0.02])
    noisy = values.to_numpy() + errors.to_numpy() * rng.standard_normal((100_000, 3))
    spread = np.exp(np.log(noisy).mean(axis=1)).std()
    assert geometric_mean_error(values, errors) == pytest.approx(spread, rel=0.01)
    missing = pd.Series([0.5, 1.1, math.nan])
    assert geometric_mean_error(missing, errors) == geometric_mean_error(values[:2], errors[:2])
    assert math.isnan(geometric_mean_error(missing[2:], errors))
    # What the mean leaves out has no part in its error.
    assert geometric_mean_error(missing.fillna(0.0), errors) == geometric_mean_error(missing, errors)


def test_the_overview_has_errors() -> None:
    frame = results()
    # As if "a" had other luck in every run: else its ratios are exact.
    frame.loc[(frame["method"] == "a") & (frame["run"] == 1), "regret"] *= 1.2
    table, errors = ratios(frame, "scaml"), ratio_errors(frame, "scaml")
    found = overview_errors(table, errors)
    assert list(found) == ["tables", "synthetic", "safety"]
    assert found.loc["a", "synthetic"] == pytest.approx(errors.loc["a", ("branin", 8, 32)])
    tables = [("svm", 8, 32), ("fcnet-slice", 8, 32), ("fcnet-naval", 8, 32)]
    expected = geometric_mean_error(table.loc["a", tables], errors.loc["a", tables])
    assert found.loc["a", "tables"] == pytest.approx(expected) != 0.0


def test_every_problem_has_a_kind_and_a_family() -> None:
    assert {kind_of(name) for name in PROBLEMS} == {"tables", "synthetic", "safety"}
    assert family_of("fcnet-slice") == family_of("fcnet-naval") != family_of("svm")
    assert family_of("hartmann3") == family_of("hartmann6")
    assert family_of("mirrored") == family_of("units") == "safety"


def columns(*problems: str) -> pd.MultiIndex:
    return pd.MultiIndex.from_tuples([(problem, 8, 32) for problem in problems])


def test_a_family_is_shown_what_was_chosen_without_it() -> None:
    # "b" is best only because of svm: without svm, "a" is chosen, and worth 2 there.
    table = pd.DataFrame(
        [[1.0, 1.0, 1.0], [2.0, 0.9, 0.8], [0.1, 1.1, 1.2]],
        index=["scaml", "a", "b"],
        columns=columns("svm", "lr", "branin"),
    )
    found = leave_one_family_out(table)
    assert found.loc["svm"].to_dict() == {"chosen": "a", "ratio": pytest.approx(2.0)}
    assert found.loc["lr"].to_dict() == {"chosen": "b", "ratio": pytest.approx(1.1)}
    assert found.loc["branin"].to_dict() == {"chosen": "b", "ratio": pytest.approx(1.2)}


def test_problems_of_one_family_leave_together() -> None:
    table = pd.DataFrame(
        [[1.0, 1.0, 1.0], [0.1, 0.1, 1.1]],
        index=["scaml", "a"],
        columns=columns("fcnet-slice", "fcnet-naval", "svm"),
    )
    found = leave_one_family_out(table)
    assert found.loc["fcnet"].to_dict() == {"chosen": "scaml", "ratio": pytest.approx(1.0)}


def test_methods_with_gaps_are_not_chosen() -> None:
    table = pd.DataFrame(
        [[1.0, 1.0], [0.1, math.nan]], index=["scaml", "a"], columns=columns("svm", "lr")
    )
    assert set(leave_one_family_out(table)["chosen"]) == {"scaml"}


def test_the_overview_has_a_column_a_kind_and_the_worst_table() -> None:
    found = overview(ratios(results(), "scaml"))
    assert list(found.columns) == ["tables", "synthetic", "safety", "worst table"]
    three = [by_hand(problem, "b", 3, 4) for problem in PROBLEM_NAMES[:3]]
    assert found.loc["b", "tables"] == pytest.approx(float(np.exp(np.mean(np.log(three)))))
    assert found.loc["b", "worst table"] == pytest.approx(max(three))
    assert (found.loc["scaml"] == 1.0).all()


def test_errors_of_ratios_are_those_of_the_bootstrap() -> None:
    """Runs drawn anew, with the regrets of both methods in a run kept together."""
    rng = np.random.default_rng(0)
    ours, theirs = rng.gamma(4.0, 1.0, 40), rng.gamma(4.0, 1.0, 40)
    frame = pd.DataFrame(
        [
            {
                "problem": "branin",
                "meta_tasks": 8,
                "points": 32,
                "method": method,
                "run": run,
                "step": 1,
                "regret": value,
                "span": None,
            }
            for method, values in (("a", ours), ("scaml", theirs))
            for run, value in enumerate(values)
        ]
    )
    drawn = rng.integers(40, size=(4000, 40))
    bootstrap = (ours[drawn].mean(1) / theirs[drawn].mean(1)).std()
    found = ratio_errors(frame, "scaml").loc["a", ("branin", 8, 32)]
    assert found == pytest.approx(bootstrap, rel=0.1)
    assert ratio_errors(frame, "scaml").loc["scaml", ("branin", 8, 32)] == 0.0
