"""A setting of the study: a problem and how much of it; and those of the paper's figures."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Self

from scaml.bench.problems import PROBLEMS, TableProblem, problem
from scaml.common.wording import nearest
from scaml.errors import SettingError

__all__ = ["FIGURES", "PAPER_METHODS", "Setting", "figure_settings", "fits"]


@dataclass(frozen=True, order=True)
class Setting:
    """What all runs of one panel of a figure have in common.

    Args:
        problem: Its name.
        meta_tasks: M.
        points: N_m.
        evaluations: Evaluations of the test-task.
    """

    problem: str
    meta_tasks: int
    points: int
    evaluations: int

    @classmethod
    def of(
        cls,
        name: str,
        meta_tasks: int | None = None,
        points: int | None = None,
        evaluations: int | None = None,
    ) -> Self:
        """The setting of the paper's figure, where nothing else is asked for."""
        where = problem(name)
        setting = cls(
            problem=name,
            meta_tasks=where.meta_tasks if meta_tasks is None else meta_tasks,
            points=where.points if points is None else points,
            evaluations=where.evaluations if evaluations is None else evaluations,
        )
        where.check(setting.meta_tasks, setting.points, setting.evaluations)
        return setting

    @property
    def folder(self) -> str:
        """The name of its folder among the results."""
        return f"{re.sub('[^a-z0-9-]+', '_', self.problem.lower())}-{self.meta_tasks}x{self.points}"

    def differences(self, other: Setting) -> str:
        """In words, what the other one has differently."""
        mine, theirs = asdict(self), asdict(other)
        return ", ".join(
            f"{key.replace('_', '-')} {mine[key]} instead of {theirs[key]}"
            for key in mine
            if mine[key] != theirs[key]
        )

    def to_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


PAPER_METHODS = (
    "scaml",
    "scaml-ucb",
    "scaml-paper",
    "gpbo",
    "rgpe",
    "sgpt",
    "stackgp",
    "ablr",
    "rmgpucb",
    "fsbo",
    "gc3p",
    "mtgp",
)
"""The compared methods; MTGP where it fits."""

_SYNTHETIC = tuple(
    Setting.of(name, meta_tasks)
    for meta_tasks in (8, 32)
    for name in ("branin", "hartmann3", "hartmann6")
)
# The paper's text does not name the values on the axes of its figure 3 (16 points are mentioned). Fewer
# of Hartmann 6, where a run takes minutes.
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
"""The paper's figures: 2, both halves of 3, 4, and 1."""


def figure_settings(figure: str) -> tuple[Setting, ...]:
    """The settings of a figure, none twice."""
    if figure not in FIGURES:
        raise SettingError(f"There is no figure {figure!r}; did you mean {nearest(figure, FIGURES)!r}?")
    chosen = sum(_SETTINGS.values(), ()) if figure == "all" else _SETTINGS.get(figure, ())
    return tuple(dict.fromkeys(chosen))


def fits(method: str, setting: Setting) -> bool:
    """Whether a method is affordable there: MTGP is cubic in all points together."""
    return method != "mtgp" or setting.meta_tasks * setting.points <= 256
