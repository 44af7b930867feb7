"""Acquisition functions of an average: ours against the members' own, and those of BoTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    LogExpectedImprovement,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qUpperConfidenceBound,
)
from botorch.acquisition import UpperConfidenceBound as BoTorchUCB
from botorch.optim import optimize_acqf
from torch import Tensor

from scaml import ScaML, suggest
from scaml.gp.kernels import KernelName
from scaml.model.average_gp import AverageGP
from scaml.search.log_nei import NoisyExpectedImprovement
from scaml.search.ucb import UpperConfidenceBound
from tests.cases import meta_data, query, task_of
from tests.model.average_cases import D, average_of, points

META, TABLE = meta_data((10, 14, 8), 2), query(40, 2)


def improvement(model: AverageGP, X: Tensor) -> Tensor:
    """log Σ p exp α over the members' own noisy expected improvements."""
    own = torch.stack([NoisyExpectedImprovement(member)(X) for member in model.members])
    largest = own.amax(0)  # exp of some of them is 0
    mean: Tensor = model.probability @ (own - largest).exp()
    return largest + mean.log()


def bound(model: AverageGP, X: Tensor, sqrt_beta: float) -> Tensor:
    total = torch.zeros(len(X), dtype=torch.float64)
    for p, member in zip(model.probability, model.members, strict=True):
        posterior = member.posterior(X)
        total += p * (posterior.mean + sqrt_beta * posterior.variance.sqrt()).flatten()
    return total


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_noisy_improvement_is_the_average_of_the_members(level: float) -> None:
    model, X = average_of(5, level=level), points(30, 1)
    found = NoisyExpectedImprovement(model)(X)
    assert found.shape == (30,)
    torch.testing.assert_close(found, improvement(model, X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_t", [0, 1, 5])
def test_ucb_is_the_average_of_the_members(n_t: int) -> None:
    model, X = average_of(n_t), points(30, 1)
    found = UpperConfidenceBound(model, sqrt_beta=2.0)(X)
    assert found.shape == (30,)
    torch.testing.assert_close(found, bound(model, X, 2.0))


@pytest.mark.parametrize("n_t", [1, 6])
@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_values_on_tables_are_those_at_points(n_t: int, kernel: KernelName) -> None:
    prior = ScaML(kernel=kernel, weights="explained").meta_fit(META)
    model = prior.condition(task_of(n_t, 2))
    assert isinstance(model, AverageGP)
    assert len(model.members) > 1
    for function, expected in (
        (NoisyExpectedImprovement(model), improvement(model, TABLE.unsqueeze(-2))),
        (UpperConfidenceBound(model, sqrt_beta=3.0), bound(model, TABLE.unsqueeze(-2), 3.0)),
    ):
        assert function.by_moments
        moments = prior.on_table(function.model, TABLE)
        assert moments is not None
        torch.testing.assert_close(function.of_moments(*moments), expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(function(TABLE.unsqueeze(-2)), expected, rtol=1e-5, atol=1e-5)


def test_the_prior_names_its_acquisition_function() -> None:
    prior = ScaML(weights="explained").meta_fit(META)
    for n, kind in ((0, UpperConfidenceBound), (1, NoisyExpectedImprovement)):
        assert type(prior.acquisition(prior.condition(task_of(n, 2)))) is kind


def test_slopes_by_finite_differences() -> None:
    model, X = average_of(4), points(4, 1).requires_grad_()
    for function in (NoisyExpectedImprovement(model), UpperConfidenceBound(model)):
        assert torch.autograd.gradcheck(function, (X,), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_several_and_pending_points(n: int) -> None:
    """Each is chosen as if the others had the values that every member expects."""
    prior, task, pending = ScaML(weights="explained").meta_fit(META), task_of(n, 2), TABLE[:2]
    x = suggest(prior, task, q=3, pending=pending)
    together = torch.cat([x, pending])
    assert len(together.mul(1e3).round().unique(dim=0)) == 5
    rows = suggest(prior, task, q=3, pending=pending, candidates=TABLE)
    assert len(torch.cat([rows, pending]).unique(dim=0)) == 5


ACQUISITIONS: dict[str, Callable[[AverageGP], AcquisitionFunction]] = {
    "LogExpectedImprovement": lambda m: LogExpectedImprovement(m, best_f=0.5),
    "UpperConfidenceBound": lambda m: BoTorchUCB(m, beta=9.0),
    "qLogExpectedImprovement": lambda m: qLogExpectedImprovement(m, best_f=0.5),
    "qUpperConfidenceBound": lambda m: qUpperConfidenceBound(m, beta=9.0),
    "qLogNoisyExpectedImprovement": lambda m: qLogNoisyExpectedImprovement(
        m, X_baseline=m.train_inputs[0], prune_baseline=False
    ),
}


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_botorch_functions_have_a_value_per_point(name: str) -> None:
    torch.manual_seed(0)
    function = ACQUISITIONS[name](average_of(5))
    values = function(points(7, 1))
    assert values.shape == (7,)
    assert values.isfinite().all()
    if name.startswith("q"):
        assert function(points(7, 3)).shape == (7,)
    cube = torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)
    x, best = optimize_acqf(function, cube, q=1, num_restarts=2, raw_samples=16, options={"maxiter": 5})
    assert x.shape == (1, D)
    assert best.isfinite()


def test_botorch_averages_over_members_as_often_as_they_are_shown() -> None:
    """Probabilities that are multiples of 1/16 are exact in BoTorch's functions, too."""
    model, X = average_of(5, (0.5, 0.25, 0.25)), points(9, 1)
    torch.testing.assert_close(BoTorchUCB(model, beta=4.0)(X), bound(model, X, 2.0), rtol=1e-6, atol=0)
    own = [LogExpectedImprovement(member, best_f=0.5)(X).exp() for member in model.members]
    expected = 0.5 * own[0] + 0.25 * own[1] + 0.25 * own[2]
    found = LogExpectedImprovement(model, best_f=0.5)(X)
    torch.testing.assert_close(found, expected.log(), rtol=1e-6, atol=1e-6)
