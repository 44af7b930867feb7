"""The figures of the page as functions, for notebooks.

They take a prior and a task. If the prior knows its space, the axes have the names of the parameters.
If a figure does not apply, for example weights of a method without weights, a sentence takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from botorch.models.model import Model
from torch import Tensor

from scaml.common.checks import check_seed
from scaml.explain.explanations import explanation_rows, verdict_of
from scaml.explain.parameters import parameters_of, sample
from scaml.explain.run import Inapplicable, Run
from scaml.explain.shares import past_parts_of
from scaml.explain.subject import Subject
from scaml.explain.weights import weight_rows
from scaml.methods.base import MetaPrior
from scaml.report.drawing import domains, figure, note
from scaml.report.figures import (
    explanations_figure,
    left_out_figure,
    progress_figure,
    suggestions_figure,
    weights_figure,
)
from scaml.report.sections import MOST_SLICES
from scaml.report.surfaces import check_two, map_panels, slice_panel, task_curves
from scaml.spaces.space import Space
from scaml.tasks.task import Task

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["explanations", "leave_one_out", "maps", "progress", "slices", "suggestions", "weights"]

_POINTS = 256


def weights(
    model: Model, names: Sequence[str] | None = None, *, space: Space | None = None, seed: int = 0
) -> Figure:
    """The weight of every past task, with the task's shares of the prior's mean and variance.

    If the model explains itself, also the probability that the task matters.

    Args:
        model: What `prior.condition` returns.
        names: The names of the past tasks; by default those that the model knows.
        space: What the columns of X mean; by default the unit cube.
        seed: Decides the points that stand for the space.
    """
    parts = past_parts_of(model)
    task_gps = getattr(model, "task_gps", None) if parts is None else parts.task_gps
    known = tuple(getattr(task_gps, "names", ()) if names is None else names)

    def draw() -> Figure:
        d = space.d if space is not None else getattr(task_gps, "d", 1)
        X = sample(parameters_of(space, d), _POINTS, seed=check_seed(seed))
        return weights_figure(weight_rows(model, X, known))

    return _or_note(draw)


def explanations(model: Model) -> Figure:
    """Which past tasks the new one is like: a table of explanations with their probabilities.

    Args:
        model: What `prior.condition` returns.
    """
    return _or_note(lambda: explanations_figure(explanation_rows(verdict_of(model))))


def progress(task: Task, *, objective: str = "y", maximize: bool = True) -> Figure:
    """The best value so far over the experiments of a task.

    Args:
        task: The new task.
        objective: The name of y.
        maximize: False if the task holds -y of a minimized objective.
    """
    return _or_note(lambda: progress_figure(task.y, 1.0 if maximize else -1.0, objective))


def slices(
    prior: MetaPrior,
    task: Task,
    *,
    suggestions: Tensor | None = None,
    objective: str = "y",
    maximize: bool = True,
    seed: int = 0,
) -> Figure:
    """Prior and posterior along each parameter, through the best point.

    Args:
        prior: What was learned from the past.
        task: The new task so far; may be empty.
        suggestions: `k x d`; the slices of an empty task run through the first.
        objective: The name of y.
        maximize: False if the task holds -y of a minimized objective.
        seed: Decides every random draw.
    """
    run = _run(prior, task, suggestions, objective, maximize, seed)

    def draw() -> Figure:
        run.check_varies()
        curves = task_curves(run)
        parameters = run.by_sensitivity()[0][:MOST_SLICES]
        panels = [slice_panel(run, parameter, curves) for parameter in parameters]
        return _together(panels, min(len(panels), 3))

    return _or_note(draw)


def maps(
    prior: MetaPrior,
    task: Task,
    *,
    suggestions: Tensor | None = None,
    objective: str = "y",
    maximize: bool = True,
    seed: int = 0,
) -> Figure:
    """Expected value and uncertainty over the two most sensitive parameters; arguments as `slices`."""
    run = _run(prior, task, suggestions, objective, maximize, seed)

    def draw() -> Figure:
        run.check_varies()
        check_two(run)
        first, second = run.by_sensitivity()[0][:2]
        return _together(list(map_panels(run, (first, second))), 2, gap=0.18)

    return _or_note(draw)


def leave_one_out(
    prior: MetaPrior, task: Task, *, objective: str = "y", maximize: bool = True, seed: int = 0
) -> Figure:
    """Each observation predicted from all others, also by a plain GP; arguments as of `slices`."""
    run = _run(prior, task, None, objective, maximize, seed)
    return _or_note(lambda: left_out_figure(run.comparison, run.sign, objective))


def suggestions(
    prior: MetaPrior,
    task: Task,
    points: Tensor,
    *,
    objective: str = "y",
    maximize: bool = True,
    seed: int = 0,
) -> Figure:
    """Points to evaluate next as a table: parameters, expected value, and effects of past tasks.

    Args:
        prior: What was learned from the past.
        task: The new task so far; may be empty.
        points: `k x d`, as `scaml.suggest` returns them.
        objective: The name of y.
        maximize: False if the task holds -y of a minimized objective.
        seed: Decides every random draw.
    """
    run = _run(prior, task, points, objective, maximize, seed)
    found = run.suggestions
    return suggestions_figure(found, objective) if found else note("No suggestion.")


def _run(
    prior: MetaPrior, task: Task, points: Tensor | None, objective: str, maximize: bool, seed: int
) -> Run:
    subject = Subject(prior, task, objective=objective, maximize=maximize, suggestions=points)
    return Run.of(subject, seed=check_seed(seed))


def _or_note(draw: Callable[[], Figure]) -> Figure:
    try:
        return draw()
    except Inapplicable as reason:
        return note(str(reason))


def _together(panels: Sequence[Figure], columns: int, gap: float = 0.09) -> Figure:
    """Several figures as one, row by row."""
    rows = -(-len(panels) // columns)
    across, up = domains(columns, gap), domains(rows, 0.22 / rows)
    traces: list[Any] = []
    layout: dict[str, Any] = {}
    for i, panel in enumerate(panels):
        drawn, number = panel.to_dict(), str(i + 1) if i else ""
        x, y = across[i % columns], up[rows - 1 - i // columns]
        for trace in deepcopy(drawn["data"]):
            if "colorbar" in trace:
                trace["colorbar"] |= {"x": x[1], "y": (y[0] + y[1]) / 2, "len": y[1] - y[0]}
            named = {"showlegend": i == 0 and bool(trace.get("name"))}
            traces.append(trace | named | {"xaxis": f"x{number}", "yaxis": f"y{number}"})
        own = drawn["layout"]
        layout[f"xaxis{number}"] = own["xaxis"] | {"domain": x, "anchor": f"y{number}"}
        layout[f"yaxis{number}"] = own["yaxis"] | {"domain": y, "anchor": f"x{number}"}
        layout.setdefault("annotations", []).extend(_title(own, x, y))
    tall = sum(panel.layout.height for panel in panels[::columns])
    above = 1.0 + (30.0 / tall if layout["annotations"] else 0.0)
    legend = {"orientation": "h", "y": above, "yanchor": "bottom", "yref": "paper"}
    margin = {"l": 60, "r": 16, "t": 96, "b": 48}
    return figure(traces, **layout, height=tall + 96, margin=margin, showlegend=True, legend=legend)


def _title(layout: dict[str, Any], x: list[float], y: list[float]) -> list[dict[str, Any]]:
    """The title of a panel, above it; empty if the panel has none."""
    if "title" not in layout:
        return []
    place = {"x": x[0], "y": y[1], "xref": "paper", "yref": "paper", "xanchor": "left"}
    words = {"text": layout["title"]["text"], "font": {"size": 13}, "yanchor": "bottom"}
    return [place | words | {"showarrow": False}]
