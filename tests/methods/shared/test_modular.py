"""Methods of one GP per task: each is learned from its own data alone."""

from __future__ import annotations

import pytest
import torch

from scaml import MetaData, ScaML
from scaml.errors import SavedFileError
from scaml.methods import RGPE
from scaml.methods.shared.modular import check_hyperparameters, hyperparameters_of
from tests.cases import meta_data, task_of

META = meta_data((6, 9, 7), 2)


def test_the_state_of_a_part_is_part_of_the_state() -> None:
    whole = ScaML().fit_state(META, seed=2)
    part = ScaML().fit_state(MetaData([META[1]]), seed=2)
    assert whole.keys() == part.keys() == {"lengthscale", "outputscale", "noise"}
    for name, value in whole.items():
        assert torch.equal(value[1:2], part[name])


def test_restoring_the_state_is_the_fit() -> None:
    fitted = RGPE().meta_fit(META, seed=2)
    restored = RGPE().restore(META, fitted.state())
    for name in ("X", "whitener", "targets", "lengthscale"):
        assert torch.equal(getattr(restored.task_gps, name), getattr(fitted.task_gps, name))


def test_one_more_task_leaves_the_others_as_they_are() -> None:
    prior = ScaML().meta_fit(META, seed=2)
    more = prior.add(task_of(5, 2).called("new"), seed=2)
    again = ScaML().meta_fit(META.and_task(task_of(5, 2).called("new")), seed=2)
    for name, value in more.state().items():
        assert torch.equal(value[:3], prior.state()[name])
        assert torch.equal(value, again.state()[name])


@pytest.mark.parametrize("name", ["lengthscale", "outputscale", "noise"])
def test_a_state_that_does_not_belong_to_the_tasks_is_refused(name: str) -> None:
    state = hyperparameters_of(ScaML().meta_fit(META).task_gps)
    check_hyperparameters(META, state)
    for wrong in (state[name][:-1], -state[name], state[name].float()):
        with pytest.raises(SavedFileError, match=f"its {name} is not of shape"):
            check_hyperparameters(META, state | {name: wrong})
