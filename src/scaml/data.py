"""`Task` and `MetaData`: frozen data, validated once, float64. No other module validates arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scaml.errors import SettingError, SpaceError, TaskDataError

__all__ = [
    "COORDINATES",
    "LARGEST_Y",
    "MetaData",
    "Task",
    "check_integer",
    "check_points",
    "counted",
]

# Points may leave the cube a little (past ranges that were wider); raw units never fit in here.
COORDINATES = (-1.0, 2.0)
# Beyond these, squares of y leave the range of float64.
LARGEST_Y = 1e100
_SMALLEST_SPREAD = 1e-100
_ROWS_SHOWN = 5


@dataclass(frozen=True, eq=False, init=False)
class Task:
    """The observations of one task. Larger y is better.

    Args:
        X: `n x d` array-like in unit-cube coordinates.
        y: n values, or `n x 1`.
        name: What to call the task in weights, messages and reports.
        known: d booleans, False for a parameter that the task does not have; its column is ignored.
        extra: `n x e` columns that only this task has, measured from the values at which they are held
            when the task predicts.

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
        values = _numbers(y, f"y of {whose}")
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1 or len(values) != len(points):
            raise TaskDataError(
                f"X of {whose} has shape {tuple(points.shape)} but y has shape "
                f"{tuple(values.shape)}; give one value of y for each row of X."
            )
        _check_values(values, f"y of {whose}")
        mask = _known(known, points.shape[1], whose)
        own = points.new_empty(len(points), 0) if extra is None else _extra(extra, len(points), whose)
        object.__setattr__(self, "known", mask)
        object.__setattr__(self, "extra", own)
        object.__setattr__(self, "X", points * mask)
        object.__setattr__(self, "y", values)
        object.__setattr__(self, "name", name)

    @classmethod
    def empty(cls, d: int, *, name: str = "") -> Task:
        """A task of d parameters with no observation yet: the normal state of a new task."""
        d = check_integer(d, "The number of parameters d", least=1)
        return cls(np.empty((0, d)), np.empty(0), name=name)

    def append(self, x: Any, y: Any) -> Task:
        """A new task with further observations: x is d long or `q x d`, y a number or q of them."""
        whose = f"task {self.name!r}" if self.name else "the task"
        points = _numbers(x, f"x to append to {whose}")
        if points.ndim == 1:
            points = points[None, :]
        if points.ndim != 2 or points.shape[1] != self.d:
            raise TaskDataError(
                f"x to append has shape {tuple(points.shape)} but {whose} has "
                f"{counted(self.d, 'parameter')}; give x of shape ({self.d},) or (q, {self.d})."
            )
        points = check_points(points, f"x to append to {whose}")
        values = _numbers(y, f"y to append to {whose}").reshape(-1)
        _check_finite(values, f"y to append to {whose}")
        if len(values) != len(points):
            raise TaskDataError(
                f"x to append has {counted(len(points), 'row')} but y has "
                f"{counted(len(values), 'value')}; give one value of y for each row of x."
            )
        if not self.whole:
            raise TaskDataError(
                f"{whose} has parameters of its own or lacks some; build it anew with all rows."
            )
        return Task(torch.cat([self.X, points]), torch.cat([self.y, values]), name=self.name)

    def called(self, name: str) -> Task:
        """The same task by another name."""
        return self._with(self.y, name)

    def with_values(self, y: Tensor) -> Task:
        """The same points with other y."""
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
        """`n x d_m`: the columns that the task has, its own ones last."""
        return torch.cat([self.X[:, self.known], self.extra], dim=-1)

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
        if isinstance(self.tasks, Task) or not isinstance(self.tasks, Iterable):
            raise TaskDataError(
                f"The meta-data are a {type(self.tasks).__name__}; give a list of scaml.Task objects."
            )
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
                    f"Task {name!r} has {counted(task.d, 'parameter')} but task {names[0]!r} has "
                    f"{tasks[0].d}; all tasks must live in one space."
                )
            if task.n < 2:
                raise TaskDataError(
                    f"Task {name!r} has {counted(task.n, 'point')}; a past task needs at least 2, so "
                    "leave it out."
                )
        object.__setattr__(self, "tasks", tasks)
        object.__setattr__(self, "names", names)

    @property
    def d(self) -> int:
        """Number of parameters."""
        return self.tasks[0].d

    def and_task(self, task: Task) -> MetaData:
        """New meta-data with one more task."""
        if not isinstance(task, Task):
            raise TaskDataError(f"The task to add is a {type(task).__name__}; give a scaml.Task.")
        named = [old.called(name) for name, old in zip(self.names, self.tasks, strict=True)]
        return MetaData([*named, task])

    def with_values(self, values: Sequence[Tensor]) -> MetaData:
        """The same points of the same tasks with other y."""
        named = [task.called(name) for name, task in zip(self.names, self.tasks, strict=True)]
        return MetaData([task.with_values(y) for task, y in zip(named, values, strict=True)])

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
        raise TaskDataError(f"{what} has shape {tuple(points.shape)}; give an n x d array.")
    if d is not None and points.shape[1] != d:
        raise SpaceError(
            f"{what} has {counted(points.shape[1], 'column')} but the space has "
            f"{counted(d, 'parameter')}; give one column for each parameter."
        )
    _check_finite(points, what)
    outside = ((points < COORDINATES[0]) | (points > COORDINATES[1])).any(-1)
    if outside.any():
        row = int(outside.nonzero()[0])
        worst = points[row][(points[row] - 0.5).abs().argmax()].item()
        raise TaskDataError(
            f"{what} lies far outside the unit cube in {_rows(outside)} ({worst:g} in row "
            f"{row}); rescale every parameter to [0, 1]."
        )
    return points


def check_integer(value: Any, what: str, *, least: int) -> int:
    """A whole number of at least `least` as Python's int, or a sentence of what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise SettingError(f"{what} is {value!r}; give an integer of at least {least}.")
    return int(value)


def counted(n: int, noun: str) -> str:
    """`n` things in words: "1 point", "2 points"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _known(known: Any, d: int, whose: str) -> Tensor:
    if known is None:
        return torch.ones(d, dtype=torch.bool)
    mask = torch.as_tensor(known)
    if mask.shape != (d,) or mask.dtype != torch.bool or not mask.any():
        raise TaskDataError(
            f"known of {whose} is {known!r}; give {counted(d, 'boolean')}, at least one of them true."
        )
    return mask.clone()


def _extra(extra: Any, n: int, whose: str) -> Tensor:
    points = _numbers(extra, f"extra of {whose}")
    if points.ndim != 2 or points.shape[1] < 1:
        raise TaskDataError(f"extra of {whose} has shape {tuple(points.shape)}; give an n x d array.")
    _check_finite(points, f"extra of {whose}")
    if len(points) != n:
        raise TaskDataError(
            f"extra of {whose} has {counted(len(points), 'row')} but X has {n}; give one for each."
        )
    return points


def _numbers(values: Any, what: str) -> Tensor:
    """A detached float64 copy of anything that holds real numbers."""
    try:
        if isinstance(values, list | tuple):  # of tensors, perhaps: NumPy refuses those with a gradient
            values = [v.detach() if isinstance(v, Tensor) else v for v in values]
        elif isinstance(values, Tensor) and not values.is_complex():
            values = values.detach().cpu().double().numpy()
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise TaskDataError(
            f"{what} is not a rectangular array of numbers; give rows of equal length, or one tensor."
        ) from error
    if array.dtype.kind not in "biuf":
        raise TaskDataError(
            f"{what} holds {array.dtype} values; give real numbers, for example by "
            "np.asarray(values, dtype=float)."
        )
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def _check_finite(values: Tensor, what: str) -> None:
    bad = ~values.isfinite()
    bad = bad.any(-1) if bad.ndim == 2 else bad
    if bad.any():
        raise TaskDataError(
            f"{what} has NaN or infinite values in {_rows(bad)}; drop or mend these rows."
        )


def _check_values(y: Tensor, what: str) -> None:
    _check_finite(y, what)
    if not len(y):
        return
    huge = y.abs() > LARGEST_Y
    if huge.any():
        raise TaskDataError(
            f"{what} is beyond {LARGEST_Y:g} in {_rows(huge)}; rescale y, its unit does not matter."
        )
    spread = float(y.max() - y.min())
    if 0.0 < spread < _SMALLEST_SPREAD:
        raise TaskDataError(
            f"{what} varies by only {spread:g}, too little for float64; rescale y, its unit "
            "does not matter."
        )


def _rows(bad: Tensor) -> str:
    rows = bad.nonzero().flatten().tolist()
    shown = ", ".join(map(str, rows[:_ROWS_SHOWN]))
    more = f" and {len(rows) - _ROWS_SHOWN} more" if len(rows) > _ROWS_SHOWN else ""
    return f"row{'' if len(rows) == 1 else 's'} {shown}{more}"
