"""`MetaData`: tasks and names in order, frozen; bad lists of tasks are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scaml.errors import TaskDataError
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task
from tests.tasks.cases import X, Y, assert_says, equal


def test_meta_data_keep_tasks_and_names_in_order() -> None:
    tasks = [Task(X, Y, name="b"), Task(X, Y), Task(X, Y, name="a"), Task(X, Y)]
    meta = MetaData(tasks)
    assert meta.names == ("b", "task-1", "a", "task-3")
    assert list(meta) == tasks
    assert meta[2] is tasks[2]
    assert (len(meta), meta.d) == (4, 2)


@settings(deadline=None, max_examples=30)
@given(st.permutations(["a", "b", "c", "d"]))
def test_names_follow_a_permutation_of_the_tasks(names: list[str]) -> None:
    meta = MetaData(Task(X, [float(ord(name)), 0.0, 0.0], name=name) for name in names)  # type: ignore[arg-type]
    assert meta.names == tuple(names)
    assert [chr(int(task.y[0])) for task in meta] == names


def test_meta_data_are_frozen_and_own_their_list() -> None:
    tasks = [Task(X, Y)]
    meta = MetaData(tasks)
    tasks.append(Task(X, Y))
    assert len(meta) == 1
    with pytest.raises(FrozenInstanceError):
        meta.tasks = tasks  # type: ignore[misc]
    with pytest.raises(TypeError):
        meta.tasks[0] = tasks[1]  # type: ignore[index]


def test_a_constant_task_is_accepted() -> None:
    assert len(MetaData([Task([[0.5, 0.5]] * 4, [3.0] * 4)])) == 1


def test_one_more_task_leaves_the_names_of_the_others() -> None:
    meta = MetaData([Task(X, Y), Task(X, Y, name="b")])
    more = meta.and_task(Task(X, Y, name="c"))
    assert more.names == ("task-0", "b", "c")
    assert len(meta) == 2
    with pytest.raises(TaskDataError, match="The task to add is a list"):
        meta.and_task([X, Y])  # type: ignore[arg-type]


def test_other_values_leave_points_and_names() -> None:
    first = Task(X, Y, known=[True, False], extra=[[0.1], [0.2], [0.3]])
    meta = MetaData([first, Task(X[:2], Y[:2], name="b")])
    values = [torch.arange(3, dtype=torch.float64), torch.arange(2, dtype=torch.float64)]
    changed = meta.with_values(values)
    assert changed.names == ("task-0", "b")
    assert [task.y.tolist() for task in changed] == [[0.0, 1.0, 2.0], [0.0, 1.0]]
    for old, new in zip(meta, changed, strict=True):
        assert torch.equal(old.inputs, new.inputs)
        assert torch.equal(old.known, new.known)
    assert equal(meta[0].y, Y)


def test_repr_says_what_it_is() -> None:
    assert repr(MetaData([Task(X, Y), Task(X[:2], Y[:2])])) == "MetaData(M=2, d=2, points=5)"


def meta(*tasks: Any) -> Callable[[], object]:
    return lambda: MetaData(tasks)


REFUSED: dict[str, tuple[Callable[[], object], list[str]]] = {
    "one task": (lambda: MetaData(Task(X, Y)), ["Task", "list"]),  # type: ignore[arg-type]
    "a number": (lambda: MetaData(5), ["int", "list"]),  # type: ignore[arg-type]
    "no task": (meta(), ["no task", "at least one"]),
    "not a task": (meta(Task(X, Y), (X, Y)), ["Item 1", "tuple", "Task"]),
    "zero points": (meta(Task(X, Y), Task.empty(2, name="new")), ["'new'", "0 points", "2"]),
    "one point": (meta(Task([[0.5, 0.5]], [1], name="new")), ["'new'", "1 point;", "2"]),
    "one point, unnamed": (meta(Task(X, Y), Task([[0.5, 0.5]], [1])), ["'task-1'", "1 point;"]),
    "dimensions": (
        meta(Task(X, Y, name="a"), Task([[0.1], [0.2]], [1, 2], name="b")),
        ["'b' has 1", "'a' has 2"],
    ),
    "one name": (meta(*(Task(X, Y, name=name) for name in "abcba")), ["'a', 'b'", "different name"]),
    "one name by position": (meta(Task(X, Y, name="task-1"), Task(X, Y)), ["'task-1'"]),
}


@pytest.mark.parametrize(("build", "fragments"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_meta_data_are_refused_in_one_sentence(
    build: Callable[[], object], fragments: list[str]
) -> None:
    with pytest.raises(TaskDataError) as caught:
        build()
    assert_says(str(caught.value), fragments)
