"""The figure of the choices: the regret of each choice over that of the former default with UCB.

A point is the geometric mean of a choice's ratios of cumulative regret to `scaml-ucb`, over the
problems of one kind. Its bar reaches two standard errors to either side. Left of 1, the choice is
better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from scaml.bench.palette import PAGE, look, style, tidy, write
from scaml.errors import SettingError
from study import regret_ratios

__all__ = ["ChoiceRatios", "build", "compute", "draw"]

_REFERENCE, _OTHERS = "scaml-ucb", ("scaml", "scaml-shared", "scaml-paper", "gpbo")
_KINDS = ("tables", "synthetic")  # the safety families test a default; they do not choose one
_ROW, _EDGE = 0.135, 0.75  # inches: height of a choice, and what titles and labels take
_STANDARD_ERRORS = 2.0
_TICKS = (0.25, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0)
_MOST = 4.0  # the axis ends here; a larger ratio is drawn as an arrow
_BETTER, _EVEN, _WORSE = "#009E73", "#888888", "#D55E00"


@dataclass(frozen=True, eq=False)
class ChoiceRatios:
    """The numbers of the figure: one row per choice, one column per kind of problems.

    Args:
        ratios: Geometric means of ratios to `scaml-ucb`.
        errors: The standard errors of `ratios`; NaN if there is a single run.
        runs: The smallest number of runs on any problem.
    """

    ratios: pd.DataFrame
    errors: pd.DataFrame
    runs: pd.Series[int]


def compute(frame: pd.DataFrame) -> ChoiceRatios:
    """The ratios of all choices that have results on every problem of tables and synthetic families.

    Choices of one factor follow each other. Combinations of choices come next, then the default and the
    paper's setting.

    Args:
        frame: The results, one row per evaluation.

    Raises:
        SettingError: If there is no choice, or no `scaml-ucb` to compare with.
    """
    shown = frame[frame["problem"].map(regret_ratios.kind_of).isin(_KINDS)] if len(frame) else frame
    methods = set(shown["method"]) - {_REFERENCE, *_OTHERS} if len(shown) else set()
    table = regret_ratios.ratios(shown, _REFERENCE) if methods else pd.DataFrame()
    whole = [name for name in table.dropna().index if name in methods and "=" in name]
    if not whole:
        raise SettingError(
            "The results hold nothing for the figure 'choices', which needs scaml-ucb and a choice "
            "on the same problems; run python -m study ablate."
        )
    order = sorted(whole, key=lambda name: ("+" in name, name))
    order += [name for name in _OTHERS if name in table.dropna().index]
    table = table.loc[order]
    errors = regret_ratios.ratio_errors(shown, _REFERENCE).loc[order, table.columns]
    counts = shown.groupby(["method", "problem"])["run"].nunique().unstack()
    ratios = regret_ratios.overview(table)
    kinds = [kind for kind in _KINDS if kind in ratios]
    return ChoiceRatios(
        ratios[kinds],
        regret_ratios.overview_errors(table, errors)[kinds],
        counts.loc[order].min(axis=1).astype(int),
    )


def draw(frame: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw `choices.png` and `choices.pdf` and return their paths. Errors as of `compute`."""
    return write(build(frame), folder, "choices")


def build(frame: pd.DataFrame) -> Figure:
    """The figure at its printed size. Argument and errors as of `compute`."""
    found = compute(frame)
    with style():
        height = _EDGE + _ROW * len(found.ratios)
        figure = Figure(figsize=(PAGE["text"], height), layout="constrained")
        FigureCanvasAgg(figure)
        columns = list(found.ratios)
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, kind in zip(panels, columns, strict=True):
            _panel(axes, found, kind)
        panels[0].set_yticks(range(len(found.ratios)), [_label(name) for name in found.ratios.index])
        panels[0].set_ylim(len(found.ratios) - 0.4, -0.6)
        most, least = found.runs.max(), found.runs.min()
        runs = f"{most} runs" if most == least else f"{least} to {most} runs"
        figure.supxlabel(
            f"cumulative regret over that with UCB, two standard errors, {runs}: left of 1 is better",
            fontsize=7.0,
        )
    return figure


def _label(name: str) -> str:
    return name if "=" in name else look(name).label


def _panel(axes: Axes, found: ChoiceRatios, kind: str) -> None:
    values, errors = found.ratios[kind], _STANDARD_ERRORS * found.errors[kind]
    for place, (value, error) in enumerate(zip(values, errors, strict=True)):
        # The error of a single run is NaN, for which neither comparison holds.
        colour = _WORSE if value - error > 1.0 else _BETTER if value + error < 1.0 else _EVEN
        if value > _MOST:
            _beyond(axes, place, value, colour)
        else:
            bar = None if math.isnan(error) else error
            axes.errorbar(value, place, xerr=bar, fmt="o", color=colour, markersize=3.0, linewidth=0.9)
    axes.axvline(1.0, color="0.3", linewidth=0.6, zorder=1.0)
    _shade(axes, list(values.index))
    axes.set_xscale("log")
    low, high = values.sub(errors, fill_value=0.0).min(), values.add(errors, fill_value=0.0).max()
    axes.set_xlim(max(0.95 * low, 1.0 / _MOST), min(1.05 * high, _MOST))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title(kind)
    tidy(axes)
    axes.grid(visible=False, axis="y")


def _beyond(axes: Axes, place: int, value: float, colour: str) -> None:
    axes.plot(_MOST, place, marker=">", color=colour, markersize=3.5, clip_on=False)
    axes.annotate(
        f"{value:.1f}",
        (_MOST, place),
        xytext=(-5.0, 0.0),
        textcoords="offset points",
        ha="right",
        va="center",
    )


def _shade(axes: Axes, names: Sequence[str]) -> None:
    """Shade every other factor grey; all rows that are not a single choice count as one factor."""
    factors = [name.partition("=")[0] if "=" in name and "+" not in name else "" for name in names]
    first = 0
    for place, (_, group) in enumerate(groupby(factors)):
        last = first + len(list(group))
        if place % 2:
            axes.axhspan(first - 0.5, last - 0.5, color="0.96", zorder=0.0)
        first = last
