from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scaml import MetaData, Task
from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.methods import GC3P, GPBO, RGPE
from scaml.methods.gpbo import GPBOPrior
from tests.cases import meta_data, task_of
from tests.run_cases import SPACE, Known, run_of, ugly, without_weights

POINTS = torch.tensor([[0.2, 0.3], [0.4, 0.5], [0.9, 0.1]], dtype=torch.float64)


@pytest.mark.parametrize("maximize", [True, False])
def test_the_numbers_of_a_suggestion(maximize: bool) -> None:
    run = run_of(5, suggestions=POINTS, maximize=maximize)
    sign = 1.0 if maximize else -1.0
    posterior = run.model.posterior(POINTS.unsqueeze(-2))
    found = run.suggestions
    assert [one.expected for one in found] == pytest.approx((sign * posterior.mean).flatten().tolist())
    assert [one.deviation for one in found] == pytest.approx(
        posterior.variance.sqrt().flatten().tolist()
    )
    gps = run.model.task_gps
    moves = sign * run.model.y_scale * run.model.weights[:, None] * gps.mean(POINTS)
    for i, one in enumerate(found):
        by_hand = dict(zip(gps.names, moves[:, i].tolist(), strict=True))
        assert one.moved_by == pytest.approx({name: move for name, move in by_hand.items() if move})
        sizes = [abs(move) for move in one.moved_by.values()]
        assert sizes == sorted(sizes, reverse=True)


def test_parameters_are_those_of_the_space_rounded() -> None:
    run = Run.of(ugly())
    X = run.subject.suggestions
    assert X is not None
    assert [one.params for one in run.suggestions] == [SPACE.rounded(SPACE.decode(x)) for x in X]
    assert list(run.suggestions[0].params) == list(SPACE.names)  # constants included


def test_without_a_space_parameters_are_coordinates() -> None:
    (first, *_) = run_of(3, suggestions=POINTS).suggestions
    assert first.params == {"x1": 0.2, "x2": 0.3}


def test_models_without_values_or_without_past_parts() -> None:
    meta, task = meta_data((6, 7), 2), task_of(4, 2)
    methods = (GC3P(updates=2), GPBO(), RGPE(samples=16))
    copula, plain, ensemble = (
        Run.of(Subject(method.meta_fit(meta), task, suggestions=POINTS)).suggestions[0]
        for method in methods
    )
    assert (copula.expected, copula.deviation, copula.moved_by) == (None, None, {})
    assert plain.expected is not None
    assert plain.moved_by == {}
    assert ensemble.moved_by


def test_tasks_of_weight_0_do_not_move_the_prediction() -> None:
    (one, *_) = without_weights(run_of(4, suggestions=POINTS)).suggestions
    assert one.moved_by == {}


def first_coordinate(X: Tensor) -> Tensor:
    return X[..., 0]


def beyond(past: list[float], new: list[float], *, maximize: bool) -> list[tuple[float | None, bool]]:
    """For predictions of 0.2, 0.4 and 0.9 of a maximized objective: the limit, and whether below it."""
    X = torch.linspace(0.1, 0.9, len(past), dtype=torch.float64).unsqueeze(-1).expand(-1, 2)
    prior = GPBO().meta_fit(MetaData([Task(X, past)]))
    task = Task(X[: len(new)], new) if new else Task.empty(2)
    subject = Subject(prior, task, suggestions=POINTS, maximize=maximize)
    found = Run(subject, Known(first_coordinate)).suggestions
    return [(one.beyond, one.is_below) for one in found]


def test_a_prediction_beyond_all_values_has_the_value_that_it_passes() -> None:
    assert beyond([0.3, 0.5], [], maximize=True) == [(0.3, True), (None, False), (0.5, False)]
    assert beyond([0.3, 0.5], [0.1], maximize=True) == [(None, False), (None, False), (0.5, False)]
    assert beyond([0.3, 0.35], [1.0, 0.2], maximize=True) == [(None, False)] * 3


def test_a_minimized_objective_passes_values_with_its_own_sign() -> None:
    """The model predicts -y: 0.2, 0.4 and 0.9 are errors of -0.2, -0.4 and -0.9."""
    assert beyond([-0.01, -0.5], [], maximize=False) == [(0.01, True)] * 3
    assert beyond([0.3, 0.5], [], maximize=False) == [(-0.3, False), (None, False), (-0.5, True)]


def test_a_rounding_error_is_not_beyond() -> None:
    past = [0.2 + 1e-13, 0.9 - 1e-13]
    assert beyond(past, [], maximize=True) == [(None, False)] * 3
    assert beyond([0.2 + 1e-6, 0.9], [], maximize=True)[0] == (0.2 + 1e-6, True)


def test_without_any_value_nothing_is_beyond() -> None:
    run = Run.of(Subject(GPBOPrior(GPBO(), 2), Task.empty(2), suggestions=POINTS))
    assert run.observed_range is None
    assert [one.beyond for one in run.suggestions] == [None] * 3
    ranks = GC3P(updates=2).meta_fit(meta_data((6, 7), 2))
    assert Run.of(Subject(ranks, task_of(4, 2), suggestions=POINTS)).suggestions[0].beyond is None
