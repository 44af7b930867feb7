"""A sampler that does not return to a point it has evaluated."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import optuna
import pytest
import torch

from scaml import ScaML, ScaMLSampler, Task
from scaml.ask import choose, choose_new
from scaml.methods import GPBO, RGPE, Method
from scaml.methods.base import MetaPrior
from scaml.spaces.space import Space
from tests.cases import meta_data
from tests.sampler_cases import Objective, bowl, bowls, run

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


def closest(study: optuna.Study) -> float:
    """The smallest distance between two trials, in any coordinate."""
    X = torch.tensor([[*trial.params.values()] for trial in study.trials], dtype=torch.float64)
    return float((torch.cdist(X, X, p=torch.inf) + torch.eye(len(X))).min())


@pytest.mark.parametrize(
    ("method", "regret"),
    [
        (ScaML(weights="shared"), 1e-9),
        (ScaML(weights="explained"), 1e-9),
        (GPBO(acquisition="lognei"), 4e-8),  # 5e-9: its curvature comes from its own trials alone
        (RGPE(), 4e-8),  # no exact form of its own: a plain GP says what is left to gain
    ],
    ids=["shared", "explained", "plain", "rgpe"],
)
def test_an_objective_without_noise_is_solved_to_many_digits(method: Method, regret: float) -> None:
    sampler = ScaMLSampler(meta_studies=bowls(), method=method, seed=0)
    study = run(sampler, bowl(0.033), 40)
    assert study.best_value < regret
    assert closest(study) >= 1e-9


def steps(trial: optuna.Trial) -> float:
    return round(bowl(0.033)(trial), 2)


def noisy(trial: optuna.Trial) -> float:
    return bowl(0.033)(trial) + 0.02 * math.sin(1e9 * trial.number * trial.params["x"])


@pytest.mark.parametrize("objective", [steps, noisy])
@pytest.mark.parametrize("weights", ["shared", "explained"])
def test_no_trial_goes_back_where_nothing_is_to_be_gained(weights: str, objective: Objective) -> None:
    method = ScaML(weights=weights)  # type: ignore[arg-type]
    study = run(ScaMLSampler(meta_studies=bowls(), method=method, seed=0), objective, 20)
    assert closest(study) >= 1e-3
