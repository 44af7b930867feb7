"""Legends of the page as HTML: one legend for several charts, which wraps on narrow screens."""

from __future__ import annotations

from collections.abc import Sequence

from scaml.explain.run import Run
from scaml.explain.shares import past_parts_of
from scaml.report.drawing import BEST, LEVEL, OBSERVED, POSTERIOR, PRIOR, SUGGESTED, tinted
from scaml.report.escape import escaped
from scaml.report.surfaces import TaskCurve
from scaml.report.text import short

__all__ = ["maps_legend", "slices_legend"]

_DASHES = {
    "solid": "",
    "dash": "6 4",
    "dot": "1.5 3",
    "dashdot": "6 3 1.5 3",
    "longdash": "10 4",
    "longdashdot": "10 3 1.5 3",
}
_STAR = "M8 1l2.1 4.6 5 .5-3.8 3.3 1.1 4.9L8 11.8l-4.4 2.5 1.1-4.9L.9 6.1l5-.5z"
_CROSS = "M3 3L13 13M13 3L3 13"


def slices_legend(run: Run, curves: Sequence[TaskCurve]) -> str:
    """What the curves and marks of the slices are."""
    items = []
    if run.before_data is not None and run.task.n:
        items.append(_line(_prior_name(run), PRIOR, "dash", width=2.0))
    items.append(_line(_posterior_name(run), POSTERIOR, "solid", width=2.6))
    for curve in curves:
        name = f"{short(curve.name, 40)} alone" if len(curve.tasks) == 1 else curve.name
        items.append(_line(name, curve.colour, curve.dash))
    if curves:
        items.append(_line("the common level", *LEVEL))
    if run.task.n:
        items += [
            _mark("experiment near the slice", OBSERVED, "white"),
            _mark("experiment elsewhere", "white", tinted(OBSERVED, 0.5)),
            _star(),
        ]
    return _list(items)


def _prior_name(run: Run) -> str:
    past = past_parts_of(run.model) is not None
    return (
        "prior: the past tasks with their present weights" if past else "prior: before any experiment"
    )


def _posterior_name(run: Run) -> str:
    return "posterior: with the new experiments" if run.task.n else "expected from the past tasks"


def maps_legend(run: Run) -> str:
    """What the marks on the maps are; empty if there are none."""
    items = [_mark("experiment", OBSERVED, "white"), _star()] if run.task.n else []
    if run.subject.suggestions is not None:
        stroke = f'stroke="{SUGGESTED}" stroke-width="4"'
        items.append(_item("suggestion", f'<path d="{_CROSS}" {stroke}/>', 16))
    return _list(items) if items else ""


def _list(items: Sequence[str]) -> str:
    return f'<ul class="legend" aria-label="legend">{"".join(items)}</ul>'


def _line(name: str, colour: str, dash: str, width: float = 1.6) -> str:
    strokes = f'stroke="{colour}" stroke-width="{width}" stroke-dasharray="{_DASHES[dash]}"'
    return _item(name, f'<line x1="0" y1="8" x2="34" y2="8" {strokes}/>', 34)


def _mark(name: str, fill: str, edge: str) -> str:
    return _item(name, f'<circle cx="8" cy="8" r="4.5" fill="{fill}" stroke="{edge}"/>', 16)


def _star() -> str:
    return _item("best experiment", f'<path d="{_STAR}" fill="{BEST}"/>', 16)


def _item(name: str, drawing: str, width: int) -> str:
    svg = f'<svg width="{width}" height="16" aria-hidden="true">{drawing}</svg>'
    return f"<li>{svg}<span>{escaped(name)}</span></li>"
