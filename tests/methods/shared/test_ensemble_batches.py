"""`Ensemble` on batches of points against its members, one by one; its gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scaml import TaskGPs
from scaml.gp.units import standardize
from scaml.methods.shared.ensemble import Ensemble
from scaml.methods.shared.plain_gp import fit_plain_gp
from tests.cases import meta_data, query, task_of

W = torch.tensor([0.3, 0.0, 0.5], dtype=torch.float64)


def ensemble(n_t: int = 5, *, means_alone: bool = False) -> Ensemble:
    task_gps = TaskGPs.fit(meta_data((6, 9, 7), 2), kernel="se", seed=0, n_jobs=1)
    task = task_of(n_t, 2)
    own = fit_plain_gp(task, standardize(task.y), kernel="se", seed=0)
    return Ensemble(task_gps, own, W, 0.2, means_alone=means_alone)


def by_hand(model: Ensemble, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance from the members, one by one."""
    mean, covariance = model.own.moments(X)
    mean, covariance = 0.2 * mean, 0.04 * covariance
    for m, w in enumerate(W.tolist()):
        one = model.task_gps.subset([m])
        mean = mean + w * one.mean(X)[0]
        if not model.means_alone:
            covariance = covariance + w**2 * one.covariance(X)[0]
    return mean, covariance


@pytest.mark.parametrize("means_alone", [False, True])
@pytest.mark.parametrize("n_t", [0, 5])
@pytest.mark.parametrize("shape", [(4,), (1,), (3, 1), (3, 4), (2, 3, 2)])
def test_an_ensemble_is_the_sum_of_its_members(
    n_t: int, shape: tuple[int, ...], means_alone: bool
) -> None:
    model, X = ensemble(n_t, means_alone=means_alone), query(*shape, 2)
    mean, covariance = by_hand(model, X)
    offset, scale = model.units
    posterior = model.posterior(X)
    torch.testing.assert_close(posterior.mean.squeeze(-1), offset + scale * mean)
    expected = scale.square() * covariance
    torch.testing.assert_close(
        posterior.distribution.covariance_matrix, expected, rtol=1e-8, atol=1e-12
    )
    if shape[-1] == 1:
        ours = model.marginal(X)
        torch.testing.assert_close(ours[0], posterior.mean.squeeze(-1))
        torch.testing.assert_close(ours[1], posterior.variance.squeeze(-1))


def test_cross_covariances_are_blocks_of_the_joint_one() -> None:
    model, X = ensemble(), query(3, 7, 2)
    _, joint = model.moments(X)
    torch.testing.assert_close(model.cross(X[:, :3], X[:, 3:]), joint[:, :3, 3:], rtol=1e-8, atol=1e-11)
    later = model.condition_on_observations(query(2, 2), torch.ones(2, 1, dtype=torch.float64))
    _, joint = later.moments(X)
    torch.testing.assert_close(later.cross(X[:, :3], X[:, 3:]), joint[:, :3, 3:], rtol=1e-7, atol=1e-10)


def test_gradients_by_finite_differences() -> None:
    model = ensemble()
    later = model.condition_on_observations(query(2, 2), torch.ones(2, 1, dtype=torch.float64))
    for process in (model, later):
        X = query(3, 1, 2).requires_grad_()
        assert torch.autograd.gradcheck(process.marginal, (X,), rtol=1e-5, atol=1e-7)
