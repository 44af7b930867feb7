"""Summaries of results, against loops over plain records."""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, sem

from scaml import SettingError
from scaml.bench import summary
from tests.bench.summary.cases import BRANIN, SVM, one_step, records, row_of, shuffled, study


def by_run(
    rows: list[dict[str, Any]], problem: str, method: str, column: str
) -> dict[int, list[float]]:
    """The values of a column in the order of steps, by run, found in the slowest way."""
    found: dict[int, dict[int, float]] = {}
    for row in rows:
        if (row["problem"], row["method"]) == (problem, method):
            found.setdefault(row["run"], {})[row["step"]] = row[column]
    return {run: [steps[i + 1] for i in range(len(steps))] for run, steps in sorted(found.items())}


@pytest.mark.parametrize("reference", ["scaml", "gpbo", "missing"])
def test_rows_agree_with_loops_over_the_records(reference: str) -> None:
    data = study()
    rows = summary.summarize(shuffled(data), reference=reference)
    for row in rows:
        regrets = by_run(data, row.problem, row.method, "regret")
        sums = {run: sum(values) for run, values in regrets.items()}
        assert row.runs == len(sums)
        assert row.evaluations == {len(values) for values in regrets.values()}.pop()
        assert row.cumulative == pytest.approx(np.mean(list(sums.values())), rel=1e-14)
        last = [values[-1] for values in regrets.values()]
        assert row.final == pytest.approx(np.mean(last), rel=1e-14)
        for error, values in ((row.cumulative_se, list(sums.values())), (row.final_se, last)):
            assert error == (pytest.approx(sem(values), rel=1e-12) if len(values) > 1 else None)

        other = by_run(data, row.problem, reference, "regret") if row.method != reference else {}
        pairs = [sums[run] - sum(other[run]) for run in sums if run in other]
        assert (row.reference, row.pairs) == (reference, len(pairs))
        assert row.difference == (pytest.approx(np.mean(pairs), rel=1e-12) if pairs else None)
        assert row.difference_se == (pytest.approx(sem(pairs), rel=1e-12) if len(pairs) > 1 else None)
    assert {row.pairs for row in rows} == {"scaml": {0, 1, 2, 3}, "gpbo": {0, 1, 2, 3}}.get(
        reference, {0}
    )


def test_ranks_agree_with_scipy() -> None:
    data = study()
    rows = summary.summarize(shuffled(data))
    for problem, shared in (("branin", [3]), ("svm", [0, 1, 2])):
        own = [row for row in rows if row.problem == problem]
        assert [row.rank for row in own] == rankdata([row.cumulative for row in own]).tolist()
        sums = [by_run(data, problem, row.method, "regret") for row in own]
        within = [rankdata([sum(runs[run]) for runs in sums]) for run in shared]
        assert [row.mean_rank for row in own] == pytest.approx(np.mean(within, axis=0).tolist())


def test_ties_share_their_ranks() -> None:
    rows = one_step({"scaml": [1.0, 3.0], "gpbo": [3.0, 1.0], "rgpe": [1.0, 9.0], "sgpt": [1.0, 1.0]})
    assert [row.rank for row in rows] == [2.5, 2.5, 4.0, 1.0]
    assert [row.mean_rank for row in rows] == [2.5, 2.75, 3.0, 1.75]


def test_there_is_no_mean_rank_without_a_shared_run() -> None:
    rows = summary.summarize(pd.DataFrame(records(BRANIN, "a", [0, 1]) + records(BRANIN, "b", [2])))
    assert [(row.mean_rank, row.rank > 0) for row in rows] == [(None, True)] * 2


def test_settings_are_sorted_and_known_methods_come_first() -> None:
    data = [row for setting in (("branin", 32, 8), BRANIN, SVM) for row in records(setting, "a", [0])]
    data += [row for name in ("mtgp", "b", "random", "scaml-paper") for row in records(SVM, name, [0])]
    found = [(row.problem, row.meta_tasks, row.method) for row in summary.summarize(shuffled(data))]
    expected = [("svm", 19, name) for name in ("scaml-paper", "mtgp", "random", "a", "b")]
    assert found == [("branin", 8, "a"), ("branin", 32, "a"), *expected]


def test_times_agree_with_loops_over_the_records() -> None:
    data = study()
    for row in summary.summarize(shuffled(data), timings=True):
        seconds = by_run(data, row.problem, row.method, "seconds")
        fits = [run[0] for run in by_run(data, row.problem, row.method, "meta_fit_seconds").values()]
        steps = [second for run in seconds.values() for second in run]
        assert row.step_seconds == statistics.median(steps)
        assert row.meta_fit_seconds == statistics.median(fits)
        assert row.core_seconds == pytest.approx(sum(steps) + sum(fits), rel=1e-14)
    plain = summary.summarize(shuffled(data))
    assert {(row.step_seconds, row.meta_fit_seconds, row.core_seconds) for row in plain} == {
        (None,) * 3
    }


# Numbers of very different sizes, whose sums depend on the order of the terms if that is not fixed.
regret_values = st.one_of(st.floats(0, 1e-9), st.floats(0, 1), st.floats(1e9, 1e15))


@settings(max_examples=30)
@given(
    values=st.lists(st.lists(regret_values, min_size=4, max_size=4), min_size=6, max_size=6),
    order=st.permutations(range(24)),
)
def test_the_order_of_the_results_does_not_matter(values: list[list[float]], order: list[int]) -> None:
    data = [row for name in ("scaml", "b") for row in records(BRANIN, name, [0, 1, 2], 4)]
    data = [
        {**row, "regret": regret, "seconds": regret}
        for row, regret in zip(data, [value for run in values for value in run], strict=True)
    ]
    rows = summary.summarize(pd.DataFrame(data), timings=True)
    again = summary.summarize(pd.DataFrame([data[i] for i in order]), timings=True)
    assert summary.csv(again) == summary.csv(rows)
    assert again == rows


def test_categories_and_indices_do_not_matter() -> None:
    frame = pd.DataFrame(study())
    backwards = pd.CategoricalDtype(["xgb", "svm", "branin"])
    other = frame.astype({"problem": backwards, "method": "category"}).set_index("run", drop=False)
    assert summary.summarize(other.rename_axis(None)) == summary.summarize(frame)


def test_sums_are_exact() -> None:
    frame = pd.DataFrame(records(BRANIN, "scaml", [0], 3)).assign(regret=[1e16, 1.0, 1.0])
    assert 1e16 + 1.0 + 1.0 == 1e16
    assert summary.summarize(frame)[0].cumulative == 1e16 + 2.0


def test_equal_runs_have_no_error() -> None:
    assert row_of(one_step({"scaml": [0.1] * 3}), "scaml").cumulative_se == 0.0


def test_entries_are_numbers_of_python() -> None:
    frame = pd.DataFrame(study()).assign(regret=1)
    for row in summary.summarize(frame, timings=True):
        assert {type(value) for value in asdict(row).values()} <= {str, int, float, type(None)}
        assert type(row.final) is float


def test_no_results_give_no_rows() -> None:
    assert summary.summarize(pd.DataFrame()) == []


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda frame: frame.drop(columns=["step", "regret"]), "no column step, regret"),
        (
            lambda frame: frame.assign(regret=frame.regret.where(frame.run > 0)),
            "nan as regret in 10 of 40",
        ),
        (lambda frame: frame.assign(regret=math.inf), "inf as regret in 40 of 40"),
        (lambda frame: frame.assign(method=None), "as method in 40 of 40"),
        (
            lambda frame: frame.drop(7),
            r"Run 1 of 'scaml' on branin \(M = 8, N_m = 32\) has 4 rows .* 1 to 5",
        ),
        (lambda frame: frame[frame.step > 1], "Run 0 of 'gpbo' .* has 4 rows"),
        (lambda frame: pd.concat([frame, frame[:1]]), "Run 0 of 'scaml' .* has 6 rows"),
        (lambda frame: frame.replace({"step": {2: 1}}), "Run 0 of 'gpbo' .* has 5 rows"),
    ],
)
def test_results_that_cannot_be_summarized_are_refused(damage: Any, words: str) -> None:
    data = [row for name in ("scaml", "gpbo") for row in records(BRANIN, name, [0, 1, 2, 3])]
    with pytest.raises(SettingError, match=words):
        summary.summarize(damage(pd.DataFrame(data)))


def test_times_are_needed_only_if_asked_for() -> None:
    frame = pd.DataFrame(study()).drop(columns="seconds")
    assert summary.summarize(frame)
    with pytest.raises(SettingError, match="no column seconds;"):
        summary.summarize(frame, timings=True)
