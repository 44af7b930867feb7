"""The figure of regret: one panel per setting of the results, with one line per method.

A line is the mean over runs of the simple regret after every evaluation, a band its standard error.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from scaml.bench.palette import in_order, write
from scaml.bench.panels import Curve, Panel, page, without_gaps, wrapped
from scaml.bench.problems import PROBLEMS
from scaml.errors import SettingError

__all__ = ["Array", "Key", "build", "by_setting", "draw", "regret_panel", "regrets", "title_of"]

Array = NDArray[np.float64]
Key = tuple[str, int, int]
"""A setting as results name it: problem, M, N_m."""


def draw(frame: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw `regret.png` and `regret.pdf`; equal results give equal files.

    Args:
        frame: The results, one row per evaluation.
        folder: Where the files go; made if it does not exist.

    Returns:
        The paths of the PNG and of the PDF.

    Raises:
        SettingError: If there are no results.
    """
    return write(build(frame), folder, "regret")


def build(frame: pd.DataFrame) -> Figure:
    """The figure at its printed size. Argument and errors as of `draw`."""
    settings = by_setting(frame)
    if not settings:
        raise SettingError("There are no results to draw; run scaml bench run branin.")
    places = {name: place for place, name in enumerate(PROBLEMS)}
    order = sorted(settings, key=lambda key: (places.get(key[0], len(places)), *key))
    columns = 2 if len(order) in (2, 4) else 3 if len(order) <= 15 else 4
    panels = [regret_panel(key, settings[key]) for key in order]
    return page(without_gaps(wrapped(panels, columns)))


def by_setting(frame: pd.DataFrame) -> dict[Key, pd.DataFrame]:
    """The rows of every setting."""
    # A frame of no rows may have no columns either.
    return dict(iter(frame.groupby(["problem", "meta_tasks", "points"]))) if len(frame) else {}


def regrets(rows: pd.DataFrame) -> dict[str, Array]:
    """The simple regrets of one setting, `runs x steps`, by method in the order of legends."""
    by_method = dict(iter(rows.groupby("method")))
    return {
        method: by_method[method]
        .pivot(index="run", columns="step", values="regret")
        .to_numpy(dtype=np.float64)
        for method in in_order(by_method)
    }


def regret_panel(setting: Key, rows: pd.DataFrame) -> Panel:
    """Simple regret over evaluations."""
    problem, tasks, points = setting
    curves = [
        Curve.of(method, range(1, values.shape[1] + 1), list(values.T))
        for method, values in regrets(rows).items()
    ]
    details = f"$M = {tasks}$, $N_m = {points}$"
    return Panel(problem, title_of(problem), details, "evaluations", "simple regret", curves)


def title_of(problem: str) -> str:
    """The problem's name in figures; of an unknown problem, its name in the results."""
    return PROBLEMS[problem].title if problem in PROBLEMS else problem
