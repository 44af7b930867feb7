"""The figures about the space: slices along one parameter, and maps of two parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from scaml.explain.moments import BAND, moments
from scaml.explain.parameters import Parameter
from scaml.explain.run import Inapplicable, Run
from scaml.explain.shares import Shares, past_parts_of
from scaml.report.drawing import (
    BEST,
    GREY,
    LEVEL,
    OBSERVED,
    OTHERS,
    POSTERIOR,
    PRIOR,
    SUGGESTED,
    TASKS,
    axis,
    band,
    figure,
    parameter_axis,
    tinted,
)
from scaml.report.escape import label
from scaml.report.text import number, setting, short, signed, with_spread

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["TaskCurve", "check_two", "map_panels", "near_slice", "slice_panel", "task_curves"]

_ALONG = 81  # points of a slice
_ACROSS = 41  # points along each side of a map
_NEAR = 0.15  # root mean square distance in the other parameters, in parts of their ranges
# In parts of the distance between two choices: how far predictions are drawn beside the experiments,
# and the experiments beside each other.
_BESIDE, _JITTER = 0.24, 0.07


@dataclass(frozen=True)
class TaskCurve:
    """A curve of what past tasks add to the prior's mean: one task, or several tasks together.

    Args:
        name: The task's name, or what to call several tasks.
        tasks: The numbers of the tasks.
        colour: The colour of the curve.
        dash: The dashes of the curve.
    """

    name: str
    tasks: tuple[int, ...]
    colour: str
    dash: str


def task_curves(run: Run) -> list[TaskCurve]:
    """One curve per past task with the largest shares of the mean, and one curve for all others.

    Empty if the model is not a sum over past tasks.
    """
    parts = past_parts_of(run.model)
    if parts is None:
        return []
    share = Shares.of(parts, run.points).mean[:-1]
    order = [m for m in share.argsort(descending=True, stable=True).tolist() if share[m] > 0]
    single = len(TASKS) if len(order) <= len(TASKS) else len(TASKS) - 1
    curves = [
        TaskCurve(parts.names[m], (m,), *look) for m, look in zip(order[:single], TASKS, strict=False)
    ]
    others = tuple(order[single:])
    if others:
        curves.append(TaskCurve(f"the other {len(others)} together", others, *OTHERS))
    return curves


def near_slice(run: Run, parameter: Parameter) -> Tensor:
    """Which observations, n, are near the slice along a parameter, judged by all other parameters."""
    others = [p.distance(run.task.X, run.center) for p in run.parameters if p is not parameter]
    if not others:
        return torch.ones(run.task.n, dtype=torch.bool)
    return torch.stack(others).square().mean(0).sqrt() <= _NEAR


def slice_panel(run: Run, parameter: Parameter, curves: Sequence[TaskCurve]) -> Figure:
    """Prior and posterior along one parameter, through the best point."""
    run.check_units()
    x = run.center
    X = parameter.along(x, parameter.levels(_ALONG))
    # The levels may miss the point itself, which belongs to the slice.
    if not parameter.discrete:
        X = torch.cat([X, x.unsqueeze(0)])
        X = X[X[:, parameter.block.columns[0]].argsort()]
    places = parameter.places(X)
    traces: list[dict[str, Any]] = []
    if run.before_data is not None and run.task.n:
        mean, deviation = moments(run.before_data, X)
        look = ("prior", PRIOR, "dash")
        traces += _curve(parameter, places, run.sign * mean, deviation, look, shift=-1)
    traces += _contributions(run, parameter, X, places, curves)
    mean, deviation = run.prediction(X)
    look = ("posterior" if run.task.n else "expected", POSTERIOR, "solid")
    traces += _curve(parameter, places, mean, deviation, look, shift=1)
    traces += _observations(run, parameter)
    return figure(
        traces,
        xaxis=parameter_axis(parameter),
        yaxis=axis(run.subject.objective, nticks=6),
        height=300,
        margin={"l": 52, "r": 12, "t": 10, "b": 44},
    )


def _curve(
    parameter: Parameter,
    places: list[float],
    mean: Tensor,
    deviation: Tensor,
    look: tuple[str, str, str],
    shift: int,
) -> list[dict[str, Any]]:
    """A mean with its band; for choices, points with error bars, beside each other."""
    name, colour, dash = look
    values, reach = mean.tolist(), (BAND * deviation).tolist()
    hover = [
        label(f"{_named(parameter, place)}: {name} {with_spread(value, spread)}")
        for place, value, spread in zip(places, values, reach, strict=True)
    ]
    line: dict[str, Any] = {
        "type": "scatter",
        "x": places,
        "y": values,
        "name": name,
        "mode": "lines",
        "line": {"color": colour, "width": 2.4 if dash == "solid" else 1.8, "dash": dash},
        "hovertext": hover,
        "hoverinfo": "text",
    }
    if parameter.choices:
        bars = {"array": reach, "thickness": 4, "width": 0, "color": tinted(colour, 0.35)}
        marker = {"size": 9, "color": colour, "symbol": "circle" if shift > 0 else "diamond"}
        beside = [place + _BESIDE * shift for place in places]
        return [line | {"x": beside, "mode": "markers", "marker": marker, "error_y": bars}]
    if parameter.discrete:
        line |= {"mode": "lines+markers", "marker": {"size": 6, "color": colour}}
    low = [value - spread for value, spread in zip(values, reach, strict=True)]
    high = [value + spread for value, spread in zip(values, reach, strict=True)]
    return [band(places, low, high, colour), line]


def _contributions(
    run: Run, parameter: Parameter, X: Tensor, places: list[float], curves: Sequence[TaskCurve]
) -> list[dict[str, Any]]:
    """What each curve's past tasks add to the common level of y."""
    parts = past_parts_of(run.model)
    if parts is None or not curves:
        return []
    moves = parts.means(X)
    level = run.sign * float(parts.units.offset)
    ends = list(parameter.ends)
    traces = [_thin(ends, [level, level], "the common level", LEVEL, ["the common level"] * 2)]
    for curve in curves:
        values = (level + run.sign * moves[list(curve.tasks)].sum(0)).tolist()
        hover = [label(f"{curve.name}: {signed(value - level)}") for value in values]
        trace = _thin(places, values, curve.name, (curve.colour, curve.dash), hover)
        if parameter.choices:
            dash = {"symbol": "line-ew", "size": 20, "line": {"color": curve.colour, "width": 2.5}}
            trace |= {"mode": "markers", "marker": dash}
        traces.append(trace)
    return traces


def _thin(
    x: list[float], y: list[float], name: str, look: tuple[str, str], hover: list[str]
) -> dict[str, Any]:
    colour, dash = look
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "name": label(short(name)),
        "mode": "lines",
        "line": {"color": colour, "width": 1.5, "dash": dash},
        "hovertext": hover,
        "hoverinfo": "text",
    }


def _observations(run: Run, parameter: Parameter) -> list[dict[str, Any]]:
    if not run.task.n:
        return []
    close = near_slice(run, parameter).tolist()
    places, values = parameter.places(run.task.X), (run.sign * run.task.y).tolist()
    if parameter.choices:  # beside each other, so that none hides another
        places = [place + _JITTER * (i % 3 - 1) for i, place in enumerate(places)]
    hover = [
        label(f"experiment {i}: {number(value)}" + (", near this slice" if is_near else ""))
        for i, (value, is_near) in enumerate(zip(values, close, strict=True), start=1)
    ]
    traces = []
    for name, chosen, marker in (
        (
            "elsewhere",
            False,
            {"size": 7, "color": "white", "line": {"color": tinted(OBSERVED, 0.4), "width": 1.2}},
        ),
        (
            "near the slice",
            True,
            {"size": 8, "color": OBSERVED, "line": {"color": "white", "width": 1}},
        ),
    ):
        picked = [i for i, is_near in enumerate(close) if is_near is chosen and i != run.best]
        marks = _marks(picked, places, values, hover, marker)
        traces.append(marks | {"name": f"experiment {name}"})
    star = {"size": 14, "color": BEST, "symbol": "star", "line": {"color": "white", "width": 1}}
    best = _marks([run.best or 0], places, values, hover, star)
    return [*traces, best | {"name": "best experiment"}]


def _marks(
    picked: list[int],
    places: Sequence[float],
    values: Sequence[float],
    hover: Sequence[str],
    marker: dict[str, Any],
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [places[i] for i in picked],
        "y": [values[i] for i in picked],
        "mode": "markers",
        "marker": marker,
        "hovertext": [hover[i] for i in picked],
        "hoverinfo": "text",
    }


def _named(parameter: Parameter, place: float) -> str:
    value = setting(parameter.choices[round(place)]) if parameter.choices else number(place)
    return f"{short(parameter.name)} = {short(value)}"


def map_panels(run: Run, pair: tuple[Parameter, Parameter]) -> tuple[Figure, Figure]:
    """Posterior mean and uncertainty over two parameters, all others as at the best point."""
    run.check_units()
    across, up = pair
    x = run.center
    most = _ALONG if across.discrete or up.discrete else _ACROSS
    levels = across.levels(most), up.levels(most)
    X = up.along(across.along(x, levels[0]), levels[1])  # across x up x d
    mean, deviation = run.prediction(X.flatten(0, 1))
    shape = len(levels[0]), len(levels[1])
    places = across.places(X[:, 0]), up.places(X[0])
    panels = []
    for values, title, scale in (
        (mean, f"expected {run.subject.objective}", "Cividis"),
        (BAND * deviation, "uncertainty (±)", "Blues"),
    ):
        grid = _grid(pair, places, values.view(shape).T, title)
        grid |= {"colorscale": scale, "reversescale": scale == "Cividis" and run.sign < 0}
        panels.append(
            figure(
                [grid, *_points(run, pair)],
                xaxis=parameter_axis(across, showgrid=False),
                yaxis=parameter_axis(up, showgrid=False),
                height=400,
                margin={"l": 56, "r": 8, "t": 30, "b": 48},
                title={
                    "text": label(short(title, 48)),
                    "font": {"size": 13},
                    "x": 0.0,
                    "xref": "paper",
                    "xanchor": "left",
                    "y": 0.985,
                    "yanchor": "top",
                },
            )
        )
    return panels[0], panels[1]


def _grid(
    pair: tuple[Parameter, Parameter], places: tuple[list[float], list[float]], z: Tensor, title: str
) -> dict[str, Any]:
    across, up = pair
    hover = [
        [
            label(f"{_named(across, x)}, {_named(up, y)}: {title} {number(value)}")
            for x, value in zip(places[0], row, strict=True)
        ]
        for y, row in zip(places[1], z.tolist(), strict=True)
    ]
    grid: dict[str, Any] = {
        "type": "heatmap" if across.discrete or up.discrete else "contour",
        "x": places[0],
        "y": places[1],
        "z": z.tolist(),
        "hovertext": hover,
        "hoverinfo": "text",
        "colorbar": {"thickness": 10, "outlinewidth": 0, "tickfont": {"size": 11, "color": GREY}},
    }
    if grid["type"] == "contour":
        grid |= {"contours": {"coloring": "heatmap"}, "line": {"width": 0.6, "color": "white"}}
    return grid


def _points(run: Run, pair: tuple[Parameter, Parameter]) -> list[dict[str, Any]]:
    """Experiments and suggestions on a map."""
    across, up = pair
    traces = []
    if run.task.n:
        values = (run.sign * run.task.y).tolist()
        hover = [label(f"experiment {i}: {number(value)}") for i, value in enumerate(values, start=1)]
        x, y = across.places(run.task.X), up.places(run.task.X)
        dot = {"size": 8, "color": OBSERVED, "line": {"color": "white", "width": 1.2}}
        star = {"size": 15, "color": BEST, "symbol": "star", "line": {"color": "white", "width": 1.2}}
        others = [i for i in range(run.task.n) if i != run.best]
        traces.append(_marks(others, x, y, hover, dot) | {"name": "experiment"})
        traces.append(_marks([run.best or 0], x, y, hover, star) | {"name": "best experiment"})
    if run.subject.suggestions is not None:
        X = run.subject.suggestions
        cross = {
            "size": 12,
            "color": SUGGESTED,
            "symbol": "x",
            "line": {"color": "white", "width": 1.2},
        }
        hover = [f"suggestion {i}" for i in range(1, len(X) + 1)]
        marks = _marks(list(range(len(X))), across.places(X), up.places(X), hover, cross)
        traces.append(marks | {"name": "suggestion"})
    return traces


def check_two(run: Run) -> None:
    """Refuse a map of a space with one parameter."""
    if len(run.parameters) < 2:
        raise Inapplicable("There is only one parameter; the chart along it shows everything.")
