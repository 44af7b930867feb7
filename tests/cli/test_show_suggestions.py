"""Suggestions as a table, as CSV and as JSON."""

from __future__ import annotations

import json

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from scaml import Space, Task
from scaml.cli.show_suggestions import as_csv, as_json, show
from scaml.explain.subject import Subject
from scaml.explain.suggestions import Suggestion
from scaml.methods import GPBO
from scaml.methods.gpbo import GPBOPrior
from scaml.sheets import NewTask, Sheet

SPACE = Space({"x": FloatDistribution(0.0, 1.0), "kind": CategoricalDistribution(["=a", "b"])})
SUBJECT = Subject(
    GPBOPrior(GPBO(), SPACE.d), Task.empty(SPACE.d), space=SPACE, objective="yield", title="new"
)
FOUND = [
    Suggestion({"x": 0.125, "kind": "=a"}, 71.8123, 14.2, {"A": 3.3, "B": -1.0, "C": 0.5, "D": 0.1}),
    Suggestion({"x": 0.25, "kind": "b"}, None, None, {}),
]


def test_json_has_all_numbers() -> None:
    found = json.loads(json.dumps(as_json(FOUND, SUBJECT)))
    assert list(found) == ["task", "objective", "maximize", "observations", "suggestions"]
    assert found["suggestions"][0] == {
        "params": {"x": 0.125, "kind": "=a"},
        "expected": 71.8123,
        "deviation": 14.2,
        "beyond": None,
        "past_tasks": {"A": 3.3, "B": -1.0, "C": 0.5, "D": 0.1},
    }
    assert found["suggestions"][1]["expected"] is None


def test_csv_has_the_columns_of_the_table() -> None:
    assert as_csv(FOUND, SUBJECT, None, "task") == "x,kind,yield\n0.125,'=a,\n0.25,b,\n"
    sheet = Sheet(
        SPACE, (), NewTask("new"), (), "yield", True, ("job", "kind", "x", "note", "yield"), ()
    )
    assert as_csv(FOUND[1:], SUBJECT, sheet, " job ") == "job,kind,x,note,yield\nnew,b,0.25,,\n"


def test_the_table_shows_rounded_numbers_and_three_past_tasks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    show(FOUND, SUBJECT)
    printed = capsys.readouterr().out
    assert "71.81 ± 28" in printed
    assert "│ effect of past tasks │" in printed
    assert [words in printed for words in ("A +3.3", "B -1", "C +0.5", "D +0.1")] == [True] * 3 + [
        False
    ]
    assert "past tasks raise or lower the prediction by their numbers." in printed


def test_without_past_tasks_the_table_does_not_mention_them(capsys: pytest.CaptureFixture[str]) -> None:
    show(FOUND[1:], SUBJECT)
    printed = capsys.readouterr().out
    assert "past task" not in printed
    assert printed.endswith("± is two standard deviations.\n")


def test_a_prediction_beyond_all_values_is_shown_with_a_remark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    params = {"x": 0.125, "kind": "b"}
    below = Suggestion(params, -0.03, 0.02, {}, 0.01)
    above = Suggestion(params, 103.0, 0.02, {}, 99.0)
    show([below, below, above, Suggestion(params, 0.5, 0.02, {})], SUBJECT)
    printed = capsys.readouterr().out
    assert printed.count("none below 0.01") == 2
    assert printed.count("none above 99") == 1
    low = "No experiment, past or new, gave less than 0.01: read it as lower than so far.\n"
    assert printed.count(low) == 1
    assert "gave more than 99: read it as higher than so far." in printed
    assert as_json([below], SUBJECT)["suggestions"][0]["beyond"] == 0.01
    show([Suggestion(params, 0.5, 0.02, {})], SUBJECT)
    assert "none" not in capsys.readouterr().out
