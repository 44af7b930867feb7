"""Results that never ran, for the tests of figures, and what a figure shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Setting = tuple[str, int, int]
COLUMNS = ["problem", "meta_tasks", "points", "method", "run", "step", "regret"]
METHODS = ("gpbo", "scaml")


def results(
    *settings: Setting, methods: Sequence[str] = METHODS, runs: int = 3, steps: int = 4, seed: int = 0
) -> pd.DataFrame:
    """Results with regrets that fall, in an order that means nothing."""
    generator = np.random.default_rng(seed)
    rows = [
        (*setting, method, run, step, regret)
        for setting in settings
        for method in methods
        for run in range(runs)
        for step, regret in enumerate(
            np.minimum.accumulate(generator.exponential(size=steps)).tolist(), start=1
        )
    ]
    return pd.DataFrame(rows, columns=COLUMNS).sample(frac=1.0, random_state=seed)


def values(
    frame: pd.DataFrame, setting: Setting, method: str, steps: Iterable[int]
) -> list[list[float]]:
    """The regrets of every run at these steps, looked up one by one."""
    table = {tuple(row[:6]): row[6] for row in frame[COLUMNS].itertuples(index=False, name=None)}
    runs = sorted({key[4] for key in table if key[:4] == (*setting, method)})
    return [[table[*setting, method, run, step] for step in steps] for run in runs]


def titles(figure: Figure) -> list[str]:
    """The titles of the panels from left to right and from top to bottom, without dollar signs."""
    return [title_of(axes) for axes in figure.axes]


def title_of(axes: Axes) -> str:
    return axes.get_title(loc="left").replace("\n", ", ").replace("$", "").replace(" = ", "=")


def places(figure: Figure) -> list[tuple[int, int]]:
    """Row and column of every panel."""
    specs = [axes.get_subplotspec() for axes in figure.axes]
    assert all(specs)
    return [(spec.rowspan.start, spec.colspan.start) for spec in specs if spec]
