from __future__ import annotations

import pytest
import torch

from scaml import ScaML, SettingError, Space, SpaceError, Task, TaskDataError
from scaml.explain.subject import Subject
from tests.cases import MIXED, meta_data, task_of
from tests.sampler_cases import BOX


def test_the_space_is_the_priors_unless_it_is_given() -> None:
    space = Space(BOX)
    prior = ScaML().meta_fit(meta_data((5, 6), 2))
    assert Subject(prior, task_of(3, 2)).space is None
    assert Subject(prior, task_of(3, 2), space=space).space is space
    assert Subject(prior.in_space(space), task_of(3, 2)).space is space


def test_what_does_not_fit_is_refused() -> None:
    prior = ScaML().meta_fit(meta_data((5, 6), 2))
    with pytest.raises(SettingError, match="The prior is a str"):
        Subject("prior", task_of(3, 2))  # type: ignore[arg-type]
    with pytest.raises(SpaceError, match="3 parameters"):
        Subject(prior, task_of(3, 3))
    with pytest.raises(SpaceError, match="columns but the past tasks have 2"):
        Subject(prior, task_of(3, 2), space=MIXED)
    with pytest.raises(SpaceError, match="The suggestions has 3 columns"):
        Subject(prior, task_of(3, 2), suggestions=torch.zeros(1, 3))
    with pytest.raises(TaskDataError, match="The suggestions"):
        Subject(prior, task_of(3, 2), suggestions=torch.full((1, 2), 9.0))


def test_an_empty_list_of_suggestions_is_none() -> None:
    prior = ScaML().meta_fit(meta_data((5, 6), 2))
    assert Subject(prior, Task.empty(2), suggestions=torch.empty(0, 2)).suggestions is None
