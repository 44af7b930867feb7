"""UCB against BoTorch's, in any unit of y."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound as BoTorchUCB
from botorch.acquisition.objective import ScalarizedPosteriorTransform

from scaml import ScaML, Task
from scaml.model.weight_priors import WeightsName
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


@pytest.mark.parametrize("weights", ["shared", "explained"])
@pytest.mark.parametrize("sqrt_beta", [0.0, 0.7])
@pytest.mark.parametrize("n_t", [0, 5])
def test_the_slope_in_closed_form(n_t: int, sqrt_beta: float, weights: WeightsName) -> None:
    """Against autograd through each member's general posterior, and central differences."""
    prior = ScaML(weights=weights).meta_fit(meta_data((10, 14, 8), 2))
    function = UpperConfidenceBound(prior.condition(task_of(n_t, 2)), sqrt_beta=sqrt_beta)
    assert function.has_slope
    X = query(9, 2).requires_grad_()
    members = getattr(function.model, "members", [function.model])
    p = getattr(function.model, "probability", torch.ones(1).double())
    each = [member.posterior(X) for member in members]
    value = [(one.mean + sqrt_beta * one.variance.sqrt()).flatten() for one in each]
    expected = p @ torch.stack(value)
    (wanted,) = torch.autograd.grad(expected.sum(), X)
    found, slope = function.value_and_slope(X.detach())
    torch.testing.assert_close(found, expected.detach(), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(slope, wanted, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        for column, shift in enumerate(1e-5 * torch.eye(2, dtype=torch.float64)):
            up, down = (function((X + sign * shift).unsqueeze(-2)) for sign in (1.0, -1.0))
            torch.testing.assert_close(slope[:, column], (up - down) / 2e-5, rtol=1e-4, atol=1e-4)


def test_moments_are_not_enough_for_a_transform_or_a_batch_of_fantasies() -> None:
    model, X = pair("se", (6, 9), 4, d=2, seed=1).model, query(3, 2)
    function = UpperConfidenceBound(model)
    function.posterior_transform = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double())
    assert not function.by_moments
    assert not function.has_slope
    fantasies = model.condition_on_observations(X[:1], torch.zeros(4, 1, 1).double())
    assert not UpperConfidenceBound(fantasies).by_moments
