from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from scaml import SettingError
from scaml.model.fit_theta import Cache, negative_log_posterior
from scaml.model.hyperparameters import ThetaPriors
from study.choices.weights import PRIORS, DirichletLike, PriorName, Weighted
from tests.cases import meta_data, task_of
from tests.oracles import Array

M = 5
ONE = torch.ones(6, dtype=torch.float64)
each_prior = pytest.mark.parametrize("name", PRIORS)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weights(seed: int = 0) -> Tensor:
    """6 x M, some of them very small."""
    return 3.0 * torch.rand(6, M, generator=generator(seed), dtype=torch.float64) ** 4 + 1e-5


def log_density(name: PriorName, w: Array) -> Array:
    """From SciPy's distributions."""
    if name == "per-task":
        return np.asarray(stats.gamma(1, scale=1 / M).logpdf(w).sum(-1))
    if name == "normal":
        return np.asarray(stats.truncnorm(-1, np.inf, loc=1 / M, scale=1 / M).logpdf(w).sum(-1))
    if name == "spike":
        parts = [0.5 * stats.expon(scale=scale).pdf(w) for scale in (0.01, 1.0)]
        return np.asarray(np.log(parts[0] + parts[1]).sum(-1))
    c = w.sum(-1)
    shares = [stats.dirichlet([2.0] * M).logpdf(row / row.sum()) for row in w]
    return np.asarray(shares + stats.norm(1.0, 0.5).logpdf(c))


@each_prior
def test_densities_are_those_of_scipy(name: PriorName) -> None:
    w = weights()
    found = PRIORS[name].log_prob(w, ONE)
    np.testing.assert_allclose(found.numpy(), log_density(name, w.numpy()), rtol=1e-10)


@each_prior
def test_slopes_are_those_of_autograd(name: PriorName) -> None:
    w = weights(1).requires_grad_()
    (expected,) = torch.autograd.grad(PRIORS[name].log_prob(w, ONE).sum(), w)
    by_weight, by_common = PRIORS[name].slope(w.detach(), ONE)
    torch.testing.assert_close(by_weight, expected, rtol=1e-10, atol=1e-10)
    assert by_common is None


@each_prior
def test_values_and_slopes_are_finite_at_the_bound(name: PriorName) -> None:
    prior = PRIORS[name]
    w = torch.full((1, M), prior.lower, dtype=torch.float64)
    assert prior.log_prob(w, ONE[:1]).isfinite().all()
    assert prior.slope(w, ONE[:1])[0].isfinite().all()
    assert not prior.learns_common
    assert prior.mirrored == 0.0


def test_the_most_probable_weights_of_a_dirichlet_are_equal_and_sum_to_1() -> None:
    prior = DirichletLike()
    equal = torch.full((1, M), 1 / M, dtype=torch.float64)
    torch.testing.assert_close(prior.by_weight(equal), torch.zeros_like(equal), rtol=0.0, atol=1e-12)
    others = torch.cat([weights(seed) for seed in range(20)])
    assert (prior.log_density(others) < prior.log_density(equal)).all()


@each_prior
@pytest.mark.parametrize("tasks", [1, 4])
def test_starts_are_inside_and_begin_with_equal_weights(name: PriorName, tasks: int) -> None:
    w, c = PRIORS[name].starts(6, torch.zeros(tasks, dtype=torch.float64), generator())
    assert w.shape == (6, tasks)
    assert c is None
    np.testing.assert_allclose(w[0].numpy(), 1 / tasks, rtol=1e-12)
    assert (w > PRIORS[name].lower).all()
    assert tasks == 1 or len(w.unique()) > 5 * tasks
    assert len(PRIORS[name].starts(1, torch.zeros(tasks), generator())[0]) == 1


@each_prior
def test_a_fit_believes_in_the_prior(name: PriorName) -> None:
    meta, task = meta_data((9, 8, 7), 2), task_of(4, 2)
    method = Weighted(normalization="pooled", residual="paper", kernel="se", prior_name=name)
    prior = method.meta_fit(meta, seed=0)
    assert prior.theta_priors.weights == PRIORS[name]
    model = prior.condition(task, seed=0)
    w = model.weights
    assert (w >= PRIORS[name].lower).all()
    # No weights nearby are more probable, all else being equal; pooled units are not learned.
    mean, covariance = prior.task_gps.posterior(task.X)
    z = (task.y - model.y_offset) / model.y_scale
    cache = Cache.of(task.X, z, mean, covariance)
    kernel = torch.cat([model.lengthscale, model.outputscale[None], model.noise[None]]).log()
    rest = kernel.expand(7, -1)
    steps = 1e-3 * torch.cat([torch.zeros(1, 3), torch.eye(3), -torch.eye(3)]).double()
    others = (w + steps).clamp_min(PRIORS[name].lower)
    x = torch.cat([others, rest], dim=-1)
    value, _ = negative_log_posterior("se", cache, ThetaPriors(PRIORS[name]), x)
    assert (value >= value[0] - 1e-6).all()


def test_another_prior_is_refused() -> None:
    with pytest.raises(
        SettingError,
        match=r"^prior_name is 'slab'; choose one of 'per-task', 'dirichlet', 'spike', 'normal'\.$",
    ):
        Weighted(prior_name="slab")  # type: ignore[arg-type]
