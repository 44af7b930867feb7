"""One model of the whole past, which tells who is like the new task without acting on it."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest
import torch

from scaml.bench.safety import SAFETY
from scaml.errors import SettingError
from scaml.methods.scaml import ScaML, ScaMLPrior
from scaml.model.average_gp import AverageGP
from scaml.model.weight_priors import WeightsName
from scaml.model.whole_past import WholePastGP
from scaml.tasks.task import Task
from tests.cases import task_of


def prior_of(
    family: str, weights: WeightsName = "past", *, tasks: int = 8, seed: int = 2
) -> ScaMLPrior:
    method = replace(ScaML(kernel="se"), weights=weights)
    return method.meta_fit(SAFETY[family].meta_data(tasks, 32, seed), seed=0)


@pytest.fixture(scope="module")
def related() -> ScaMLPrior:
    return prior_of("related")


TASK = task_of(6, 3)
X = torch.rand(4, 1, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_model_is_the_one_with_weights_near_a_common_value(related: ScaMLPrior) -> None:
    model, other = (
        related.condition(TASK, seed=3),
        prior_of("related", "shared").condition(TASK, seed=3),
    )
    assert type(model) is WholePastGP
    assert type(other) is not WholePastGP
    for ours, theirs in zip(model.marginal(X), other.marginal(X), strict=True):
        assert torch.equal(ours, theirs)


def test_it_tells_what_the_average_over_explanations_tells(related: ScaMLPrior) -> None:
    model, average = related.condition(TASK), prior_of("related", "explained").condition(TASK)
    assert isinstance(average, AverageGP)
    told = model.explain()
    assert not told.acted_on
    assert average.explain().acted_on
    assert replace(told, acted_on=True) == average.explain()
    assert model.explain() is told  # and is computed once
    assert related.explain(TASK) == told


def test_copies_tell_it_too(related: ScaMLPrior) -> None:
    model = related.condition(TASK)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert again.explain().matters.keys() == model.explain().matters.keys()


def test_further_observations_are_not_explained(related: ScaMLPrior) -> None:
    model = related.condition(TASK)
    model.explain()
    further = model.condition_on_observations(X[0], torch.zeros(1, 1, dtype=torch.float64))
    with pytest.raises(SettingError, match="explain the model that"):
        further.explain()


@pytest.mark.parametrize(
    ("family", "tasks", "average"),
    [
        ("related", 8, False),
        ("noisy", 8, False),
        ("unrelated", 8, True),
        ("one-good", 31, True),
        ("two-groups", 16, True),
    ],
)
def test_the_past_decides(family: str, tasks: int, *, average: bool) -> None:
    for seed in (2, 3):
        prior = prior_of(family, tasks=tasks, seed=seed)
        assert prior.averages is average
        assert isinstance(prior.condition(Task.empty(3)), AverageGP if average else WholePastGP)


def test_one_model_by_name_has_no_explanations() -> None:
    with pytest.raises(SettingError, match="weights is 'shared', which has no explanations"):
        prior_of("related", "shared").explain(TASK)
