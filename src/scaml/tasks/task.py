"""`Task`: the observations of one task, validated once and frozen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scaml.common.checks import check_integer
from scaml.common.wording import counted
from scaml.errors import TaskDataError
from scaml.tasks.arrays import as_numbers, check_finite, check_points, check_values

__all__ = ["Task"]


@dataclass(frozen=True, eq=False, init=False)
class Task:
    """The observations of one task. Larger y is better.

    Args:
        X: `n x d` array-like in unit-cube coordinates.
        y: n values, or `n x 1`.
        name: Name of the task in weights, messages and reports.
        known: d booleans, False for each parameter that the task does not have. Its column is ignored.
        extra: `n x e` columns that only this task has. When the task predicts, these columns are held
            at 0: subtract the value to hold each at.

    Examples:
        >>> task = Task([[0.1, 0.9], [0.5, 0.5]], [1.0, 2.0], name="adult")
        >>> task.n, task.d
        (2, 2)
        >>> task.append([0.3, 0.7], 2.5).n
        3
    """

    X: Tensor
    y: Tensor
    name: str
    known: Tensor  # d, bool
    extra: Tensor  # n x e

    def __init__(self, X: Any, y: Any, *, name: str = "", known: Any = None, extra: Any = None) -> None:
        if not isinstance(name, str):
            raise TaskDataError(f"A task's name is {name!r}; give a string.")
        whose = f"task {name!r}" if name else "the task"
        points = check_points(X, f"X of {whose}")
        values = as_numbers(y, f"y of {whose}")
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1 or len(values) != len(points):
            raise TaskDataError(
                f"X of {whose} has shape {tuple(points.shape)} but y has shape "
                f"{tuple(values.shape)}; give one value of y per row of X."
            )
        check_values(values, f"y of {whose}")
        mask = _known(known, points.shape[1], whose)
        own = points.new_empty(len(points), 0) if extra is None else _extra(extra, len(points), whose)
        object.__setattr__(self, "known", mask)
        object.__setattr__(self, "extra", own)
        object.__setattr__(self, "X", points * mask)
        object.__setattr__(self, "y", values)
        object.__setattr__(self, "name", name)

    @classmethod
    def empty(cls, d: int, *, name: str = "") -> Task:
        """A task of d parameters without observations: how every new task starts."""
        d = check_integer(d, "The number of parameters d", least=1)
        return cls(np.empty((0, d)), np.empty(0), name=name)

    def append(self, x: Any, y: Any) -> Task:
        """A new task with more observations.

        Args:
            x: One point, d long, or `q x d` points.
            y: One value, or q values.
        """
        whose = f"task {self.name!r}" if self.name else "the task"
        points = as_numbers(x, f"x to append to {whose}")
        if points.ndim == 1:
            points = points[None, :]
        if points.ndim != 2 or points.shape[1] != self.d:
            raise TaskDataError(
                f"x to append has shape {tuple(points.shape)} but {whose} has "
                f"{counted(self.d, 'parameter')}; give x of shape ({self.d},) or (q, {self.d})."
            )
        points = check_points(points, f"x to append to {whose}")
        values = as_numbers(y, f"y to append to {whose}").reshape(-1)
        check_finite(values, f"y to append to {whose}")
        if len(values) != len(points):
            raise TaskDataError(
                f"x to append has {counted(len(points), 'row')} but y has "
                f"{counted(len(values), 'value')}; give one value of y per row of x."
            )
        if not self.whole:
            raise TaskDataError(
                f"{whose[0].upper()}{whose[1:]} has other parameters than its space; make a new task "
                "with all rows instead."
            )
        return Task(torch.cat([self.X, points]), torch.cat([self.y, values]), name=self.name)

    def called(self, name: str) -> Task:
        """The same task with another name."""
        return self._with(self.y, name)

    def with_values(self, y: Tensor) -> Task:
        """The same points with other values y."""
        return self._with(y, self.name)

    def _with(self, y: Tensor, name: str) -> Task:
        extra = self.extra if self.extra.shape[1] else None
        return Task(self.X, y, name=name, known=self.known, extra=extra)

    @property
    def n(self) -> int:
        """Number of observations."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Number of parameters."""
        return self.X.shape[1]

    @property
    def whole(self) -> bool:
        """Whether the task has exactly the parameters of its space."""
        return bool(self.known.all()) and not self.extra.shape[1]

    @property
    def inputs(self) -> Tensor:
        """`n x d_m`: the parameters that the task has, then its extra columns."""
        return torch.cat([self.X[:, self.known], self.extra], dim=-1)

    def digest(self) -> bytes:
        """SHA-256 of the shapes and bytes of X, y, known and extra: equal for equal data.

        The name of the task does not count.
        """
        found = hashlib.sha256()
        for part in (self.X, self.y, self.known, self.extra):
            found.update(repr(tuple(part.shape)).encode() + part.numpy().tobytes())
        return found.digest()

    def __repr__(self) -> str:
        return f"Task(n={self.n}, d={self.d}, name={self.name!r})"


def _known(known: Any, d: int, whose: str) -> Tensor:
    if known is None:
        return torch.ones(d, dtype=torch.bool)
    mask = torch.as_tensor(known)
    if mask.shape != (d,) or mask.dtype != torch.bool or not mask.any():
        raise TaskDataError(
            f"known of {whose} is {known!r}; give {counted(d, 'boolean')}, at least one of them True."
        )
    return mask.clone()


def _extra(extra: Any, n: int, whose: str) -> Tensor:
    points = as_numbers(extra, f"extra of {whose}")
    if points.ndim != 2 or points.shape[1] < 1:
        raise TaskDataError(f"extra of {whose} has shape {tuple(points.shape)}; give an n x e array.")
    check_finite(points, f"extra of {whose}")
    if len(points) != n:
        raise TaskDataError(
            f"extra of {whose} has {counted(len(points), 'row')} but X has {n}; give as many rows as X."
        )
    return points
