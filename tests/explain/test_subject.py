from __future__ import annotations

from dataclasses import replace
from typing import Any

import optuna
import pytest
import torch
from botorch.models.model import Model
from optuna.samplers import RandomSampler
from torch import Tensor

from scaml import ScaML, ScaMLSampler, SettingError, Space, SpaceError, Task, TaskDataError
from scaml.explain.run import Inapplicable, Run
from scaml.methods import GPBO
from scaml.methods.base import MetaPrior
from scaml.report import Subject, of_study
from tests.cases import MIXED, meta_data, task_of
from tests.report.cases import run_of
from tests.sampler_cases import BOX, bowl, bowls

pytestmark = pytest.mark.usefixtures("quiet")


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


def test_no_suggestion_is_none() -> None:
    prior = ScaML().meta_fit(meta_data((5, 6), 2))
    assert Subject(prior, Task.empty(2), suggestions=torch.empty(0, 2)).suggestions is None


def test_slices_run_through_the_best_point_that_is_known() -> None:
    run = run_of(5)
    assert torch.equal(run.center[0], run.task.X[run.task.y.argmax()])
    assert f"number {int(run.task.y.argmax()) + 1}" in run.center[1]
    points = torch.tensor([[0.2, 0.3], [0.4, 0.5]], dtype=torch.float64)
    assert torch.equal(run_of(0, suggestions=points).center[0], points[0])
    empty = run_of(0)
    mean = empty.model.posterior(empty.points.unsqueeze(-2)).mean.flatten()
    assert torch.equal(empty.center[0], empty.points[mean.argmax()])


def sampler() -> ScaMLSampler:
    return ScaMLSampler(meta_studies=bowls(), seed=0)


def study_of(**settings: Any) -> optuna.Study:
    study = optuna.create_study(study_name="tuning", **settings)
    study.optimize(bowl(0.0), n_trials=4)
    return study


def test_a_study_is_a_subject() -> None:
    study = study_of(sampler=sampler())
    subject = of_study(study, q=2)
    assert subject.title == "tuning"
    assert subject.objective == "value"
    assert not subject.maximize
    assert -float(subject.task.y.max()) == study.best_value
    assert subject.matching is not None
    assert subject.suggestions is not None
    assert subject.suggestions.shape == (2, 2)


def test_suggestions_know_what_is_being_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def spy(prior: MetaPrior, model: Model, task: Task, *settings: Any) -> Tensor:
        asked.extend(settings)
        return task.X[:1]

    monkeypatch.setattr("scaml.integrations.optuna.subject.choose_new", spy)
    study = study_of(sampler=sampler())
    running = study.ask()
    point = [running.suggest_float(name, 0.0, 1.0) for name in BOX]
    of_study(study, q=3, seed=5)
    q, pending, seed = asked
    assert pending.tolist() == [pytest.approx(point)]
    assert (q, seed) == (3, 5)


def test_a_model_that_is_there_is_not_made_again() -> None:
    subject = of_study(study_of(sampler=sampler()), q=2)
    assert subject.model is not None
    assert Run.of(subject).model is subject.model
    again = Run.of(replace(subject, model=None)).model
    assert again is not subject.model
    assert torch.equal(again.weights, subject.model.weights)


def test_the_objective_has_the_name_that_the_study_gives_it() -> None:
    study = study_of(sampler=sampler())
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        study.set_metric_names(["loss"])
    assert of_study(study).objective == "loss"


def test_a_study_without_a_past_is_refused() -> None:
    with pytest.raises(SettingError, match="RandomSampler, which knows no past"):
        of_study(study_of(sampler=RandomSampler(seed=0)))
    with pytest.raises(SettingError, match="q is 0"):
        of_study(study_of(sampler=sampler()), q=0)


def test_the_past_of_a_method_that_ignores_it_is_no_past() -> None:
    run = Run.of(Subject(GPBO().meta_fit(meta_data((5, 6), 2)), task_of(3, 2)))
    assert run.past == ()
    with pytest.raises(Inapplicable, match="GPBO does not use the past tasks"):
        run.check_past()
