"""A sampler that does not return to a point it has evaluated."""

from __future__ import annotations

import itertools
from dataclasses import replace

import optuna
import pytest
import torch

from scaml import ScaML, ScaMLSampler, Task
from scaml.ask import choose, choose_new
from scaml.methods.base import MetaPrior
from scaml.spaces.space import Space
from tests.cases import meta_data

pytestmark = pytest.mark.usefixtures("quiet")
SPACE = Space({f"x{i}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(2)})
NOBODY = torch.empty(0, 2, dtype=torch.float64)


def timid_prior(sqrt_beta: float) -> MetaPrior:
    return replace(ScaML.paper(), sqrt_beta=sqrt_beta).meta_fit(meta_data((12, 15), 2)).in_space(SPACE)


@pytest.mark.parametrize("sqrt_beta", [0.0, 1e-6])
def test_a_bolder_ucb_looks_elsewhere(sqrt_beta: float) -> None:
    """Without exploration the best corner is the best again, until the sampler sees it."""
    X = torch.tensor([[0, 0], [0.5, 0.5], [1, 1], [0, 1], [1, 0]], dtype=torch.float64)
    prior, task = timid_prior(sqrt_beta), Task(X, 3.0 * X.sum(-1))
    model = prior.condition(task)
    again = choose(prior, model, task, 1, NOBODY, 0)
    assert (task.X - again).abs().amax(-1).min() < 1e-3
    fresh = choose_new(prior, model, task, 1, NOBODY, 0)
    assert (task.X - fresh).abs().amax(-1).min() >= 1e-3


def test_a_point_that_is_new_is_left_as_it_is() -> None:
    prior, task = timid_prior(1.0), Task.empty(2)
    model = prior.condition(task)
    found = choose_new(prior, model, task, 1, NOBODY, 3)
    assert torch.equal(found, choose(prior, model, task, 1, NOBODY, 3))


def test_points_of_a_batch_and_pending_ones_are_not_repeated_either() -> None:
    prior, task = timid_prior(0.0), Task.empty(2)
    model = prior.condition(task)
    pending = choose(prior, model, task, 1, NOBODY, 0) + 5e-4
    again = choose(prior, model, task, 1, pending, 0)  # as expected leaves the mean as it is
    assert (again - pending).abs().max() < 1e-3
    found = torch.cat([pending, choose_new(prior, model, task, 2, pending, 0)])
    apart = torch.cdist(found, found, p=torch.inf) + torch.eye(len(found))
    assert apart.min() >= 1e-3


def test_a_study_of_a_flat_objective_goes_on_exploring() -> None:
    past = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    past.optimize(lambda t: (t.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=10)
    study = optuna.create_study(sampler=ScaMLSampler(meta_studies=[past], seed=0))
    study.optimize(lambda t: 0.0 * t.suggest_float("x", 0, 1), n_trials=8)
    values = sorted(t.params["x"] for t in study.trials)
    assert min(b - a for a, b in itertools.pairwise(values)) >= 1e-3
