"""A setting: a problem, and how much past data and how many evaluations its runs have."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Self

from scaml.bench.problems import problem

__all__ = ["Setting", "fits"]

_MOST_MTGP_POINTS = 256


@dataclass(frozen=True, order=True)
class Setting:
    """What all runs of one panel of a figure have in common.

    Args:
        problem: The name of the problem.
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
        """A setting of the problem; what is None is taken from the paper's figure of the problem."""
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
        """The name of the folder that holds the results of this setting."""
        return f"{re.sub('[^a-z0-9-]+', '_', self.problem.lower())}-{self.meta_tasks}x{self.points}"

    def differences(self, other: Setting) -> str:
        """Every entry in which the two settings differ, in words, with both values."""
        mine, theirs = asdict(self), asdict(other)
        return ", ".join(
            f"{key.replace('_', '-')} {mine[key]} instead of {theirs[key]}"
            for key in mine
            if mine[key] != theirs[key]
        )

    def to_json(self) -> dict[str, Any]:
        """The entries as a dictionary that JSON can hold."""
        return asdict(self)


def fits(method: str, setting: Setting) -> bool:
    """Whether a method is affordable in a setting: MTGP is cubic in the number of all points."""
    return method != "mtgp" or setting.meta_tasks * setting.points <= _MOST_MTGP_POINTS
