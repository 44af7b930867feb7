"""`Task` and `MetaData`: frozen data, validated once, float64. No other module validates arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scaml.errors import SpaceError, TaskDataError

__all__ = ["MetaData", "Task", "check_points"]

# Points may leave the cube a little (past ranges that were wider); raw units never fit in here.
_LOWEST, _HIGHEST = -1.0, 2.0
# Beyond these, squares of y leave the range of float64.
_LARGEST_Y = 1e100
_SMALLEST_SPREAD = 1e-100
_ROWS_SHOWN = 5


@dataclass(frozen=True, eq=False, init=False)
class Task:
    """The observations of one task. Larger y is better.

    Args:
        X: `n x d` array-like in unit-cube coordinates.
        y: n values, or `n x 1`.
        name: What to call the task in weights, messages and reports.

    Example:
        >>> task = Task([[0.1, 0.9], [0.5, 0.5]], [1.0, 2.0], name="adult")
        >>> task.n, task.d
        (2, 2)
        >>> task.append([0.3, 0.7], 2.5).n
        3
    """

    X: Tensor
    y: Tensor
    name: str

    def __init__(self, X: Any, y: Any, *, name: str = "") -> None:
        if not isinstance(name, str):
            raise TaskDataError(f"A task's name is {name!r}; give a string.")
        whose = f"task {name!r}" if name else "the task"
        points = check_points(X, f"X of {whose}")
        values = _numbers(y, f"y of {whose}")
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1 or len(values) != len(points):
            raise TaskDataError(
                f"X of {whose} has shape {tuple(points.shape)} but y has shape "
                f"{tuple(values.shape)}; give one value of y for each row of X."
            )
        _check_values(values, f"y of {whose}")
        object.__setattr__(self, "X", points)
        object.__setattr__(self, "y", values)
        object.__setattr__(self, "name", name)

    @classmethod
    def empty(cls, d: int, *, name: str = "") -> Task:
        """A task of d parameters with no observation yet: the normal state of a new task."""
        if isinstance(d, bool) or not isinstance(d, int) or d < 1:
            raise TaskDataError(f"The number of parameters d is {d!r}; give an integer of at least 1.")
        return cls(np.empty((0, d)), np.empty(0), name=name)

    def append(self, x: Any, y: Any) -> Task:
        """A new task with further observations: x is d long or `q x d`, y a number or q of them."""
        points = _numbers(x, "x")
        if points.ndim == 1:
            points = points[None, :]
        if points.ndim != 2 or points.shape[1] != self.d:
            raise TaskDataError(
                f"x to append has shape {tuple(points.shape)} but the task has {self.d} "
                f"parameters; give x of shape ({self.d},) or (q, {self.d})."
            )
        new = Task(points, _numbers(y, "y").reshape(-1), name=self.name)
        return Task(torch.cat([self.X, new.X]), torch.cat([self.y, new.y]), name=self.name)

    @property
    def n(self) -> int:
        """Number of observations."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Number of parameters."""
        return self.X.shape[1]

    def __repr__(self) -> str:
        return f"Task(n={self.n}, d={self.d}, name={self.name!r})"


@dataclass(frozen=True, eq=False)
class MetaData:
    """The meta-data D_1:M: the finished tasks that a new one learns from.

    Tasks without a name are called task-0, task-1, ... by their place.

    Args:
        tasks: Tasks of one space, each with two points or more.
    """

    tasks: Sequence[Task]
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        tasks = tuple(self.tasks)
        if not tasks:
            raise TaskDataError("The meta-data hold no task; give at least one past task.")
        for i, task in enumerate(tasks):
            if not isinstance(task, Task):
                raise TaskDataError(
                    f"Item {i} of the meta-data is a {type(task).__name__}; give scaml.Task objects."
                )
        names = tuple(task.name or f"task-{i}" for i, task in enumerate(tasks))
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise TaskDataError(
                f"More than one past task is called {', '.join(map(repr, twice))}; "
                "give every task a name of its own."
            )
        for name, task in zip(names, tasks, strict=True):
            if task.d != tasks[0].d:
                raise TaskDataError(
                    f"Task {name!r} has {task.d} parameters but task {names[0]!r} has "
                    f"{tasks[0].d}; all tasks must live in one space."
                )
            if task.n < 2:
                raise TaskDataError(
                    f"Task {name!r} has {task.n} point{'' if task.n == 1 else 's'}; a past task "
                    "needs at least 2, so leave it out."
                )
        object.__setattr__(self, "tasks", tasks)
        object.__setattr__(self, "names", names)

    @property
    def d(self) -> int:
        """Number of parameters."""
        return self.tasks[0].d

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, i: int) -> Task:
        return self.tasks[i]

    def __repr__(self) -> str:
        return f"MetaData(M={len(self)}, d={self.d}, points={sum(task.n for task in self)})"


def check_points(X: Any, what: str, *, d: int | None = None) -> Tensor:
    """X as an `n x d` float64 tensor of its own, or a sentence of what is wrong with it.

    Args:
        X: Array-like.
        what: How to call X in the sentence.
        d: The dimension that X must have; None for any.
    """
    points = _numbers(X, what)
    if points.ndim != 2 or points.shape[1] < 1:
        raise TaskDataError(f"{_capital(what)} has shape {tuple(points.shape)}; give an n x d array.")
    if d is not None and points.shape[1] != d:
        raise SpaceError(
            f"{_capital(what)} has {points.shape[1]} columns but the space has {d} parameters; "
            "give one column for each parameter."
        )
    _check_finite(points, what)
    outside = ((points < _LOWEST) | (points > _HIGHEST)).any(-1)
    if outside.any():
        row = int(outside.nonzero()[0])
        worst = points[row][(points[row] - 0.5).abs().argmax()].item()
        raise TaskDataError(
            f"{_capital(what)} lies far outside the unit cube in {_rows(outside)} ({worst:g} in row "
            f"{row}); rescale every parameter to [0, 1]."
        )
    return points


def _numbers(values: Any, what: str) -> Tensor:
    """A detached float64 copy of anything that holds real numbers."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise TaskDataError(
            f"{_capital(what)} is not a rectangular array; give rows of equal length."
        ) from error
    if array.dtype.kind not in "biuf":
        raise TaskDataError(
            f"{_capital(what)} holds {array.dtype} values; give real numbers, for example by "
            "np.asarray(values, dtype=float)."
        )
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def _check_finite(values: Tensor, what: str) -> None:
    bad = ~values.isfinite()
    bad = bad.any(-1) if bad.ndim == 2 else bad
    if bad.any():
        raise TaskDataError(
            f"{_capital(what)} has NaN or infinite values in {_rows(bad)}; drop or mend these rows."
        )


def _check_values(y: Tensor, what: str) -> None:
    _check_finite(y, what)
    if not len(y):
        return
    huge = y.abs() > _LARGEST_Y
    if huge.any():
        raise TaskDataError(
            f"{_capital(what)} is larger than {_LARGEST_Y:g} in {_rows(huge)}; rescale y, its unit "
            "does not matter."
        )
    spread = float(y.max() - y.min())
    if 0.0 < spread < _SMALLEST_SPREAD:
        raise TaskDataError(
            f"{_capital(what)} varies by only {spread:g}, too little for float64; rescale y, its unit "
            "does not matter."
        )


def _rows(bad: Tensor) -> str:
    rows = bad.nonzero().flatten().tolist()
    shown = ", ".join(map(str, rows[:_ROWS_SHOWN]))
    more = f" and {len(rows) - _ROWS_SHOWN} more" if len(rows) > _ROWS_SHOWN else ""
    return f"row{'' if len(rows) == 1 else 's'} {shown}{more}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
