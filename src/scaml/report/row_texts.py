"""The numbers of `explain` as the texts of tables and charts."""

from __future__ import annotations

from scaml.explain.moments import BAND
from scaml.explain.suggestions import Suggestion
from scaml.explain.weights import WeightRow
from scaml.report.text import number, percent, plain, setting, signed, with_spread

__all__ = [
    "description",
    "expected_text",
    "largest_moves",
    "limit_text",
    "reading_text",
    "row_name",
    "setting_texts",
    "weight_text",
]

_MOST_MOVES = 3  # past tasks named per suggestion
_LEAST_MOVE = 0.05  # of the largest one


def row_name(row: WeightRow) -> str:
    """The name of the past task, or what to call the rest."""
    if row.name is not None:
        return row.name
    return "not explained by the past" if row.mean is None else "the new data alone"


def weight_text(weight: float) -> str:
    """A weight to two digits; only a weight of exactly 0, which drops the task, is shown as 0.

    Examples:
        >>> weight_text(0.0), weight_text(1e-5), weight_text(0.618)
        ('0', '≈ 0', '0.62')
    """
    if weight == 0:
        return "0"
    return number(weight, 2) if abs(weight) >= 5e-4 else "≈ 0"


def description(row: WeightRow) -> str:
    """All numbers of a row of weights in one line.

    Examples:
        >>> description(WeightRow("reactor-B", 0.618, 0.25, 0.5))
        'reactor-B: weight 0.618, 25 % of the mean, 50 % of the variance'
    """
    parts = [] if row.weight is None else [f"weight {number(row.weight, 3)}"]
    if row.mean is not None:
        parts.append(f"{percent(row.mean)} of the mean")
    if row.variance is not None:
        parts.append(f"{percent(row.variance)} of the variance")
    if row.matters is not None:
        parts.append(f"matters with probability {percent(row.matters)}")
    return f"{plain(row_name(row))}: {', '.join(parts)}"


def setting_texts(suggestion: Suggestion) -> list[str]:
    """The values of all parameters."""
    return [setting(value) for value in suggestion.params.values()]


def expected_text(suggestion: Suggestion) -> str:
    """The expected value with two standard deviations; empty if the method does not predict values.

    Examples:
        >>> expected_text(Suggestion({}, 71.81, 14.2, {}))
        '72 ± 28'
    """
    if suggestion.expected is None or suggestion.deviation is None:
        return ""
    return with_spread(suggestion.expected, BAND * suggestion.deviation)


def limit_text(suggestion: Suggestion) -> str:
    """The remark beside an expected value beyond all values so far; empty if it lies among them.

    Examples:
        >>> limit_text(Suggestion({}, -0.03, 0.1, {}, 0.01))
        'no experiment gave less than 0.01'
    """
    if suggestion.beyond is None:
        return ""
    return f"no experiment gave {_side(suggestion, 'less', 'more')} than {number(suggestion.beyond)}"


def reading_text(suggestion: Suggestion) -> str:
    """How to read an expected value beyond all values so far, as the remark of a sentence.

    Examples:
        >>> reading_text(Suggestion({}, -0.03, 0.1, {}, 0.01))
        'no experiment gave less than 0.01, so read it as: lower than so far'
    """
    limit = limit_text(suggestion)
    reading = f"so read it as: {_side(suggestion, 'lower', 'higher')} than so far"
    return f"{limit}, {reading}" if limit else ""


def _side(suggestion: Suggestion, below: str, above: str) -> str:
    return below if suggestion.is_below else above


def largest_moves(suggestion: Suggestion) -> list[tuple[str, str]]:
    """The past tasks that raise or lower the prediction most, at most three, each with its effect.

    Examples:
        >>> largest_moves(Suggestion({}, 1.0, 0.1, {"A": 2.0, "B": -0.5, "C": 0.01}))
        [('A', '+2'), ('B', '−0.5')]
    """
    moves = list(suggestion.moved_by.items())[:_MOST_MOVES]
    least = _LEAST_MOVE * abs(moves[0][1]) if moves else 0.0
    return [(name, signed(move)) for name, move in moves if abs(move) >= least]
