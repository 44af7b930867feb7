"""UCB against BoTorch's, in any unit of y."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound as BoTorchUCB
from botorch.acquisition.objective import ScalarizedPosteriorTransform

from scaml import ScaML, Task
from scaml.search.ucb import UpperConfidenceBound
from tests.cases import meta_data, pair, query, task_of


def test_default_is_botorchs_ucb() -> None:
    model = pair("se", (6, 9), 4, d=2, seed=1).model
    X = torch.rand(7, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(UpperConfidenceBound(model)(X), BoTorchUCB(model, beta=9.0)(X))
    torch.testing.assert_close(
        UpperConfidenceBound(model, sqrt_beta=0.5)(X), BoTorchUCB(model, beta=0.25)(X)
    )


def test_default_does_not_care_about_the_unit_of_y() -> None:
    """At millionths, BoTorch's floor on the variance would take the exploration away."""
    X = torch.rand(7, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = []
    for unit in (1.0, 1e-9):
        meta = type(meta_data((5,), 2))(
            [Task(t.X, unit * t.y, name=t.name) for t in meta_data((6, 9), 2)]
        )
        task = task_of(4, 2)
        model = ScaML().meta_fit(meta).condition(Task(task.X, unit * task.y))
        values.append(UpperConfidenceBound(model)(X) / unit)
    torch.testing.assert_close(values[0], values[1], rtol=1e-6, atol=1e-6)


def test_values_from_moments_are_those_at_points() -> None:
    model, X = pair("se", (6, 9), 4, d=2, seed=1).model, query(7, 1, 2)
    function = UpperConfidenceBound(model, sqrt_beta=0.7)
    posterior = model.posterior(X)
    values = function.of_moments(posterior.mean.flatten(), posterior.variance.flatten())
    torch.testing.assert_close(values, function(X), rtol=1e-9, atol=1e-9)
    assert function.by_moments
    assert function.exploration == pytest.approx(0.7)


def test_moments_are_not_enough_for_a_transform_or_a_batch_of_fantasies() -> None:
    model, X = pair("se", (6, 9), 4, d=2, seed=1).model, query(3, 2)
    function = UpperConfidenceBound(model)
    function.posterior_transform = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double())
    assert not function.by_moments
    fantasies = model.condition_on_observations(X[:1], torch.zeros(4, 1, 1).double())
    assert not UpperConfidenceBound(fantasies).by_moments
