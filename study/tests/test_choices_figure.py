"""The figure of the choices shows all choices, with the numbers of `regret_ratios`."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scaml import SettingError
from study import regret_ratios
from study.choices_figure import build, compute, draw

PROBLEM_NAMES = ("svm", "lr", "branin", "unrelated")
FACTORS = {
    "scaml-ucb": 1.0,
    "scaml": 0.7,
    "gpbo": 20.0,
    "sqrt-beta=2": 0.8,
    "kernel=matern52": 1.3,
    "kernel=matern52+sqrt-beta=2": 0.9,
}


def results(runs: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {
                "problem": problem,
                "meta_tasks": 8,
                "points": 32,
                "method": method,
                "run": run,
                "step": 1,
                "regret": factor * rng.uniform(0.9, 1.1),
                "span": None,
            }
            for problem, run, (method, factor) in product(PROBLEM_NAMES, range(runs), FACTORS.items())
        ]
    )


def test_numbers_are_those_of_the_ratios() -> None:
    frame = results()
    found = compute(frame)
    assert list(found.ratios.index) == [
        *("kernel=matern52", "sqrt-beta=2", "kernel=matern52+sqrt-beta=2", "scaml", "gpbo")
    ]
    assert list(found.ratios) == list(found.errors) == ["tables", "synthetic"]
    table, errors = (
        regret_ratios.ratios(frame, "scaml-ucb"),
        regret_ratios.ratio_errors(frame, "scaml-ucb"),
    )
    for name in found.ratios.index:
        both = table.loc[name, ["svm", "lr"]]
        assert found.ratios.loc[name, "tables"] == pytest.approx(np.sqrt(both.prod()))
        assert found.errors.loc[name, "synthetic"] == pytest.approx(errors.loc[name, "branin"].item())
    assert set(found.runs) == {4}


def test_a_choice_that_misses_a_problem_is_left_out() -> None:
    frame = results()
    part = frame[(frame["method"] != "sqrt-beta=2") | (frame["problem"] != "lr")]
    assert "sqrt-beta=2" not in compute(part).ratios.index
    fewer = frame[(frame["method"] != "sqrt-beta=2") | (frame["problem"] != "lr") | (frame["run"] < 2)]
    assert compute(fewer).runs["sqrt-beta=2"] == 2
    assert "2 to 4 runs" in build(fewer).get_supxlabel()


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ([], r"run python -m study ablate\.$"),
        (["scaml-ucb", "scaml", "gpbo"], r"run python -m study ablate\.$"),
        (["gpbo", "sqrt-beta=2"], "no method 'scaml-ucb'"),
    ],
)
def test_nothing_to_compare(kept: list[str], message: str) -> None:
    frame = results()
    with pytest.raises(SettingError, match=message):
        build(frame[frame["method"].isin(kept)])


def test_every_choice_has_a_row_and_what_is_far_worse_an_arrow(tmp_path: Path) -> None:
    tables, _ = build(results()).axes
    labels = [label.get_text() for label in tables.get_yticklabels()]
    assert labels == [
        *("kernel=matern52", "sqrt-beta=2", "kernel=matern52+sqrt-beta=2", "ScaML-GP", "GPBO")
    ]
    assert len(tables.containers) == 4  # points with bars
    assert [note.get_text() for note in tables.texts] == [
        f"{compute(results()).ratios['tables']['gpbo']:.1f}"
    ]
    paths = draw(results(), tmp_path)
    assert [path.name for path in paths] == ["choices.png", "choices.pdf"]


def test_a_single_run_has_no_bar() -> None:
    frame = results(runs=1)
    assert compute(frame).errors.isna().all(axis=None)
    assert len(build(frame).axes[0].containers) == 4
