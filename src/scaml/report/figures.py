"""The figures about tasks and experiments: weights, progress, leave-one-out, suggestions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from scaml.explain.explanations import ExplanationRow
from scaml.explain.leave_one_out import Comparison, LeftOut
from scaml.explain.moments import BAND
from scaml.explain.run import Inapplicable
from scaml.explain.suggestions import Suggestion
from scaml.explain.weights import WeightRow
from scaml.report.drawing import (
    BEST,
    GREY,
    INK,
    LINE,
    OBSERVED,
    PLAIN,
    POSTERIOR,
    PRIOR,
    axis,
    domains,
    figure,
    tinted,
)
from scaml.report.escape import label
from scaml.report.row_texts import (
    description,
    expected_text,
    largest_moves,
    limit_text,
    row_name,
    setting_texts,
    weight_text,
)
from scaml.report.text import number, percent, short, with_spread
from scaml.report.verdict_words import explanation_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "MOST_ROWS",
    "explanations_figure",
    "left_out_figure",
    "progress_figure",
    "suggestions_figure",
    "weights_figure",
]

MOST_ROWS = 40
"""Past tasks that a chart has room for."""
_ROW, _FRAME = 23, 40  # pixels
_COLUMNS = {  # fields of a row
    "weight": "weight",
    "matters": "matters",
    "mean": "share of the mean",
    "variance": "share of the variance",
}
_FULL = 3  # columns with room for whole titles; with more, "share of the" is left out
_GAP, _ROOM = 0.05, 0.15  # between columns, and beside the longest bar, per column


def weights_figure(rows: list[WeightRow]) -> Figure:
    """One bar per past task: the weight, then probability and shares if there are any."""
    shown = [row for row in rows if not row.is_rest][:MOST_ROWS]
    shown += [row for row in rows if row.is_rest]
    columns = [name for name in _COLUMNS if getattr(rows[0], name) is not None]
    places = list(range(len(shown)))
    axes: dict[str, Any] = {}
    heads = []
    for i, (column, domain) in enumerate(zip(columns, domains(len(columns), _GAP), strict=True)):
        axes[f"xaxis{i + 1 if i else ''}"] = axis(
            domain=domain,
            range=_reach(_values(shown, column), _ROOM * len(columns)),
            visible=False,
            fixedrange=True,
        )
        title = _COLUMNS[column]
        heads.append(
            _head(title if len(columns) <= _FULL else title.removeprefix("share of the "), domain[0])
        )
    axes["yaxis"] = axis(
        tickvals=places,
        ticktext=[label(short(row_name(row))) for row in shown],
        range=[len(shown) - 0.4, -0.6],
        showgrid=False,
        showline=False,
        tickcolor="white",
        fixedrange=True,
    )
    return figure(
        [_bars(shown, places, column, i + 1) for i, column in enumerate(columns)],
        **axes,
        annotations=heads,
        height=_FRAME + _ROW * len(shown),
        margin={"l": 60, "r": 12, "t": 32, "b": 8},
        bargap=0.35,
    )


def _head(title: str, left: float) -> dict[str, Any]:
    place = {
        "x": left,
        "xref": "paper",
        "xanchor": "left",
        "y": 1.0,
        "yref": "paper",
        "yanchor": "bottom",
    }
    return place | {"text": label(title), "showarrow": False, "font": {"size": 12, "color": INK}}


def _values(rows: list[WeightRow], column: str) -> list[float | None]:
    return [getattr(row, column) for row in rows]


def _reach(values: list[float | None], share: float) -> list[float]:
    """The range of a column, with room for the numbers beside the bars, a share of the bars' range."""
    known = [value for value in values if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    room = share * (high - low or 1.0)
    return [low - room if low < 0 else 0.0, high + room]


def _bars(rows: list[WeightRow], places: list[int], column: str, axis_number: int) -> dict[str, Any]:
    values = _values(rows, column)
    return {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": places,
        "xaxis": "x" if axis_number == 1 else f"x{axis_number}",
        "marker": {"color": [PRIOR if row.is_rest else POSTERIOR for row in rows]},
        "text": [_bar_text(value, column) for value in values],
        "textposition": "outside",
        "textangle": 0,
        "textfont": {"size": 11, "color": GREY},
        "cliponaxis": False,
        "hovertext": [label(description(row)) for row in rows],
        "hoverinfo": "text",
    }


def _bar_text(value: float | None, column: str) -> str:
    if value is None:
        return ""
    return label(weight_text(value) if column == "weight" else percent(value))


def progress_figure(y: Tensor, sign: float, objective: str) -> Figure:
    """The value of every experiment, and the best value so far."""
    if not len(y):
        raise Inapplicable("No experiment has been made yet.")
    shown = (sign * y).tolist()
    best = (sign * y.cummax(0).values).tolist()
    numbers = list(range(1, len(y) + 1))
    hover = [
        label(f"experiment {n}: {number(value)}; best so far {number(top)}")
        for n, value, top in zip(numbers, shown, best, strict=True)
    ]
    line = {
        "type": "scatter",
        "x": numbers,
        "y": best,
        "mode": "lines",
        "line": {"shape": "hv", "color": POSTERIOR, "width": 2.5},
        "name": "best so far",
        "hoverinfo": "skip",
    }
    dots = {
        "type": "scatter",
        "x": numbers,
        "y": shown,
        "mode": "markers",
        "marker": {"size": 7, "color": tinted(OBSERVED, 0.65), "line": {"color": "white", "width": 1}},
        "name": "experiment",
        "hovertext": hover,
        "hoverinfo": "text",
    }
    x = axis("experiment", range=[0.5, len(y) + 0.5], tickformat="d", nticks=min(len(y) + 1, 12))
    if len(y) < 12:
        x |= {"tickvals": numbers}
    return figure(
        [line, dots], xaxis=x, yaxis=axis(objective), height=280, showlegend=True, legend=_LEGEND
    )


_LEGEND = {
    "orientation": "h",
    "x": 0.0,
    "y": 1.02,
    "xanchor": "left",
    "yanchor": "bottom",
    "font": {"size": 12, "color": GREY},
}


def left_out_figure(comparison: Comparison, sign: float, objective: str) -> Figure:
    """Predictions of the model and of the plain GP against observations."""
    ours = "with the past tasks" if comparison.plain else "the plain GP"
    series = [(comparison.ours, ours, POSTERIOR, "circle")]
    if comparison.plain:
        series.insert(0, (comparison.plain, "the new data alone", PLAIN, "square"))
    observed = sign * comparison.ours.y
    ends = [float(observed.min()), float(observed.max())]
    reach = 0.06 * (ends[1] - ends[0]) or 1.0
    ends = [ends[0] - reach, ends[1] + reach]
    diagonal = {
        "type": "scatter",
        "x": ends,
        "y": ends,
        "mode": "lines",
        "line": {"color": "#9aa0a6", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
        "name": "as observed",
    }
    # The two series are shifted a little, so that neither hides the other.
    shifts = [0.0] if len(series) == 1 else [-0.004 * (ends[1] - ends[0]), 0.004 * (ends[1] - ends[0])]
    traces = [diagonal]
    for item, shift in zip(series, shifts, strict=True):
        traces.append(_predictions(*item, sign, shift))
    return figure(
        traces,
        xaxis=axis(f"observed {objective}"),
        yaxis=axis("predicted from the others"),
        height=400,
        showlegend=True,
        legend=_LEGEND,
    )


def _predictions(
    left: LeftOut, name: str, colour: str, symbol: str, sign: float, shift: float
) -> dict[str, Any]:
    observed, predicted = (sign * left.y).tolist(), (sign * left.mean).tolist()
    spread = (BAND * left.deviation).tolist()
    hover = [
        f"experiment {i}: observed {number(y)}; {name} {with_spread(mean, reach)}"
        for i, (y, mean, reach) in enumerate(zip(observed, predicted, spread, strict=True), start=1)
    ]
    return {
        "type": "scatter",
        "x": [value + shift for value in observed],
        "y": predicted,
        "error_y": {"array": spread, "thickness": 1.2, "width": 0, "color": tinted(colour, 0.45)},
        "mode": "markers",
        "marker": {
            "size": 8,
            "color": colour,
            "symbol": symbol,
            "line": {"color": "white", "width": 1},
        },
        "name": name,
        "hovertext": hover,
        "hoverinfo": "text",
    }


def suggestions_figure(found: list[Suggestion], objective: str) -> Figure:
    """The table of suggestions: one row per parameter, one column per suggestion."""
    head = ["", *(f"suggestion {i}" for i in range(1, len(found) + 1))]
    names = list(found[0].params)
    first = [*names, f"expected {objective}", "past tasks that raise or lower it most"]
    return _table_figure(head, [first, *map(_column, found)])


def explanations_figure(rows: list[ExplanationRow]) -> Figure:
    """The table of explanations: one row each, with its probability."""
    texts = [explanation_text(row) for row in rows]
    shares = [percent(row.probability) for row in rows]
    return _table_figure(["the new task is like", "probability"], [texts, shares])


def _table_figure(head: list[str], columns: list[list[str]]) -> Figure:
    table = {
        "type": "table",
        "header": {
            "values": [label(text) for text in head],
            "align": "left",
            "fill": {"color": LINE},
            "font": {"color": BEST},
        },
        "cells": {
            "values": [[label(text) for text in column] for column in columns],
            "align": "left",
            "fill": {"color": "white"},
            "line": {"color": LINE},
            "height": 26,
        },
    }
    return figure([table], height=120 + 26 * len(columns[0]), margin={"l": 8, "r": 8, "t": 8, "b": 8})


def _column(suggestion: Suggestion) -> list[str]:
    moves = ", ".join(f"{name} {move}" for name, move in largest_moves(suggestion))
    expected, limit = expected_text(suggestion) or "–", limit_text(suggestion)
    expected += f" ({limit})" if limit else ""
    return [*setting_texts(suggestion), expected, moves or "–"]
