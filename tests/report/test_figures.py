from __future__ import annotations

import pytest
import torch

from scaml.explain.explanations import explanation_rows
from scaml.explain.leave_one_out import compare
from scaml.explain.run import Inapplicable, Run
from scaml.explain.suggestions import Suggestion
from scaml.explain.weights import WeightRow, weight_rows
from scaml.report.figures import (
    MOST_ROWS,
    explanations_figure,
    left_out_figure,
    progress_figure,
    suggestions_figure,
    weights_figure,
)
from scaml.report.row_texts import expected_text, row_name, setting_texts
from tests.report.cases import strings
from tests.run_cases import EXPLAINED, SPACE, explained_run, run_of, ugly, verdict

pytest.importorskip("plotly")


def test_the_bars_are_the_weights_and_shares() -> None:
    run = run_of()
    rows = weight_rows(run.model, run.points, run.prior.names)
    figure = weights_figure(rows)
    assert list(figure.data[0].x) == [row.weight for row in rows]
    assert list(figure.data[1].x) == [row.mean for row in rows]
    assert list(figure.data[2].x) == [row.variance for row in rows]
    assert list(figure.layout.yaxis.ticktext) == [row_name(row) for row in rows]


def test_a_model_that_explains_itself_has_a_column_of_probabilities() -> None:
    run = explained_run()
    rows = weight_rows(run.model, run.points, run.prior.names)
    figure = weights_figure(rows)
    columns = [(row.weight, row.matters, row.mean, row.variance) for row in rows]
    assert [list(bars.x) for bars in figure.data] == [list(x) for x in zip(*columns, strict=True)]
    assert [bars.xaxis for bars in figure.data] == ["x", "x2", "x3", "x4"]
    heads = [head.text for head in figure.layout.annotations]
    assert heads == ["weight", "matters", "mean", "variance"]
    assert "matters with probability" in figure.data[0].hovertext[0]


def test_the_table_of_explanations() -> None:
    (table,) = explanations_figure(explanation_rows(verdict({"<i>$": 0.84, "": 0.16}))).data
    assert [list(column) for column in table.cells.values] == [
        ["&#x27;&lt;i&gt;&#36;&#x27; alone", "no past task"],
        ["84 %", "16 %"],
    ]


def test_many_tasks_are_drawn_as_far_as_there_is_room() -> None:
    rows = [WeightRow(f"t{m}", 1.0 / (m + 1), 0.01, 0.0) for m in range(100)]
    figure = weights_figure([*rows, WeightRow(None, None, None, 1.0)])
    assert len(figure.data[0].y) == MOST_ROWS + 1
    assert figure.layout.yaxis.ticktext[-1] == "not explained by the past"


def test_weights_alone_have_one_column_and_may_be_negative() -> None:
    figure = weights_figure([WeightRow("a", -2.0), WeightRow("b", 1.0)])
    assert len(figure.data) == 1
    low, high = figure.layout.xaxis.range
    assert low < -2.0
    assert high > 1.0


@pytest.mark.parametrize(("sign", "best"), [(1.0, [1.0, 3.0, 3.0]), (-1.0, [-1.0, -3.0, -3.0])])
def test_progress_is_the_best_so_far(sign: float, best: list[float]) -> None:
    figure = progress_figure(torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64), sign, "y")
    assert list(figure.data[0].y) == best
    assert list(figure.data[1].y) == [sign, 3 * sign, 2 * sign]
    with pytest.raises(Inapplicable):
        progress_figure(torch.empty(0), sign, "y")


def test_predictions_stand_beside_observations() -> None:
    run = run_of(6)
    comparison = compare(run)
    figure = left_out_figure(comparison, -1.0, "loss")
    plain, ours = figure.data[1], figure.data[2]
    assert list(ours.y) == (-comparison.ours.mean).tolist()
    assert comparison.plain is not None
    assert list(plain.error_y.array) == (2.0 * comparison.plain.deviation).tolist()
    middle = [(a + b) / 2 for a, b in zip(plain.x, ours.x, strict=True)]
    assert middle == pytest.approx((-run.task.y).tolist())


def test_suggestions_are_the_columns_of_a_table() -> None:
    run = Run.of(ugly())
    (table,) = suggestions_figure(run.suggestions, "loss").data
    names, *columns = table.cells.values
    assert list(names)[-2:] == ["expected loss", "past tasks that raise or lower it most"]
    assert len(names) == len(SPACE.names) + 2
    for column, one in zip(columns, run.suggestions, strict=True):
        assert column[3] == setting_texts(one)[3]
        assert column[-2] == expected_text(one)
    (bare,) = suggestions_figure([Suggestion({"x": 1}, None, None, {})], "loss").data
    assert list(bare.cells.values[1]) == ["1", "–", "–"]
    (remarked,) = suggestions_figure([Suggestion({"x": 1}, -0.03, 0.02, {}, 0.01)], "loss").data
    assert remarked.cells.values[1][1] == "−0.030 ± 0.040 (no experiment gave less than 0.01)"


def test_no_label_is_markup() -> None:
    run = Run.of(ugly(method=EXPLAINED))
    figures = [
        weights_figure(weight_rows(run.model, run.points, run.prior.names)),
        progress_figure(run.task.y, -1.0, "<u>loss</u>"),
        left_out_figure(compare(run), -1.0, "<u>loss</u>"),
        suggestions_figure(run.suggestions, "<u>loss</u>"),
        explanations_figure(explanation_rows(run.verdict)),
    ]
    for figure in figures:
        assert not [text for text in strings(figure) if "<" in text or "$" in text]
    texts = list(strings(figures[0]))
    assert any("&lt;script&gt;alert(1)&lt;/script&gt;" in text for text in texts)
