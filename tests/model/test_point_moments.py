"""Mean and variance at single points against the general posterior, with gradients."""

from __future__ import annotations

import copy
import pickle
from typing import get_args

import pytest
import torch
from torch import Tensor

from scaml import MetaData, ScaMLGP, Task
from scaml.gp.kernels import KernelName
from scaml.methods import GPBO
from tests.cases import ONE_MODEL, meta_data, pair, task_of


def points(n: int, d: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(n, 1, d, generator=generator, dtype=torch.float64)


def assert_like_the_posterior(model: ScaMLGP, X: Tensor) -> None:
    """Values and gradients of both moments.

    The joint posterior of all points does not take the way of single points.
    """
    X = X.requires_grad_()
    mean, variance = model.marginal(X)
    posterior = model.posterior(X.squeeze(-2))
    pairs = ((mean, posterior.mean), (variance, posterior.variance))
    for ours, theirs in pairs:
        theirs = theirs.flatten()
        torch.testing.assert_close(ours.flatten(), theirs, rtol=1e-9, atol=1e-11)
        slopes = [torch.autograd.grad(v.sum(), X, retain_graph=True)[0] for v in (ours, theirs)]
        torch.testing.assert_close(*slopes, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n_t", [0, 1, 7])
@pytest.mark.parametrize("level", [0.0, 0.8])
@pytest.mark.parametrize("sizes", [(6,), (6, 9, 4)])
@pytest.mark.parametrize("kernel", get_args(KernelName))
def test_like_the_posterior(kernel: KernelName, sizes: tuple[int, ...], level: float, n_t: int) -> None:
    model = pair(kernel, sizes, n_t, d=3, seed=2, signed=True, level=level).model
    assert_like_the_posterior(model, points(11, 3))


@pytest.mark.parametrize("n_t", [0, 4])
def test_without_any_task(n_t: int) -> None:
    model = GPBO().meta_fit(meta_data((5,), 2)).condition(task_of(n_t, 2))
    assert_like_the_posterior(model, points(5, 2))


def test_tasks_that_lack_a_parameter_or_have_one_more() -> None:
    a, b, c = meta_data((8, 9, 10), 2)
    lacking = Task(b.X, b.y, name="lacking", known=[True, False])
    more = Task(c.X, c.y, name="more", extra=(c.X[:, :1] - 0.5) ** 2)
    model = ONE_MODEL.meta_fit(MetaData([a, lacking, more])).condition(task_of(6, 2))
    model.load_state_dict({**model.state_dict(), "weights": torch.tensor([0.5, 0.4, 0.3]).double()})
    assert_like_the_posterior(model, points(7, 2))


def test_new_hyperparameters_observations_and_copies_are_noticed() -> None:
    model = pair("se", (6, 9), 4, d=2, seed=1).model
    X = points(5, 2)
    before = model.marginal(X)[0]
    more = model.condition_on_observations(X[0], torch.ones(1, 1, dtype=torch.float64))
    assert not torch.equal(more.marginal(X)[0], before)
    assert_like_the_posterior(more, points(5, 2))
    model.load_state_dict({**model.state_dict(), "weights": 2.0 * model.weights})
    assert not torch.equal(model.marginal(X)[0], before)
    assert_like_the_posterior(model, points(5, 2))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin.marginal(X)[0], model.marginal(X)[0])


def test_a_first_call_in_inference_mode_leaves_the_model_differentiable() -> None:
    model = pair("se", (6, 9), 4, d=2, seed=1).model
    with torch.inference_mode():
        model.marginal(points(3, 2))
    assert_like_the_posterior(model, points(3, 2))
