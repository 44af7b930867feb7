"""Means and variances of all members at once, against each member by itself."""

from __future__ import annotations

import pytest
import torch

from scaml import MetaData, ScaML
from scaml.search.log_nei import NoisyExpectedImprovement
from tests.cases import query, task_of
from tests.gp.cases import mixed_tasks
from tests.model.average_cases import average_of, points


@pytest.mark.parametrize("n_t", [0, 1, 5])
@pytest.mark.parametrize("level", [0.0, 5.0])
def test_all_members_at_once_are_each_member_by_itself(n_t: int, level: float) -> None:
    model, X = average_of(n_t, level=level), points(7)
    mean, variance = model.point_moments()(X)
    assert mean.shape == (7, 3, 1)
    assert variance.shape == (7, 3)
    for e, member in enumerate(model.members):
        own = member.posterior(X.unsqueeze(-2))
        torch.testing.assert_close(mean[:, e], own.mean.squeeze(-1), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(variance[:, e], own.variance.flatten(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_fantasies_of_all_members_at_once(level: float) -> None:
    model, X = average_of(5, level=level), points(6)
    known = NoisyExpectedImprovement(model).model
    mean, variance = known.of_fantasies(X)
    for e, member in enumerate(known.members):
        own_mean, own_variance = member.of_fantasies(X)
        torch.testing.assert_close(mean[:, e], own_mean, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(variance[:, e], own_variance, rtol=1e-8, atol=1e-12)


def test_gradients_are_those_of_the_members() -> None:
    model, X = average_of(4), points(5).requires_grad_()
    mean, variance = model.marginal(X.unsqueeze(-2))
    (slope,) = torch.autograd.grad((mean + variance).sum(), X)
    each = [member.marginal(X.unsqueeze(-2)) for member in model.members]
    (expected,) = torch.autograd.grad(torch.stack([(m + v).sum() for m, v in each]).sum(), X)
    torch.testing.assert_close(slope, expected, rtol=1e-9, atol=1e-11)


def test_columns_that_only_past_tasks_have() -> None:
    prior = ScaML(weights="explained").meta_fit(MetaData(mixed_tasks(7)))
    model, X = prior.condition(task_of(5, 2)), query(4, 2)
    mean, _ = model.marginal(X.unsqueeze(-2))
    for e, member in enumerate(model.members):
        torch.testing.assert_close(mean[:, e], member.posterior(X).mean.flatten())


@pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
def test_any_batch_of_points(batch: tuple[int, ...]) -> None:
    model, X = average_of(4), points(*batch, 1)
    for ours, flat in zip(model.marginal(X), model.marginal(X.view(-1, 1, 2)), strict=True):
        assert ours.shape == (*batch, 3)
        torch.testing.assert_close(ours.view(-1, 3), flat)
