"""What every method and prior inherits: checks, files, the acquisition function by its name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from botorch.models.model import Model
from optuna.distributions import FloatDistribution

from scaml import MetaData, ScaML, SettingError, Space, SpaceError, Task, TaskDataError
from scaml.methods.base import (
    MetaPrior,
    Method,
    check_acquisition,
    check_meta,
    check_sqrt_beta,
    check_whole,
    joined,
)
from scaml.search.log_nei import NoisyExpectedImprovement
from scaml.search.ucb import UpperConfidenceBound
from tests.cases import meta_data, task_of

META = meta_data((6, 8), 2)


@dataclass(frozen=True)
class Bare(Method):
    """The least that a foreign method has."""

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> BarePrior:
        check_meta(meta)
        return BarePrior(self, meta)


@dataclass(frozen=True, eq=False)
class BarePrior(MetaPrior):
    method: Bare
    meta: MetaData

    def condition(self, task: Task, *, seed: int = 0) -> Model:
        self.check_task(task)
        return ScaML().meta_fit(self.meta).condition(task, seed=seed)


@pytest.mark.parametrize("name", ["lognei", "ucb"])
def test_the_acquisition_function_is_the_one_that_the_setting_names(name: str) -> None:
    prior = ScaML(acquisition=name, sqrt_beta=1.5).meta_fit(META)  # type: ignore[arg-type]
    function = prior.acquisition(prior.condition(task_of(4, 2)))
    assert type(function) is {"lognei": NoisyExpectedImprovement, "ucb": UpperConfidenceBound}[name]
    before = prior.acquisition(prior.condition(Task.empty(d=2)))
    assert isinstance(before, UpperConfidenceBound)
    assert before.exploration == pytest.approx(1.5)


def test_a_method_that_sets_nothing_has_the_paper_s_ucb() -> None:
    prior = Bare().meta_fit(META)
    function = prior.acquisition(prior.condition(task_of(4, 2)))
    assert isinstance(function, UpperConfidenceBound)
    assert function.exploration == 3.0


def test_what_a_bare_method_cannot_do_is_one_sentence(tmp_path: Path) -> None:
    prior = Bare().meta_fit(META)
    with pytest.raises(SettingError, match="A prior of Bare cannot be saved; fit it again"):
        prior.save(tmp_path / "prior.safetensors")
    with pytest.raises(SettingError, match="A prior of Bare cannot be restored; fit it again"):
        Bare().restore(META, {})
    assert prior.on_table(prior.condition(task_of(3, 2)), torch.zeros(2, 2)) is None
    assert list(tmp_path.iterdir()) == []


def test_one_more_task_is_a_fit_with_it_in_the_same_space() -> None:
    space = Space({"a": FloatDistribution(0.0, 1.0), "b": FloatDistribution(0.0, 2.0)})
    prior = Bare().meta_fit(META).in_space(space).add(task_of(5, 2).called("new"))
    assert prior.names == ("t0", "t1", "new")
    assert prior.space is space


def test_a_space_of_other_columns_is_refused() -> None:
    with pytest.raises(SpaceError, match="The space has 1 column but the past tasks have 2"):
        Bare().meta_fit(META).in_space(Space({"a": FloatDistribution(0.0, 1.0)}))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("x", "The task is a str"),
        (Task.empty(d=3), "The task has 3 parameters but the past tasks have 2"),
        (Task([[0.1, 0.2]], [1.0], known=[True, False]), "The task lacks parameters of the space"),
    ],
)
def test_a_task_of_another_space_is_refused(task: Task, message: str) -> None:
    with pytest.raises((TaskDataError, SpaceError), match=message):
        Bare().meta_fit(META).check_task(task)


def test_joined_states_are_padded_with_infinity() -> None:
    one = {"lengthscale": torch.tensor([[1.0, 2.0]]), "noise": torch.tensor([0.1])}
    other = {"lengthscale": torch.tensor([[3.0]]), "noise": torch.tensor([0.2])}
    both = joined([one, other])
    assert both["lengthscale"].tolist() == [[1.0, 2.0], [3.0, math.inf]]
    assert both["noise"].tolist() == pytest.approx([0.1, 0.2])


def test_checks() -> None:
    check_acquisition("ucb")
    check_sqrt_beta(0)
    with pytest.raises(SettingError, match="acquisition is 'kg'; choose 'lognei'"):
        check_acquisition("kg")
    for wrong in (-1, math.nan, math.inf, "3"):
        with pytest.raises(SettingError, match="sqrt_beta is"):
            check_sqrt_beta(wrong)  # type: ignore[arg-type]
    own = Task([[0.1], [0.2]], [1.0, 2.0], name="own", extra=[[0.0], [1.0]])
    with pytest.raises(SpaceError, match=r"Task 'own' lacks .* which Bare cannot take"):
        check_whole(MetaData([own]), "Bare")
