from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from scaml import Task
from scaml.explain import run as run_module
from scaml.explain.run import Inapplicable, Run
from scaml.explain.subject import Subject
from scaml.explain.suggestions import Suggestion, suggestions_at
from scaml.methods import GC3P, GPBO, RGPE
from scaml.methods.gpbo import GPBOPrior
from tests.cases import meta_data, task_of
from tests.run_cases import run_of

POINTS = torch.tensor([[0.2, 0.3], [0.4, 0.5]], dtype=torch.float64)


def test_slices_run_through_the_best_point_that_is_known() -> None:
    run = run_of(5)
    assert run.best == int(run.task.y.argmax())
    assert torch.equal(run.center, run.task.X[run.task.y.argmax()])
    assert torch.equal(run_of(0, suggestions=POINTS).center, POINTS[0])
    empty = run_of(0)
    assert empty.best is None
    mean = empty.model.posterior(empty.points.unsqueeze(-2)).mean.flatten()
    assert torch.equal(empty.center, empty.points[mean.argmax()])


def test_a_model_that_exists_is_not_fitted_again() -> None:
    subject = run_of(4).subject
    model = subject.prior.condition(subject.task, seed=0)
    assert Run.of(replace(subject, model=model)).model is model
    again = Run.of(subject).model
    assert again is not model
    assert torch.equal(again.weights, model.weights)


def test_a_method_that_ignores_the_past_has_no_past() -> None:
    run = Run.of(Subject(GPBO().meta_fit(meta_data((5, 6), 2)), task_of(3, 2)))
    assert run.past == ()
    assert run_of(3).past == ("t0", "t1", "t2")
    run_of(3).check_past()
    with pytest.raises(Inapplicable, match="GPBO does not use the past tasks"):
        run.check_past()


def test_predictions_have_the_sign_of_the_objective() -> None:
    up, down = run_of(4), run_of(4, maximize=False)
    (mean, deviation), (minus, same) = up.prediction(POINTS), down.prediction(POINTS)
    assert torch.equal(mean, -minus)
    assert torch.equal(deviation, same)
    ranks = Run.of(Subject(GC3P(updates=2).meta_fit(meta_data((6, 7), 2)), task_of(4, 2)))
    with pytest.raises(Inapplicable, match="GC3P predicts the rank of a value"):
        ranks.prediction(POINTS)


def test_suggestions_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counting(X: torch.Tensor, *args: object, **settings: object) -> list[Suggestion]:
        calls.append(len(X))
        return suggestions_at(X, *args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(run_module, "suggestions_at", counting)
    run = run_of(4, suggestions=POINTS)
    assert run.suggestions is run.suggestions
    assert calls == [2]
    assert run_of(4).suggestions == []


def test_the_most_sensitive_parameter_comes_first() -> None:
    parameters, values = run_of(6).by_sensitivity()
    assert values == sorted(values, reverse=True)
    assert {p.name for p in parameters} == {"x1", "x2"}


def test_only_closed_form_models_are_known_without_the_data() -> None:
    run = run_of(4)
    before = run.before_data
    assert before is not None
    assert before.train_targets.numel() == 0
    ensemble = Run.of(Subject(RGPE(samples=16).meta_fit(meta_data((7, 8), 2)), task_of(4, 2)))
    assert ensemble.before_data is None


def test_a_flat_prediction_is_not_drawn_before_the_first_experiment() -> None:
    nothing = Run.of(Subject(GPBOPrior(GPBO(), 2), Task.empty(2)))
    with pytest.raises(Inapplicable, match="Nothing is known yet"):
        nothing.check_varies()
    run_of(0).check_varies()
    Run.of(Subject(GPBOPrior(GPBO(), 2), task_of(3, 2))).check_varies()
