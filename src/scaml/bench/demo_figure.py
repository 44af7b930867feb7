"""The figure of the demonstration: two regret curves, and which past tasks matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from scaml.bench.demo import PLAIN, SCAML, DemoResult
from scaml.bench.demo_past import ROLES, role_of
from scaml.common.files import replacing

__all__ = ["draw"]

# Colours of Okabe and Ito, which colour-blind readers can tell apart; markers and line styles do so in
# black and white. The colours of the methods are not used again for past tasks. Broken lines are drawn
# above the solid ones of relatives: where they coincide, both are seen.
_METHODS: dict[str, dict[str, Any]] = {
    SCAML: {"color": "#0072B2", "marker": "o"},
    PLAIN: {"color": "#D55E00", "marker": "s"},
}
_LOOKS: dict[str, dict[str, Any]] = {
    "twin": {"color": "#009E73", "linewidth": 2.8, "marker": "o", "markersize": 4.5, "zorder": 5.0},
    "relative": {"color": "#E69F00", "linewidth": 1.5, "linestyle": "-", "zorder": 3.0},
    "stranger": {"color": "#CC79A7", "linewidth": 1.5, "linestyle": "--", "zorder": 4.0},
    "none": {"color": "0.35", "linewidth": 1.5, "linestyle": ":", "zorder": 3.5},
}
_LEAST_DRAWN = 1e-6  # a logarithmic axis has no 0


def draw(result: DemoResult, path: Path) -> None:
    """Draw regrets and probabilities into a PNG file, which is written whole or not at all."""
    figure = Figure(figsize=(10.0, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_regrets(left, result)
    _draw_probabilities(right, result)
    with replacing(path) as draft:
        figure.savefig(draft, format="png")


def _draw_regrets(axes: Axes, result: DemoResult) -> None:
    for name, regrets in result.regrets.items():
        axes.plot(
            range(1, len(regrets) + 1),
            np.maximum(regrets, _LEAST_DRAWN),
            drawstyle="steps-post",
            markersize=4.5,
            linewidth=1.8,
            label=name,
            **_METHODS[name],
        )
    axes.set_yscale("log")
    axes.set_ylabel("simple regret")
    _finish(axes, f"{result.family.title}, seed {result.seed}: distance from the optimum")


def _draw_probabilities(axes: Axes, result: DemoResult) -> None:
    names = [name for role in ROLES for name in result.matters if role_of(name) == role]
    labelled = set()
    for name in names:
        role = role_of(name)
        label = None if role in labelled else _label(role, result)
        labelled.add(role)
        axes.plot(result.matters[name], label=label, **_LOOKS[role])
    axes.plot(result.none, label="no past task", **_LOOKS["none"])
    axes.annotate(
        "twin",
        (len(result.none) - 1, result.matters["twin"][-1]),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        weight="bold",
        color=_LOOKS["twin"]["color"],
    )
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("probability")
    _finish(axes, "Which past tasks matter to the new one?")


def _label(role: str, result: DemoResult) -> str:
    """In the legend: "3 relatives"."""
    count = sum(role_of(name) == role for name in result.matters)
    return role if role == "twin" else f"{count} {role}{'s' if count > 1 else ''}"


def _finish(axes: Axes, title: str) -> None:
    axes.set_xlabel("evaluations")
    axes.set_title(title, loc="left", pad=26)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 5, 10]))
    axes.grid(which="major", color="0.88")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    # Above the axes: the curves may be anywhere inside.
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=4,
        frameon=False,
        handlelength=1.8,
        columnspacing=1.2,
    )
