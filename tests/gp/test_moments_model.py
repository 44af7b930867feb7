"""Processes known by their moments, and ensembles, against dense conditioning by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from scaml import SettingError, TaskGPs
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


@pytest.mark.parametrize("noise", [None, 0.05])
def test_further_observations_are_dense_conditioning(noise: float | None) -> None:
    model, X, Z = ensemble(), query(3, 2), query(9, 2)[5:]
    Y = torch.tensor([[1.0], [2.0], [0.5]], dtype=torch.float64)
    given = None if noise is None else torch.full_like(Y, noise)
    later = model.condition_on_observations(X, Y, noise=given)
    posterior = model.posterior(torch.cat([X, Z]))
    mean = posterior.mean.squeeze(-1).numpy()
    K = posterior.distribution.covariance_matrix.numpy()
    added = (model.noise * model.units.scale.square()).item() if noise is None else noise
    gain = np.linalg.solve(K[:3, :3] + added * np.eye(3), K[:3, 3:]).T
    ours = later.posterior(Z)
    expected = mean[3:] + gain @ (Y.squeeze(-1).numpy() - mean[:3])
    np.testing.assert_allclose(ours.mean.squeeze(-1), expected, rtol=0, atol=1e-7)
    covariance = K[3:, 3:] - gain @ K[:3, 3:]
    np.testing.assert_allclose(ours.distribution.covariance_matrix, covariance, rtol=0, atol=1e-7)


def test_values_as_expected_leave_the_mean_and_shrink_the_variance() -> None:
    model, X, Z = ensemble(), query(2, 2), query(6, 1, 2)
    later = model.condition_on_observations(X, model.posterior(X).mean)
    torch.testing.assert_close(later.posterior(Z).mean, model.posterior(Z).mean)
    assert (later.posterior(Z).variance <= model.posterior(Z).variance + 1e-12).all()
    assert (later.posterior(X).variance < model.posterior(X).variance).all()


def test_fantasies_have_a_batch_of_their_own() -> None:
    model, sampler = ensemble(), SobolQMCNormalSampler(torch.Size([4]), seed=0)
    fantasies = model.fantasize(query(2, 2), sampler)
    assert fantasies.batch_shape == (4,)
    assert fantasies.posterior(query(5, 1, 3, 2)).mean.shape == (5, 4, 3, 1)
    twice = fantasies.condition_on_observations(query(4, 1, 2), torch.ones(4, 1, 1).double())
    assert twice.posterior(query(3, 2)).mean.shape == (4, 3, 1)


def test_gradients_by_finite_differences() -> None:
    model = ensemble()
    later = model.condition_on_observations(query(2, 2), torch.ones(2, 1, dtype=torch.float64))
    for process in (model, later):
        X = query(3, 1, 2).requires_grad_()
        assert torch.autograd.gradcheck(process.marginal, (X,), rtol=1e-5, atol=1e-7)


def test_botorch_takes_it() -> None:
    model = ensemble()
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    improvement = qLogExpectedImprovement(model, best_f=1.0)
    x, _ = optimize_acqf(improvement, bounds, q=2, num_restarts=2, raw_samples=16)
    assert x.shape == (2, 2)
    noisy = model.posterior(query(3, 2), observation_noise=True).variance
    assert (noisy > model.posterior(query(3, 2)).variance).all()
    assert model.to(torch.float32).posterior(query(1, 2)).mean.dtype == torch.float64
    assert model.num_outputs == 1
    assert model.subset_output([0]) is model


def test_other_outputs_are_refused() -> None:
    with pytest.raises(SettingError, match="the one output 0"):
        ensemble().posterior(query(1, 2), output_indices=[1])
    with pytest.raises(SettingError, match="the one output 0"):
        ensemble().subset_output([1])


def test_a_plain_gp_without_data_has_the_priors_centre() -> None:
    empty = task_of(0, 2)
    model = fit_plain_gp(empty, standardize(empty.y), kernel="se", seed=0)
    assert model.posterior(query(3, 2)).mean.abs().max() == 0
