"""The settings that every figure of the paper shows."""

from __future__ import annotations

from scaml.bench.problems import PROBLEMS, TableProblem
from scaml.bench.settings import Setting
from scaml.common.wording import nearest
from scaml.errors import SettingError

__all__ = ["FIGURES", "figure_settings"]

_SYNTHETIC = tuple(
    Setting.of(name, meta_tasks)
    for meta_tasks in (8, 32)
    for name in ("branin", "hartmann3", "hartmann6")
)
# The paper's text does not give the values on the axes of figure 3; it mentions 16 points. Hartmann 6
# has fewer values here, because one run takes minutes.
_TASKS = tuple(
    Setting.of(name, meta_tasks)
    for name, numbers in (("branin", (2, 4, 8, 16, 32)), ("hartmann6", (2, 8, 32)))
    for meta_tasks in numbers
)
_POINTS = tuple(
    Setting.of(name, 8, points)
    for name, numbers in (("branin", (8, 16, 32, 64, 128)), ("hartmann6", (16, 64, 128)))
    for points in numbers
)
_SETTINGS: dict[str, tuple[Setting, ...]] = {
    "synthetic": _SYNTHETIC,
    "ablation-tasks": _TASKS,
    "ablation-points": _POINTS,
    "hpo": tuple(
        Setting.of(name) for name, where in PROBLEMS.items() if isinstance(where, TableProblem)
    ),
}

FIGURES = ("synthetic", "ablation-tasks", "ablation-points", "hpo", "illustration", "all")
"""The figures of the paper: 2, both halves of 3, 4, and 1."""


def figure_settings(figure: str) -> tuple[Setting, ...]:
    """The settings of a figure, each once; none for "illustration", which needs no runs."""
    if figure not in FIGURES:
        raise SettingError(f"There is no figure {figure!r}; did you mean {nearest(figure, FIGURES)!r}?")
    chosen = sum(_SETTINGS.values(), ()) if figure == "all" else _SETTINGS.get(figure, ())
    return tuple(dict.fromkeys(chosen))
