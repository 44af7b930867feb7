"""Panels of regret on logarithmic axes, and a page of them under one legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10, sqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from scaml.bench.palette import PAGE, in_order, look, style, tidy

__all__ = ["Curve", "Grid", "Panel", "page", "without_gaps", "wrapped"]

Array = NDArray[np.float64]

# In inches: the height of a row by the number of columns, and the sizes of parts of a legend.
_HEIGHTS = {1: 2.15, 2: 2.05, 3: 1.7, 4: 1.6, 5: 1.55}
_LEGEND_LINE, _LEGEND_HANDLE, _LEGEND_LETTER = 0.14, 0.45, 0.056
_MOST_DECADES = 8.0  # of an axis; smaller regrets are drawn at its lower edge
_MOST_LABELS = 6  # of the y axis
_MARKERS = 5  # of a long line


@dataclass(frozen=True, eq=False)
class Curve:
    """A method's mean and standard error over runs.

    Args:
        method: The name of the method in the results.
        x: The places of the means.
        mean: The mean at every x.
        error: The standard error at every x; NaN where there is a single run.
        runs: The number of runs at every x.
    """

    method: str
    x: Sequence[int]
    mean: Array
    error: Array
    runs: tuple[int, ...]

    @classmethod
    def of(cls, method: str, x: Sequence[int], samples: Sequence[Array]) -> Curve:
        """The curve of the values of all runs at every x."""
        errors = [
            float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else np.nan
            for values in samples
        ]
        means = np.array([values.mean() for values in samples])
        return cls(method, x, means, np.array(errors), tuple(map(len, samples)))


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes.

    Args:
        group: Panels of one group have the same limits of y.
        title: The first line above the axes.
        details: The second line.
        x_label: The label below the axes.
        y_label: The label left of the axes.
        curves: The lines, in any order.
        doubling: True if x is an amount that doubles, with a tick at every value; False if x counts
            evaluations.
    """

    group: str
    title: str
    details: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    doubling: bool = False


Grid = Sequence[Sequence[Panel | None]]
"""Rows of panels, of equal length; None leaves a place empty."""


def wrapped(panels: Sequence[Panel | None], columns: int) -> Grid:
    """The panels in rows of so many columns; the last row may be shorter."""
    return [panels[i : i + columns] for i in range(0, len(panels), columns)]


def without_gaps(grid: Grid) -> Grid:
    """The grid without empty rows and columns; short rows are filled up with None."""
    rows = [list(row) for row in grid if any(row)]
    width = max(map(len, rows), default=0)
    padded = [row + [None] * (width - len(row)) for row in rows]
    kept = [j for j in range(width) if any(row[j] for row in padded)]
    return [[row[j] for j in kept] for row in padded]


def page(grid: Grid) -> Figure:
    """All panels of a grid at their printed size, with one legend below them."""
    panels = [panel for row in grid for panel in row if panel]
    methods = in_order(curve.method for panel in panels for curve in panel.curves)
    limits = {panel.group: _limits(p for p in panels if p.group == panel.group) for panel in panels}
    columns = len(grid[0])
    # If the numbers of runs differ, they go into the titles, which are narrow on many columns.
    differ, apart = len({_runs(panel) for panel in panels}) > 1, "\n" if columns > 3 else ", "
    width = PAGE["column"] if columns == 1 else PAGE["text"]
    labels = _labels(methods)
    legend_rows = _legend_rows(labels, width)
    note = _note(panels, limits)
    lines = legend_rows + len(note.splitlines())
    height = len(grid) * _HEIGHTS[columns] + lines * _LEGEND_LINE + 0.2
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        places = figure.subplots(len(grid), columns, squeeze=False)
        for i, row in enumerate(grid):
            for j, panel in enumerate(row):
                axes = places[i, j]
                if panel is None:
                    axes.remove()
                    continue
                _draw(axes, panel, limits[panel.group], methods)
                runs = f"{apart}{_runs(panel)}" if differ else ""
                axes.set_title(f"{_plain(panel.title)}\n{panel.details}{runs}", loc="left", pad=3.0)
                left = row[j - 1] if j else None
                if left is None:
                    axes.set_ylabel(panel.y_label)
                elif left.group == panel.group:
                    axes.tick_params(labelleft=False)
                if not any(below[j] for below in grid[i + 1 :]):
                    axes.set_xlabel(panel.x_label)
        _legend(figure, methods, labels, legend_rows, note)
    return figure


def _plain(text: str) -> str:
    """The text with its dollar signs escaped: matplotlib would read a formula between two of them."""
    return text.replace("$", r"\$")


def _runs(*panels: Panel) -> str:
    """The number of runs, in words."""
    counts = [n for panel in panels for curve in panel.curves for n in curve.runs]
    fewest, most = min(counts), max(counts)
    if fewest < most:
        return f"{fewest} to {most} runs"
    return f"{most} run{'' if most == 1 else 's'}"


def _note(panels: Sequence[Panel], limits: dict[str, tuple[float, float]]) -> str:
    """The sentence that says what lines and bands are."""
    runs = _runs(*panels)
    note = runs if runs == "1 run" else f"mean and standard error of {runs}"
    if any((curve.mean < limits[panel.group][0]).any() for panel in panels for curve in panel.curves):
        note += "\nat the lower edge: a regret of 0, or below the scale"
    return note


def _limits(panels: Iterable[Panel]) -> tuple[float, float]:
    """Limits of y that show all positive means and the upper edges of their bands, up to 8 decades."""
    curves = [curve for panel in panels for curve in panel.curves]
    means = np.concatenate([curve.mean for curve in curves])
    tops = np.concatenate([curve.mean + np.nan_to_num(curve.error) for curve in curves])
    if not (means > 0.0).any():
        return 0.1, 1.0
    high = float(tops.max())
    low = max(float(means[means > 0.0].min()), high * 10.0**-_MOST_DECADES)
    # Leave room above and below, also if the line is flat.
    margin = (high / low) ** 0.05 * 1.05
    return low / margin, high * margin


def _draw(axes: Axes, panel: Panel, limits: tuple[float, float], methods: Sequence[str]) -> None:
    for curve in panel.curves:
        seen, x = look(curve.method), np.array(curve.x)
        # A logarithmic axis has no 0.
        line = np.maximum(curve.mean, limits[0])
        every = max(1, ceil(len(x) / _MARKERS))
        # The markers of each method begin elsewhere, so they do not hide each other.
        first = methods.index(curve.method) * every // len(methods)
        axes.plot(x, line, **seen.line, markevery=(first, every))
        lower = np.maximum(curve.mean - curve.error, limits[0])
        upper = np.maximum(curve.mean + curve.error, limits[0])
        axes.fill_between(x, lower, upper, color=seen.colour, alpha=0.15, linewidth=0.0, zorder=2.0)
    axes.set_yscale("log")
    axes.set_ylim(*limits)
    _label_logarithms(axes, *limits)
    values = sorted({value for curve in panel.curves for value in curve.x})
    if panel.doubling:
        axes.margins(x=0.03)
        _label_values(axes, values)
    else:
        margin = max(0.5, 0.03 * len(values))
        axes.set_xlim(values[0] - margin, values[-1] + margin)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    tidy(axes)


def _label_values(axes: Axes, values: Sequence[int]) -> None:
    """Put a tick at every value of a logarithmic x axis, and a number where there is room."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_minor_locator(NullLocator())
    room = (values[-1] / values[0]) ** 0.08
    labels: list[str] = []
    last = 0.0
    for value in values:
        labels.append(str(value) if value >= last * room else "")
        last = value if labels[-1] else last
    axes.xaxis.set_ticklabels(labels)


def _label_logarithms(axes: Axes, low: float, high: float) -> None:
    """Label y with round numbers (1, 2, 5, 10, ...) if they are few, else with powers of ten."""
    decades = range(floor(log10(low)), ceil(log10(high)))
    powers = [10.0**k for k in range(ceil(log10(low)), floor(log10(high)) + 1)]
    round_ones = [digit * 10.0**k for k in decades for digit in (1, 2, 5)]
    major, written = [tick for tick in round_ones if low <= tick <= high], _number
    if len(major) < 2:
        major = list(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(low, high))
    elif len(major) > _MOST_LABELS:
        major, written = powers[:: ceil(len(powers) / _MOST_LABELS)], _power
    minor = [digit * 10.0**k for k in decades for digit in range(1, 10)]
    axes.yaxis.set_major_locator(FixedLocator(major))
    axes.yaxis.set_minor_locator(FixedLocator(minor if len(powers) <= _MOST_LABELS else powers))
    axes.yaxis.set_major_formatter(FuncFormatter(written))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _power(value: float, _position: int | None = None) -> str:
    return f"$10^{{{round(log10(value))}}}$"


def _number(value: float, _position: int | None = None) -> str:
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    digits, _, exponent = f"{value:.3e}".partition("e")
    return rf"${float(digits):g} \cdot 10^{{{int(exponent)}}}$"


def _labels(methods: Sequence[str]) -> list[str]:
    """Names for the legend; two classes of the same name get their files in front."""
    short = [look(method).label for method in methods]
    return [
        _plain(label if short.count(label) == 1 else method)
        for label, method in zip(short, methods, strict=True)
    ]


def _legend_rows(labels: Sequence[str], width: float) -> int:
    """The smallest number of rows that fits the width."""
    for rows in range(1, len(labels)):
        columns = ceil(len(labels) / rows)
        longest = [max(map(len, labels[j::columns])) for j in range(columns)]
        if sum(_LEGEND_HANDLE + _LEGEND_LETTER * letters for letters in longest) <= width:
            return rows
    return len(labels)


def _legend(
    figure: Figure, methods: Sequence[str], labels: Sequence[str], rows: int, note: str
) -> None:
    """Draw one entry per method, row by row, in the order of `methods`."""
    columns = ceil(len(methods) / rows)
    # Matplotlib fills legends column by column.
    order = [i for first in range(columns) for i in range(first, len(methods), columns)]
    legend = figure.legend(
        [Line2D([], [], **look(methods[i]).line) for i in order],
        [labels[i] for i in order],
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        title=note,
        handlelength=2.6,
        columnspacing=1.2,
        labelspacing=0.3,
        borderpad=0.1,
    )
    legend.get_title().set_multialignment("center")
