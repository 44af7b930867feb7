"""The paper's figures of regret, drawn from the results of runs.

A figure is a grid of panels; panels without results are left out. Every line is a mean over runs, its
band the standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from scaml.bench.palette import in_order, write
from scaml.bench.panels import Curve, Grid, Panel, page, without_gaps, wrapped
from scaml.bench.problems import PROBLEMS
from scaml.bench.regret_figure import Array, Key, by_setting, regret_panel, regrets, title_of
from scaml.common.wording import nearest
from scaml.errors import SettingError

__all__ = ["FIGURES", "build", "draw"]

_SYNTHETIC, _SYNTHETIC_TASKS = ("branin", "hartmann3", "hartmann6"), (8, 32)
_HPO = (
    *("svm", "mlp", "xgb", "rf", "lr"),
    *("fcnet-slice", "fcnet-protein", "fcnet-naval", "fcnet-parkinsons"),
)
_ABLATED, _ABLATION_TASKS = ("branin", "hartmann6"), 8

_Results = dict[Key, pd.DataFrame]


def draw(frame: pd.DataFrame, figure: str, folder: Path) -> list[Path]:
    """Draw a figure as PNG and PDF; equal results give equal files.

    Args:
        frame: The results, one row per evaluation.
        figure: One of `FIGURES`.
        folder: Where the files go; made if it does not exist.

    Returns:
        The paths of the PNG and of the PDF.

    Raises:
        SettingError: If there is no such figure, or no result for any of its panels.
    """
    return write(build(frame, figure), folder, figure)


def build(frame: pd.DataFrame, figure: str) -> Figure:
    """The figure at its printed size. Arguments and errors as of `draw`."""
    if figure not in _PLANS:
        raise SettingError(f"There is no figure {figure!r}; did you mean {nearest(figure, FIGURES)!r}?")
    arrange, needs = _PLANS[figure]
    grid = without_gaps(arrange(by_setting(frame)))
    if not grid:
        # The figures of the appendix show the runs of the ablations in another way.
        runs = figure.replace("appendix", "ablation")
        raise SettingError(
            f"The results hold nothing for the figure {figure!r}, which needs {needs}; run "
            f"python -m study paper --figure {runs}."
        )
    return page(grid)


def _over_sizes(chosen: dict[int, pd.DataFrame], problem: str, fixed: str, x_label: str) -> Panel:
    """Cumulative regret over the amount of meta-data, which is the key of `chosen`."""
    # Sums of different numbers of steps cannot be compared.
    steps = min(int(rows["step"].max()) for rows in chosen.values())
    totals: dict[str, dict[int, Array]] = {}
    for size, rows in chosen.items():
        for method, values in regrets(rows).items():
            totals.setdefault(method, {})[size] = values[:, :steps].sum(axis=1)
    curves = [
        Curve.of(method, list(totals[method]), list(totals[method].values()))
        for method in in_order(totals)
    ]
    details = f"{fixed}, {steps} evaluations"
    title = title_of(problem)
    return Panel(problem, title, details, x_label, "cumulative regret", curves, doubling=True)


def _panel_of(results: _Results, setting: Key) -> Panel | None:
    return regret_panel(setting, results[setting]) if setting in results else None


def _synthetic(results: _Results) -> Grid:
    return [
        [_panel_of(results, (name, tasks, PROBLEMS[name].points)) for name in _SYNTHETIC]
        for tasks in _SYNTHETIC_TASKS
    ]


def _hpo(results: _Results) -> Grid:
    def preferred(setting: Key) -> tuple[bool, int, int]:
        """The paper's N_m before others, then the setting with the most meta-data."""
        name, tasks, points = setting
        return points == PROBLEMS[name].points, tasks, points

    found = [[setting for setting in results if setting[0] == name] for name in _HPO]
    return wrapped([_panel_of(results, max(s, key=preferred)) for s in found if s], 3)


def _varied(results: _Results, name: str, by: str) -> dict[int, pd.DataFrame]:
    """The ablation of a problem by M or by N_m, ascending, at the figure's value of the other."""
    points = PROBLEMS[name].points
    return {
        m if by == "tasks" else n: rows
        for (other, m, n), rows in results.items()
        if other == name and (n == points if by == "tasks" else m == _ABLATION_TASKS)
    }


def _ablation(results: _Results, by: str) -> Grid:
    row: list[Panel | None] = []
    for name in _ABLATED:
        if by == "tasks":
            fixed, x_label = f"$N_m = {PROBLEMS[name].points}$", "meta-tasks $M$"
        else:
            fixed, x_label = f"$M = {_ABLATION_TASKS}$", "points per meta-task $N_m$"
        chosen = _varied(results, name, by)
        row.append(_over_sizes(chosen, name, fixed, x_label) if chosen else None)
    return [row]


def _appendix(results: _Results, by: str) -> Grid:
    grid: list[Sequence[Panel | None]] = []
    for name in _ABLATED:
        panels = []
        for size, rows in _varied(results, name, by).items():
            tasks, points = (size, PROBLEMS[name].points) if by == "tasks" else (_ABLATION_TASKS, size)
            panels.append(regret_panel((name, tasks, points), rows))
        grid += wrapped(panels, 5)
    return grid


def _each(names: Sequence[str]) -> str:
    return " or ".join(f"{name} with N_m = {PROBLEMS[name].points}" for name in names)


_AT_TASKS = f"{' or '.join(_ABLATED)} with M = {_ABLATION_TASKS}, at any N_m"

_PLANS: dict[str, tuple[Callable[[_Results], Grid], str]] = {
    "synthetic": (_synthetic, f"{_each(_SYNTHETIC)}, at M = 8 or 32"),
    "hpo": (_hpo, f"one of {', '.join(_HPO)}"),
    "ablation-tasks": (partial(_ablation, by="tasks"), f"{_each(_ABLATED)}, at any M"),
    "ablation-points": (partial(_ablation, by="points"), _AT_TASKS),
    "appendix-tasks": (partial(_appendix, by="tasks"), f"{_each(_ABLATED)}, at any M"),
    "appendix-points": (partial(_appendix, by="points"), _AT_TASKS),
}

FIGURES = tuple(_PLANS)
"""The names of the figures."""
