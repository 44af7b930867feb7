"""What networks learn from: the same numbers whatever the units and the order of the past tasks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scaml import MetaData, SettingError, Task
from scaml.methods.shared.network_tasks import check_widths, settled, standardized
from tests.cases import meta_data, query, task_of

META = meta_data((5, 9, 7, 9), 2)


def test_tasks_are_standardized() -> None:
    tasks, order = settled(META)
    assert [task.name for task in tasks] == [META.names[m] for m in order]
    for task, m in zip(tasks, order, strict=True):
        y = META[m].y.numpy()
        np.testing.assert_allclose(task.z, (y - y.mean()) / y.std(ddof=1), atol=1e-7)
        assert torch.equal(task.X, META[m].X)
        assert task.varies


def test_units_and_order_change_no_bit() -> None:
    ours, _ = settled(META)
    other = [Task(t.X, -7.0 + 1e4 * t.y, name=t.name) for t in META]
    theirs, _ = settled(MetaData(other[::-1]))
    for a, b in zip(ours, theirs, strict=True):
        assert a.name == b.name
        assert a.z.numpy().tobytes() == b.z.numpy().tobytes()


def test_tasks_at_the_same_points_are_told_apart_by_their_values() -> None:
    X = query(6, 2)
    tasks = [Task(X, X[:, 0] * (1.0 + X[:, 1] * m), name=f"t{m}") for m in range(5)]
    names = [[t.name for t in settled(MetaData(part))[0]] for part in (tasks, tasks[::-1])]
    assert names[0] == names[1]


def test_constant_values_do_not_vary() -> None:
    tasks, _ = settled(MetaData([Task(query(4, 2), np.full(4, 0.1))]))
    assert not tasks[0].varies
    assert not standardized(task_of(1, 2))[0].varies
    assert not standardized(Task.empty(d=2))[0].varies


def test_the_new_task_keeps_its_units() -> None:
    task = task_of(5, 2)
    new, units = standardized(task)
    assert new.name == "the test-task"
    torch.testing.assert_close(units.offset + units.scale * new.z, task.y)
    torch.testing.assert_close(new.z.std(), torch.ones((), dtype=torch.float64))
    some = new.rows(torch.tensor([3, 1]))
    assert torch.equal(some.X, task.X[[3, 1]])
    assert torch.equal(some.z, new.z[[3, 1]])


def test_widths_are_checked() -> None:
    for widths in ((), (3, 0), (3, 2.0), 5, "ab"):
        with pytest.raises(SettingError, match="width"):
            check_widths(widths)  # type: ignore[arg-type]
    assert check_widths([3, 4]) == (3, 4)
