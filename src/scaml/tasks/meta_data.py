"""`MetaData`: the finished tasks that a new task learns from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from scaml.common.wording import counted
from scaml.errors import TaskDataError
from scaml.tasks.task import Task

__all__ = ["MetaData"]


@dataclass(frozen=True, eq=False)
class MetaData:
    """The meta-data D_1:M: the finished tasks that a new task learns from.

    Tasks without a name are called task-0, task-1, ... by their position.

    Args:
        tasks: Tasks of one space, each with at least two points.
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
                "give every task a different name."
            )
        for name, task in zip(names, tasks, strict=True):
            if task.d != tasks[0].d:
                raise TaskDataError(
                    f"Task {name!r} has {counted(task.d, 'parameter')} but task {names[0]!r} has "
                    f"{tasks[0].d}; give tasks of one space."
                )
            if task.n < 2:
                raise TaskDataError(
                    f"Task {name!r} has {counted(task.n, 'point')}; give at least 2 "
                    "points, or leave the task out."
                )
        object.__setattr__(self, "tasks", tasks)
        object.__setattr__(self, "names", names)

    @property
    def d(self) -> int:
        """Number of parameters."""
        return self.tasks[0].d

    def and_task(self, task: Task) -> MetaData:
        """New meta-data with one task added at the end."""
        if not isinstance(task, Task):
            raise TaskDataError(f"The task to add is a {type(task).__name__}; give a scaml.Task.")
        named = [old.called(name) for name, old in zip(self.names, self.tasks, strict=True)]
        return MetaData([*named, task])

    def with_values(self, values: Sequence[Tensor]) -> MetaData:
        """The same tasks and points with other values y."""
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
