"""The paper's figures of regret, and that of the choices, drawn from the results of runs.

A setting is a problem with M meta-tasks of N_m points each. A figure is a grid of panels; those that
the results cannot fill are left out. Every line is the mean over runs, its band the standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from scaml.bench import worth
from scaml.bench.palette import in_order, write
from scaml.bench.panels import Curve, Grid, Panel, page
from scaml.bench.problems import PROBLEMS
from scaml.common.wording import nearest
from scaml.errors import SettingError

__all__ = ["FIGURES", "build", "draw"]

Array = NDArray[np.float64]
Setting = tuple[str, int, int]  # problem, M, N_m

_SYNTHETIC, _SYNTHETIC_TASKS = ("branin", "hartmann3", "hartmann6"), (8, 32)
_HPO = (
    *("svm", "mlp", "xgb", "rf", "lr"),
    *("fcnet-slice", "fcnet-protein", "fcnet-naval", "fcnet-parkinsons"),
)
_ABLATED, _ABLATION_TASKS = ("branin", "hartmann6"), 8

_CHOICES = "choices"

_Results = dict[Setting, pd.DataFrame]


def draw(frame: pd.DataFrame, figure: str, folder: Path) -> list[Path]:
    """Draw a figure as PNG and PDF; equal results give equal files.

    Args:
        frame: The results, one row an evaluation.
        figure: One of `FIGURES`.
        folder: Where the files go; made if it is not there.

    Returns:
        The paths of the PNG and of the PDF.

    Raises:
        SettingError: If there is no such figure, or no result for any of its panels.
    """
    return write(build(frame, figure), folder, figure)


def build(frame: pd.DataFrame, figure: str) -> Figure:
    """The figure itself, at its printed size. Arguments and errors as of `draw`."""
    if figure == _CHOICES:
        return worth.build(frame)
    if figure not in _PLANS:
        raise SettingError(f"There is no figure {figure!r}; did you mean {nearest(figure, FIGURES)!r}?")
    arrange, needs = _PLANS[figure]
    # A frame of no rows may have no columns either.
    settings = frame.groupby(["problem", "meta_tasks", "points"]) if len(frame) else ()
    grid = _compact(arrange(dict(iter(settings))))
    if not grid:
        # The appendix shows the runs of the ablations once more.
        runs = figure.replace("appendix", "ablation")
        command = "run branin" if figure == "regret" else f"paper --figure {runs}"
        raise SettingError(
            f"The results hold nothing for the figure {figure!r}, which needs {needs}; run "
            f"scaml bench {command}."
        )
    return page(grid)


# From results to panels.


def _regrets(rows: pd.DataFrame) -> dict[str, Array]:
    """Simple regrets, `runs x steps`, by method in fixed order."""
    by_method = dict(iter(rows.groupby("method")))
    return {
        method: by_method[method]
        .pivot(index="run", columns="step", values="regret")
        .to_numpy(dtype=np.float64)
        for method in in_order(by_method)
    }


def _over_steps(setting: Setting, rows: pd.DataFrame) -> Panel:
    """Simple regret over evaluations."""
    problem, tasks, points = setting
    curves = [
        Curve.of(method, range(1, values.shape[1] + 1), list(values.T))
        for method, values in _regrets(rows).items()
    ]
    details = f"$M = {tasks}$, $N_m = {points}$"
    return Panel(problem, _title(problem), details, "evaluations", "simple regret", curves)


def _over_sizes(chosen: dict[int, pd.DataFrame], problem: str, fixed: str, x_label: str) -> Panel:
    """Cumulative regret over the amount of meta-data, which is the key of `chosen`."""
    # Sums of different numbers of steps cannot be compared.
    steps = min(int(rows["step"].max()) for rows in chosen.values())
    totals: dict[str, dict[int, Array]] = {}
    for size, rows in chosen.items():
        for method, values in _regrets(rows).items():
            totals.setdefault(method, {})[size] = values[:, :steps].sum(axis=1)
    curves = [
        Curve.of(method, list(totals[method]), list(totals[method].values()))
        for method in in_order(totals)
    ]
    details = f"{fixed}, {steps} evaluations"
    title = _title(problem)
    return Panel(problem, title, details, x_label, "cumulative regret", curves, doubling=True)


def _title(problem: str) -> str:
    return PROBLEMS[problem].title if problem in PROBLEMS else problem


def _panel_of(results: _Results, setting: Setting) -> Panel | None:
    return _over_steps(setting, results[setting]) if setting in results else None


def _synthetic(results: _Results) -> Grid:
    return [
        [_panel_of(results, (name, tasks, PROBLEMS[name].points)) for name in _SYNTHETIC]
        for tasks in _SYNTHETIC_TASKS
    ]


def _hpo(results: _Results) -> Grid:
    def preferred(setting: Setting) -> tuple[bool, int, int]:
        """The paper's N_m before others, then what has most meta-data."""
        name, tasks, points = setting
        return points == PROBLEMS[name].points, tasks, points

    found = [[setting for setting in results if setting[0] == name] for name in _HPO]
    return _wrapped([_panel_of(results, max(s, key=preferred)) for s in found if s], 3)


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
            fixed, x_label = f"$M = {_ABLATION_TASKS}$", "points a meta-task $N_m$"
        chosen = _varied(results, name, by)
        row.append(_over_sizes(chosen, name, fixed, x_label) if chosen else None)
    return [row]


def _appendix(results: _Results, by: str) -> Grid:
    grid: list[Sequence[Panel | None]] = []
    for name in _ABLATED:
        panels = []
        for size, rows in _varied(results, name, by).items():
            tasks, points = (size, PROBLEMS[name].points) if by == "tasks" else (_ABLATION_TASKS, size)
            panels.append(_over_steps((name, tasks, points), rows))
        grid += _wrapped(panels, 5)
    return grid


def _everything(results: _Results) -> Grid:
    places = {name: place for place, name in enumerate(PROBLEMS)}
    settings = sorted(results, key=lambda s: (places.get(s[0], len(places)), *s))
    columns = 2 if len(settings) in (2, 4) else 3 if len(settings) <= 15 else 4
    return _wrapped([_panel_of(results, setting) for setting in settings], columns)


def _wrapped(panels: Sequence[Panel | None], columns: int) -> Grid:
    return [panels[i : i + columns] for i in range(0, len(panels), columns)]


def _compact(grid: Grid) -> Grid:
    """Without empty rows and columns; every row padded to the same length."""
    rows = [list(row) for row in grid if any(row)]
    width = max(map(len, rows), default=0)
    padded = [row + [None] * (width - len(row)) for row in rows]
    kept = [j for j in range(width) if any(row[j] for row in padded)]
    return [[row[j] for j in kept] for row in padded]


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
    "regret": (_everything, "a run of any problem"),
}

FIGURES = (*_PLANS, _CHOICES)
"""The names of the figures."""
