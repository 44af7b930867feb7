"""The past tasks at X_t, for one design and for a batch of them."""

from __future__ import annotations

import pytest
import torch

from scaml import ScaMLGP, Task
from scaml.gp.units import Units
from scaml.model.past_at_data import PastAtData
from tests.cases import pair, query


@pytest.mark.parametrize("shape", [(4,), (0,), (3, 4)])
def test_moments_are_those_of_the_tasks(shape: tuple[int, ...]) -> None:
    tasks, X = pair("matern52", (6, 9, 4), 0, d=2, seed=2).task_gps, query(*shape, 2)
    past, chosen = PastAtData.of(tasks, X), [2, 0]
    mean, covariance = tasks.posterior(X)
    torch.testing.assert_close(past.mean, mean)
    torch.testing.assert_close(past.covariance, covariance)
    some = past.subset(chosen)
    torch.testing.assert_close(some.mean, mean[chosen])
    torch.testing.assert_close(some.covariance, covariance[chosen])
    torch.testing.assert_close(some.u, tasks.subset(chosen).whiten(X))
    assert past.subset([0, 1, 2]) is past


def test_a_model_that_is_given_the_past_is_the_same() -> None:
    case = pair("se", (6, 9, 4), 5, d=2, seed=2)
    model = case.model
    task = Task(model.train_inputs[0], model.train_targets)
    units, theta = Units(model.y_offset, model.y_scale), model.hyperparameters
    theta.weights[1] = 0.0
    given = ScaMLGP(case.task_gps, task, units, theta, PastAtData.of(case.task_gps, task.X))
    alone = ScaMLGP(case.task_gps, task, units, theta)
    X = query(6, 1, 2)
    for ours, theirs in zip(given.marginal(X), alone.marginal(X), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
