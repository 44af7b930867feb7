from __future__ import annotations

import pytest

from scaml.explain.run import Run
from scaml.explain.suggestions import Suggestion
from scaml.explain.weights import WeightRow
from scaml.report.row_texts import (
    description,
    expected_text,
    largest_moves,
    row_name,
    setting_texts,
    weight_text,
)
from tests.run_cases import NAMES, SPACE, ugly


def suggestion(moved_by: dict[str, float]) -> Suggestion:
    return Suggestion({}, 1.0, 0.5, moved_by)


def test_the_texts_of_a_suggestion_carry_its_numbers() -> None:
    (one, *_) = Run.of(ugly()).suggestions
    params = list(one.params.values())
    assert setting_texts(one)[1:] == [params[1], "3", str(params[3])]
    assert list(one.params) == list(SPACE.names)
    mean, spread = expected_text(one).replace("−", "-").split(" ± ")
    assert float(mean) == pytest.approx(one.expected, abs=0.02)
    assert float(spread) == pytest.approx(2 * (one.deviation or 0.0), rel=0.1)
    (name, move), *_ = largest_moves(one)
    assert name in NAMES
    assert float(move.replace("−", "-")) == pytest.approx(one.moved_by[name], rel=0.01)


def test_a_suggestion_without_a_prediction_has_no_expected_text() -> None:
    assert expected_text(Suggestion({}, None, None, {})) == ""


def test_the_largest_moves_are_at_most_three_and_not_tiny() -> None:
    four = suggestion({"a": -8.0, "b": 4.0, "c": 2.0, "d": 1.0})
    assert largest_moves(four) == [("a", "−8"), ("b", "+4"), ("c", "+2")]
    assert largest_moves(suggestion({"a": 1.0, "b": 0.05, "c": 0.049})) == [("a", "+1"), ("b", "+0.05")]
    assert largest_moves(suggestion({})) == []


def test_the_rest_is_named_by_what_it_is() -> None:
    of_prior, of_ensemble = WeightRow(None, None, None, 0.8), WeightRow(None, None, 0.3, 0.8)
    assert row_name(of_prior) == "not explained by the past"
    assert row_name(of_ensemble) == "the new data alone"
    assert row_name(WeightRow("a", 1.0)) == "a"
    assert description(of_prior) == "not explained by the past: 80 % of the variance"
    assert description(WeightRow("a", 0.25)) == "a: weight 0.25"


def test_a_small_weight_is_not_shown_as_0() -> None:
    assert [weight_text(w) for w in (0.0, 4e-4, -4e-4, -0.5)] == ["0", "≈ 0", "≈ 0", "−0.5"]
