"""prior.add and in_space: a task more is a fit with it included, and the old prior stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from optuna.distributions import FloatDistribution

from scaml import MetaData, ScaML
from scaml.errors import SpaceError, TaskDataError
from scaml.methods.base import Method
from scaml.methods.gpbo import GPBO
from scaml.priors.load import load
from scaml.spaces.space import Space
from tests.cases import meta_data, task_of
from tests.loading_cases import META, SPACE, assert_same_gps, mixed_tasks, points


@pytest.mark.parametrize("last", range(4))
def test_adding_a_task_is_a_fit_with_it_included(last: int) -> None:
    tasks = mixed_tasks()
    new = tasks.pop(last)
    added = ScaML().meta_fit(MetaData(tasks), seed=2).add(new, seed=2)
    fitted = ScaML().meta_fit(MetaData([*tasks, new]), seed=2)
    assert added.names == fitted.names
    assert_same_gps(added, fitted)
    assert torch.equal(points(added), points(fitted))


def test_adding_to_a_loaded_prior_is_a_fit_too(tmp_path: Path) -> None:
    tasks = mixed_tasks()
    ScaML().meta_fit(MetaData(tasks[:2])).in_space(SPACE).save(tmp_path / "p")
    added = load(tmp_path / "p").add(tasks[2]).add(tasks[3])
    assert added.space == SPACE
    assert_same_gps(added, ScaML().meta_fit(MetaData(tasks)))
    added.save(tmp_path / "q")
    assert_same_gps(load(tmp_path / "q"), added)


def test_adding_leaves_the_old_prior_as_it_was() -> None:
    prior = ScaML().meta_fit(MetaData(mixed_tasks()[:2]))
    before = {name: tensor.clone() for name, tensor in prior.state().items()}
    prior.add(mixed_tasks()[2])
    assert len(prior.names) == len(prior.meta) == 2
    for name, tensor in prior.state().items():
        assert torch.equal(tensor, before[name])


def test_tasks_without_names_keep_theirs_when_one_is_added() -> None:
    tasks = [task.called("") for task in meta_data((5, 6, 7), 2)]
    added = ScaML().meta_fit(MetaData(tasks[:2])).add(tasks[2])
    assert added.names == ("task-0", "task-1", "task-2")
    assert_same_gps(added, ScaML().meta_fit(MetaData(tasks)))


@pytest.mark.parametrize("method", [ScaML(), GPBO()], ids=str)
def test_a_name_that_is_taken_is_refused(method: Method) -> None:
    prior = method.meta_fit(META)
    with pytest.raises(TaskDataError, match="More than one past task is called 'more'"):
        prior.add(task_of(5, 3).called("more"))


@pytest.mark.parametrize("method", [ScaML(), GPBO()], ids=str)
@pytest.mark.parametrize(
    ("task", "message"),
    [
        (task_of(5, 2).called("new"), "one space"),
        (task_of(1, 3).called("new"), "at least 2"),
        ("a task", "give a scaml.Task"),
    ],
)
def test_what_cannot_be_added_is_refused(method: Method, task: Any, message: str) -> None:
    with pytest.raises(TaskDataError, match=message):
        method.meta_fit(META).add(task)


def test_a_plain_gp_takes_tasks_along() -> None:
    added = GPBO().meta_fit(MetaData(mixed_tasks()[:3])).in_space(SPACE).add(mixed_tasks()[3])
    assert added.names == META.names
    assert added.space == SPACE
    assert torch.equal(points(added), points(GPBO().meta_fit(META).in_space(SPACE)))


def test_in_space_is_a_new_prior_and_refuses_another_size() -> None:
    prior = ScaML().meta_fit(META)
    assert prior.in_space(SPACE).space is SPACE
    assert prior.space is None
    with pytest.raises(SpaceError, match="1 column but the past tasks have 3"):
        prior.in_space(Space({"a": FloatDistribution(0.0, 1.0)}))
