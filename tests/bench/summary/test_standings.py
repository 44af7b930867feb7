"""The overview of all settings, and the cost of the paper's study."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scaml import SettingError
from scaml.bench import FAMILIES, summary
from scaml.bench.summary import PAPER_RUNS
from tests.bench.summary.cases import one_step, row_of, shuffled, study


def test_no_rows_give_no_standings() -> None:
    assert summary.overview([]) == []


def test_overview_counts_the_lowest_and_those_near() -> None:
    # Lowest 2 ± 1: 3 is within, 3.25 is not; in the other setting the lowest are equal.
    near = one_step({"scaml": [1.0, 3.0], "gpbo": [3.0, 3.0], "a": [3.25, 3.25]})
    tied = [replace(row, problem="svm") for row in one_step({"gpbo": [1.0, 1.0], "a": [1.0, 1.0]})]
    found = {one.method: one for one in summary.overview(tied + near)}
    assert list(found) == ["scaml", "gpbo", "a"]
    counts = {name: (one.settings, one.lowest, one.within) for name, one in found.items()}
    assert counts == {"scaml": (1, 1, 1), "gpbo": (2, 1, 2), "a": (2, 1, 1)}
    assert {name: one.rank for name, one in found.items()} == {"scaml": 1.0, "gpbo": 1.75, "a": 2.25}
    ranks = {"scaml": 1.25, "gpbo": (1.75 + 1.5) / 2, "a": (3.0 + 1.5) / 2}
    assert {name: one.mean_rank for name, one in found.items()} == ranks
    assert {(one.core_seconds, one.paper_core_seconds) for one in found.values()} == {(None, None)}


def test_a_single_run_has_nothing_within_its_error() -> None:
    found = summary.overview(one_step({"scaml": [1.0], "gpbo": [1.0 + 1e-12]}))
    assert [(one.lowest, one.within) for one in found] == [(1, 1), (0, 0)]


def test_extrapolation_is_by_the_number_of_runs() -> None:
    rows = summary.summarize(shuffled(study()), timings=True)
    branin, svm = row_of(rows, "scaml"), row_of(rows, "scaml", "svm")
    assert branin.core_seconds is not None
    assert svm.core_seconds is not None
    expected = branin.core_seconds * 128 / 4 + svm.core_seconds * 256 / 3
    found = summary.extrapolate(rows, PAPER_RUNS)
    assert list(found) == ["scaml", "gpbo", "random", "./mine.py:Mine", "another"]
    assert found["scaml"] == pytest.approx(expected, rel=1e-14)
    standing = summary.overview(rows)[0]
    assert standing.core_seconds == pytest.approx(branin.core_seconds + svm.core_seconds, rel=1e-14)
    assert standing.paper_core_seconds == found["scaml"]
    assert {one.paper_core_seconds for one in summary.overview(rows, {"svm": 1})} == {None}
    with pytest.raises(SettingError, match="'branin' has no runs"):
        summary.extrapolate(rows, {"svm": 1})
    with pytest.raises(SettingError, match="no core_seconds"):
        summary.extrapolate(summary.summarize(shuffled(study())), PAPER_RUNS)


def test_the_paper_has_128_runs_of_functions_and_256_of_tables() -> None:
    assert {name for name, runs in PAPER_RUNS.items() if runs == 128} == set(FAMILIES)
    assert set(PAPER_RUNS.values()) == {128, 256}
    assert len(PAPER_RUNS) == 12
