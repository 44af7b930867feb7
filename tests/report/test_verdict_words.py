from __future__ import annotations

from scaml.explain.explanations import ExplanationRow, explanation_rows
from scaml.report.verdict_words import about_explanations, about_verdict, explanation_text, warnings
from tests.run_cases import UGLY, verdict


def test_the_most_probable_explanation_is_a_sentence() -> None:
    told = {"adult": 0.84, "": 0.16}
    expected = "After 12 experiments, the new task is most probably like 'adult' alone (84 %)."
    assert about_verdict(verdict(told, n=12)) == expected
    assert about_verdict(verdict(told, n=1)).startswith("After 1 experiment, ")
    before = (
        "Before the first experiment, the past suggests that the new task is like no past task (60 %)."
    )
    assert about_verdict(verdict({"adult": 0.4, "": 0.6}, n=0)) == before
    assert about_verdict(verdict(told, mirrored=("adult",))).endswith("'adult' alone, mirrored (84 %).")


def test_before_the_first_experiment_the_table_is_of_the_past() -> None:
    assert len(about_explanations(verdict({"a": 1.0}, n=3))) == 2
    assert "how alike the past tasks are" in about_explanations(verdict({"a": 1.0}, n=0))[-1]


def test_rows_in_words() -> None:
    rows = explanation_rows(verdict({"a": 0.99, "b": 0.006, "": 0.004}))
    assert [explanation_text(row) for row in rows] == ["'a' alone", "2 other explanations"]
    assert explanation_text(ExplanationRow(None, 0.1, 1)) == "1 other explanation"
    long = verdict({"x" * 5000: 1.0})
    assert len(explanation_text(explanation_rows(long)[0])) < 100
    assert len(about_verdict(long)) < 200


def test_a_past_that_is_set_aside_is_warned_of() -> None:
    strange = {"a": 0.13, "": 0.87}
    assert warnings(verdict(strange, n=5)) == [
        "The past is set aside: after 5 experiments, the probability that no past task is like the new "
        "one is 87 %."
    ]
    assert warnings(verdict(strange, n=4)) == []
    assert warnings(verdict({"a": 0.87, "": 0.13}, n=5)) == []


def test_a_mirrored_task_is_warned_of_by_name() -> None:
    (words,) = warnings(verdict({UGLY: 0.7, "b": 0.3}, mirrored=(UGLY,)))
    assert words.startswith(f"‘{UGLY}’ looks mirrored: what was good there is bad here.")
    names = [f"t{i}" for i in range(7)]
    many = verdict(dict.fromkeys(names, 0.9), mirrored=tuple(names))
    assert "‘t4’ and 2 more look mirrored" in warnings(many)[0]
