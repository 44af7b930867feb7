"""What all figures share: colours, axes, and Plotly, which is imported when the first figure is drawn.

The colours are those of Okabe and Ito, which colour-blind people can distinguish. Marks and dashes
differ too, so that figures can be read without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import ceil, log10
from typing import TYPE_CHECKING, Any

from scaml.errors import SettingError
from scaml.explain.parameters import Parameter
from scaml.report.escape import label
from scaml.report.text import setting, short

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = [
    "BEST",
    "FONT",
    "GREY",
    "INK",
    "LEVEL",
    "LINE",
    "OBSERVED",
    "OTHERS",
    "PLAIN",
    "POSTERIOR",
    "PRIOR",
    "SUGGESTED",
    "TASKS",
    "axis",
    "band",
    "domains",
    "figure",
    "note",
    "parameter_axis",
    "plotly",
    "tinted",
]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, GREY, LINE = "#24292f", "#5b6570", "#e6e8eb"
POSTERIOR, PRIOR, PLAIN = "#0072B2", "#7a7f85", "#D55E00"
OBSERVED, BEST, SUGGESTED = "#24292f", "#24292f", "#D55E00"
TASKS = (
    ("#E69F00", "dash"),
    ("#009E73", "dashdot"),
    ("#CC79A7", "longdash"),
    ("#56B4E9", "longdashdot"),
)
"""Colours and dashes of the past tasks that have a line of their own."""
OTHERS, LEVEL = ("#8a6d3b", "dot"), ("#b5bac0", "dot")

_HOVER = {"bgcolor": "white", "bordercolor": "#c9cdd2", "font": {"color": INK, "size": 12}}
_MOST_TICKS = 6


def plotly(module: str = "graph_objects") -> Any:
    """A module of Plotly; if Plotly is not installed, an error says how to install it."""
    try:
        return import_module(f"plotly.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        raise SettingError(
            "Reports are drawn with Plotly, which is not installed; run pip install 'scaml[report]'."
        ) from None


def figure(traces: Sequence[Any] = (), **layout: Any) -> Figure:
    """A figure in the style of the page; traces are Plotly's objects or dictionaries."""
    go = plotly()
    look: dict[str, Any] = {
        # An empty template: the user's default template must not change the figure.
        "template": go.layout.Template(),
        "font": {"family": FONT, "size": 12, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "margin": {"l": 60, "r": 16, "t": 24, "b": 48},
        "hoverlabel": _HOVER,
        "hovermode": "closest",
        "showlegend": False,
    }
    return go.Figure(data=list(traces), layout=look | layout)


def note(sentence: str) -> Figure:
    """A sentence in place of a figure."""
    hidden = {"visible": False, "range": [0, 1]}
    words = {
        "text": label(sentence),
        "x": 0.5,
        "y": 0.5,
        "showarrow": False,
        "font": {"size": 14, "color": GREY},
    }
    return figure(xaxis=hidden, yaxis=hidden, annotations=[words], height=140)


def axis(title: str = "", **settings: Any) -> dict[str, Any]:
    """An axis with a light grid, without a frame and without a line at zero."""
    quiet: dict[str, Any] = {
        "title": {"text": label(short(title, 44)), "font": {"size": 12, "color": GREY}, "standoff": 8},
        "gridcolor": LINE,
        "linecolor": "#c9cdd2",
        "showline": True,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "#c9cdd2",
        "tickfont": {"size": 11, "color": GREY},
        "automargin": True,
        # Plotly must not read names that look like dates or numbers as dates or numbers.
        "type": "linear",
    }
    return quiet | settings


def parameter_axis(parameter: Parameter, **settings: Any) -> dict[str, Any]:
    """The axis of a parameter: linear, logarithmic, or with the names of the choices."""
    low, high = parameter.ends
    if parameter.choices:
        names = [label(short(setting(choice), 14)) for choice in parameter.choices]
        settings = {
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "range": [low, high],
            "showgrid": False,
        } | settings
    elif parameter.log:
        reach = 0.03 * (log10(high) - log10(low))
        settings = {
            "type": "log",
            "range": [log10(low) - reach, log10(high) + reach],
            # Ticks at decades if there are enough of them; otherwise Plotly chooses the ticks.
            "dtick": ceil(log10(high / low) / 5) if high / low > 99 else None,
            "exponentformat": "power" if high >= 1e4 or low < 1e-3 else "none",
        } | settings
    else:
        reach = 0.03 * (high - low)
        settings = {"range": [low - reach, high + reach], "nticks": _MOST_TICKS} | settings
    return axis(parameter.name, **settings)


def band(
    x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> dict[str, Any]:
    """The area between two curves."""
    return {
        "type": "scatter",
        "x": [*x, *reversed(x)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": tinted(colour, 0.16),
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "showlegend": False,
    }


def domains(n: int, gap: float) -> list[list[float]]:
    """Begin and end of n equal parts of a figure's width, or height, with gaps between them.

    Examples:
        >>> domains(2, 0.5)
        [[0.0, 0.25], [0.75, 1.0]]
    """
    length = (1.0 - gap * (n - 1)) / n
    starts = [i * (length + gap) for i in range(n)]
    return [[start, min(start + length, 1.0)] for start in starts]  # rounding may go beyond 1


def tinted(colour: str, opacity: float) -> str:
    """A translucent colour.

    Examples:
        >>> tinted("#0072B2", 0.5)
        'rgba(0, 114, 178, 0.5)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"
