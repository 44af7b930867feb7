from __future__ import annotations

from scaml.explain.explanations import explanation_rows
from scaml.explain.run import Run
from scaml.explain.suggestions import Suggestion
from scaml.explain.weights import WeightRow
from scaml.report.tables import (
    explanations_table,
    matching_table,
    suggestions_table,
    table,
    tiles,
    weights_table,
)
from scaml.spaces.matching import Match
from tests.run_cases import UGLY, ugly, verdict


def test_a_table_has_a_header_rows_and_one_strong_row() -> None:
    text = table(["", "<a>"], [["x", "1"], ["y", "2"]], strong=1)
    assert '<th scope="col">&lt;a&gt;</th>' in text
    assert '<tr><th scope="row">x</th><td>1</td></tr>' in text
    assert '<tr class="strong"><th scope="row">y</th><td>2</td></tr>' in text


def test_suggestions_have_one_column_each() -> None:
    one = Suggestion({"rate": 0.5, "kind": None}, 2.0, 0.25, {"A": 1.0, "B": -0.5})
    two = Suggestion({"rate": 0.25, "kind": "b"}, 1.0, 0.25, {})
    text = suggestions_table([one, two], "loss")
    assert text.count("<th scope=") == 3 + 4
    assert "<td>0.5</td><td>0.25</td>" in text
    assert "<td>None</td><td>b</td>" in text
    assert "Expected loss</th><td>2.00 ± 0.50</td><td>1.00 ± 0.50</td>" in text
    moves = '<td><span title="A">A +1</span><span title="B">B −0.5</span></td><td>–</td>'
    assert f"Past tasks that raise or lower this prediction most</th>{moves}" in text
    assert "Suggestion 2" in text
    assert "Suggestion 1" not in suggestions_table([one], "loss")


def test_rows_without_numbers_are_not_shown() -> None:
    text = suggestions_table([Suggestion({"x1": 0.5}, None, None, {})], "y")
    assert "Expected" not in text
    assert "raise or lower" not in text


def test_a_prediction_beyond_all_values_is_shown_with_a_remark() -> None:
    below = Suggestion({"x": 1}, -0.03, 0.02, {}, 0.01)
    above = Suggestion({"x": 2}, 103.0, 0.02, {}, 99.0)
    text = suggestions_table([below, above, Suggestion({"x": 3}, 0.5, 0.02, {})], "error")
    remark = '<span class="remark">no experiment gave {}</span>'
    assert f"<td>−0.030 ± 0.040{remark.format('less than 0.01')}</td>" in text
    assert f"<td>103.000 ± 0.040{remark.format('more than 99')}</td>" in text
    assert "<td>0.500 ± 0.040</td>" in text


def test_explanations_have_one_row_each() -> None:
    text = explanations_table(explanation_rows(verdict({UGLY: 0.84, "": 0.154, "a": 0.006})))
    first = "&#x27;&lt;script&gt;alert(1)&lt;/script&gt;&#x27; alone"
    assert f'<tr class="strong"><th scope="row">{first}</th><td>84 %</td></tr>' in text
    assert '<tr><th scope="row">no past task</th><td>15 %</td></tr>' in text
    assert '<tr><th scope="row">1 other explanation</th><td>1 %</td></tr>' in text
    assert "<script>" not in text


def test_weights_of_a_model_that_explains_itself_have_probabilities() -> None:
    rows = [WeightRow("A", 0.6, 0.25, 0.5, 0.84, 0.03), WeightRow(None, None, None, 0.5)]
    text = weights_table(rows, {"A": 7})
    assert '<th scope="col">Matters</th><th scope="col">Mirrored</th>' in text
    assert "<td>7</td><td>0.6</td><td>84 %</td><td>3 %</td><td>25 %</td><td>50 %</td>" in text
    assert "<td>–</td><td>–</td><td>–</td><td>–</td><td>–</td><td>50 %</td>" in text
    assert "Matters" not in weights_table([WeightRow("A", 0.6, 0.25, 0.5)], {"A": 7})


def test_weights_have_one_row_per_task() -> None:
    rows = [WeightRow("<A>", 0.618, 0.25, 0.5), WeightRow(None, None, None, 0.5)]
    text = weights_table(rows, {"<A>": 7})
    first = '<th scope="row">&lt;A&gt;</th><td>7</td><td>0.62</td><td>25 %</td><td>50 %</td>'
    assert first in text
    assert '<th scope="row">not explained by the past</th><td>–</td><td>–</td><td>–</td>' in text
    assert "Share" not in weights_table([WeightRow("A", 1.0)], {"A": 7})


def test_matches_have_one_row_per_task() -> None:
    text = matching_table([Match("A", ("x", "y"), ("z",), {"old": 0.5}, 3), Match("B", ("x",))])
    assert "<td>x, y</td><td>z</td><td>old = 0.5</td><td>3</td>" in text
    assert "<td>x</td><td>–</td><td>–</td><td>–</td>" in text


def test_names_are_escaped() -> None:
    run = Run.of(ugly())
    assert "<script>" not in suggestions_table(run.suggestions, "<script>")
    assert tiles([("<a>", "<b>")]).count("&lt;") == 2
