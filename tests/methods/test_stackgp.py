"""StackGP against residuals and deviations computed by hand with dense NumPy GPs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import gamma, lognorm

from scaml import MetaData, ScaMLError, SettingError, Task
from scaml.gp.hyperpriors import Gamma, KernelPriors, LogNormal
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import FitInput, fit_gps
from scaml.methods.stackgp import Stack, StackGP, StackGPPrior
from tests.cases import meta_data, query, task_of
from tests.oracles import GP, Array, kernel_matrix

META = meta_data((9, 14), 2)
Q = query(6, 2)


def dense(kernel: str, gp: GP, X: Array, z: Array, at: Array) -> tuple[Array, Array]:
    """Posterior mean and covariance of a zero-mean GP."""
    K = kernel_matrix(kernel, X, X, gp.lengthscale, gp.outputscale) + gp.noise * np.eye(len(X))
    k = kernel_matrix(kernel, X, at, gp.lengthscale, gp.outputscale)
    solved = np.linalg.solve(K, k)
    prior = kernel_matrix(kernel, at, at, gp.lengthscale, gp.outputscale)
    return solved.T @ z, prior - k.T @ solved


def standardized(y: Array) -> Array:
    return np.asarray((y - y.mean()) / y.std(ddof=1))


def learned(prior: StackGPPrior) -> list[GP]:
    """The levels' hyperparameters."""
    state = {name: tensor.numpy() for name, tensor in prior.state().items()}
    rows = zip(state["lengthscale"], state["outputscale"], state["noise"], strict=True)
    return [GP(ell, float(o), float(noise)) for ell, o, noise in rows]


def below(kernel: str, gps: list[GP], at: Array, meta: MetaData = META) -> Array:
    """The mean of the stack of all past tasks, by recursion over the levels."""
    mean = np.zeros(len(at))
    for i, (task, gp) in enumerate(zip(meta, gps, strict=False)):
        X = task.X.numpy()
        residual = standardized(task.y.numpy()) - below(kernel, gps[:i], X, meta)
        mean = mean + dense(kernel, gp, X, residual, at)[0]
    return mean


def top(model: Stack) -> GP:
    gp = model.top
    return GP(gp.lengthscale.numpy(), float(gp.outputscale), float(gp.noise))


# The model of the paper's comparison.


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("n_t", [0, 2, 7])
def test_means_add_up_and_the_variance_is_the_tops(kernel: KernelName, n_t: int) -> None:
    prior, task = StackGP(kernel=kernel).meta_fit(META), task_of(n_t, 2)
    model = prior.condition(task)
    gps, X, y, at = learned(prior), task.X.numpy(), task.y.numpy(), Q.numpy()
    offset, scale = (y.mean(), y.std(ddof=1)) if n_t else (0.0, 1.0)
    residual = (y - offset) / scale - below(kernel, gps, X)
    mean, covariance = dense(kernel, top(model), X, residual, at)
    posterior = model.posterior(Q)
    expected = offset + scale * (below(kernel, gps, at) + mean)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), expected, rtol=0, atol=1e-10)
    theirs = posterior.distribution.covariance_matrix
    np.testing.assert_allclose(theirs, scale**2 * covariance, rtol=0, atol=1e-10)


def test_a_level_is_fitted_to_what_the_one_below_leaves() -> None:
    """And not to its y, nor to a residual that is standardized once more."""
    prior = StackGP().meta_fit(META, seed=3)
    gps, task = learned(prior), META[1]
    residual = standardized(task.y.numpy()) - below("se", gps[:1], task.X.numpy())

    def fitted(z: Array) -> Array:
        data = FitInput("level", task.X, torch.tensor(z))
        return np.asarray(fit_gps([data], kernel="se", seed=3).theta[0].exp())

    ours = np.append(gps[1].lengthscale, [gps[1].outputscale, gps[1].noise])
    np.testing.assert_allclose(ours, fitted(residual), rtol=1e-7)
    for other in (standardized(task.y.numpy()), standardized(residual)):
        assert np.abs(ours / fitted(other) - 1.0).max() > 0.01


def test_the_tops_prior_is_the_appendix() -> None:
    """The fit of the top maximizes likelihood times the densities, written out with SciPy."""
    prior, task = StackGP().meta_fit(META), task_of(8, 2)
    model = prior.condition(task, seed=2)
    residual = standardized(task.y.numpy()) - below("se", learned(prior), task.X.numpy())

    def log_posterior(gp: GP) -> float:
        K = kernel_matrix("se", task.X.numpy(), task.X.numpy(), gp.lengthscale, gp.outputscale)
        K = K + gp.noise * np.eye(task.n)
        _, logdet = np.linalg.slogdet(K)
        value = -0.5 * residual @ np.linalg.solve(K, residual) - 0.5 * logdet
        value += lognorm.logpdf(gp.lengthscale, s=1.5, scale=np.exp(0.5)).sum()
        value += gamma.logpdf(gp.outputscale, a=2.0, scale=1.0 / 0.15)
        return float(value + lognorm.logpdf(gp.noise, s=2.0, scale=np.exp(-8.0)))

    found = top(model)
    best = log_posterior(found)
    for factor in (0.97, 1.03):
        for i in range(2):
            ell = found.lengthscale * np.where(np.arange(2) == i, factor, 1.0)
            assert log_posterior(GP(ell, found.outputscale, found.noise)) < best
        assert log_posterior(GP(found.lengthscale, factor * found.outputscale, found.noise)) < best
    priors = KernelPriors(LogNormal(0.5, 1.5), Gamma(2, 0.15), LogNormal(-8.0, 2.0))
    data = FitInput("top", task.X, torch.tensor(residual))
    theta = fit_gps([data], kernel="se", seed=2, priors=priors).theta[0].exp().numpy()
    np.testing.assert_allclose(found.lengthscale, theta[:2], rtol=1e-7)


def test_without_data_it_is_the_stack_with_the_tops_prior_variance() -> None:
    prior = StackGP().meta_fit(META)
    posterior = prior.condition(Task.empty(d=2)).posterior(Q)
    expected = below("se", learned(prior), Q.numpy())
    np.testing.assert_allclose(posterior.mean.squeeze(-1), expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(posterior.variance, torch.full((6, 1), 2 / 0.15, dtype=torch.float64))


def test_the_order_of_the_tasks_is_that_of_the_levels() -> None:
    turned = StackGP().meta_fit(MetaData([META[1], META[0]]))
    means = [p.condition(Task.empty(d=2)).posterior(Q).mean for p in (StackGP().meta_fit(META), turned)]
    assert (means[0] - means[1]).abs().max() > 1e-3
    # The last task's own data are what the stack reproduces.
    mean = turned.condition(Task.empty(d=2)).posterior(META[0].X).mean.squeeze(-1).numpy()
    assert np.corrcoef(mean, META[0].y.numpy())[0, 1] > 0.99


# Vizier's deviations.


@pytest.mark.parametrize("alpha", [1.0, 3.0])
@pytest.mark.parametrize("n_t", [0, 1, 5])
def test_geometric_deviations(n_t: int, alpha: float) -> None:
    meta = meta_data((6, 9, 7), 2)
    prior = StackGP(deviations="geometric", alpha=alpha).meta_fit(meta)
    task, at = task_of(n_t, 2), Q.numpy()
    model, gps = prior.condition(task), learned(prior)
    sigma, size = np.ones(len(at)), 0
    for past, gp in zip([*meta, task], [*gps, top(model)], strict=True):
        X = past.X.numpy()
        covariance = dense("se", gp, X, np.zeros(len(X)), at)[1]
        deviation = np.sqrt(np.diag(covariance))
        beta = alpha * past.n / (alpha * past.n + size)
        sigma = deviation**beta * sigma ** (1.0 - beta)
        size = past.n
    correlation = covariance / np.outer(deviation, deviation)
    _, ours = model.moments(Q)
    np.testing.assert_allclose(ours, correlation * np.outer(sigma, sigma), rtol=1e-8, atol=1e-12)
    means_alone = StackGP().meta_fit(meta).condition(task)
    torch.testing.assert_close(model.moments(Q)[0], means_alone.moments(Q)[0])


@pytest.mark.parametrize("deviations", ["top", "geometric"])
def test_cross_covariances_and_gradients(deviations: Any) -> None:
    model = StackGP(deviations=deviations).meta_fit(META).condition(task_of(4, 2))
    X = query(3, 5, 2)
    _, joint = model.moments(X)
    torch.testing.assert_close(model.cross(X[:, :2], X[:, 2:]), joint[:, :2, 2:], rtol=1e-7, atol=1e-9)
    points = query(3, 1, 2).requires_grad_()
    assert torch.autograd.gradcheck(model.marginal, (points,), rtol=1e-5, atol=1e-7)
    later = model.condition_on_observations(Q[:2], model.posterior(Q[:2]).mean)
    torch.testing.assert_close(later.posterior(X).mean, model.posterior(X).mean)
    assert (later.posterior(Q).variance <= model.posterior(Q).variance + 1e-12).all()


# Files, levels added later, other parameters.


def test_a_level_added_later_is_the_fit_with_it_to_the_last_bit() -> None:
    method, meta = StackGP(), meta_data((6, 9, 12), 2)
    added = method.meta_fit(MetaData([meta[0], meta[1]]), seed=4).add(meta[2], seed=4)
    fitted = method.meta_fit(meta, seed=4, n_jobs=2)
    restored = method.restore(meta, fitted.state())
    for other in (added, restored):
        assert all(torch.equal(a, fitted.state()[name]) for name, a in other.state().items())
        assert torch.equal(other.levels.targets, fitted.levels.targets)
        assert torch.equal(other.condition(task_of(4, 2)).posterior(Q).mean, mean_of(fitted))
    assert added.names == meta.names


def mean_of(prior: StackGPPrior) -> Any:
    return prior.condition(task_of(4, 2)).posterior(Q).mean


def test_tasks_of_other_parameters() -> None:
    """One that lacks a parameter and one with a column of its own, above a whole one."""
    rng = np.random.default_rng(5)
    X, extra = rng.random((8, 2)), rng.standard_normal((30, 1))
    lacking = Task(X, X[:, 0] ** 2 + rng.random(8), name="lacking", known=[True, False])
    Z = rng.random((30, 2))
    wider = Task(Z, Z.sum(-1) + 3.0 * extra[:, 0], name="wider", extra=extra)
    meta = MetaData([META[0], lacking, wider])
    prior = StackGP().meta_fit(meta)
    gps = learned(prior)
    assert np.isinf(gps[1].lengthscale).tolist() == [False, True, True]
    assert np.isinf(gps[0].lengthscale).tolist() == [False, False, True]
    assert np.isfinite(gps[2].lengthscale).all()
    first = GP(gps[0].lengthscale[:2], gps[0].outputscale, gps[0].noise)
    z = [standardized(task.y.numpy()) for task in meta]
    bottom = meta[0].X.numpy()

    def one(at: Array) -> Array:
        return dense("se", first, bottom, z[0], at)[0]

    second = GP(gps[1].lengthscale[:1], gps[1].outputscale, gps[1].noise)
    centred = np.stack([X[:, 0], np.full(8, 0.5)], axis=-1)

    def two(at: Array) -> Array:
        return dense("se", second, X[:, :1], z[1] - one(centred), at[:, :1])[0]

    held = np.concatenate([Q.numpy(), np.zeros((6, 1))], axis=-1)
    own = np.concatenate([Z, extra], axis=-1)
    three = dense("se", gps[2], own, z[2] - one(Z) - two(Z), held)[0]
    expected = one(Q.numpy()) + two(Q.numpy()) + three
    mean = prior.condition(Task.empty(d=2)).posterior(Q).mean.squeeze(-1)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-10)
    assert torch.equal(mean_of(StackGP().restore(meta, prior.state())), mean_of(prior))
    added = StackGP().meta_fit(MetaData([META[0], lacking])).add(wider)
    assert torch.equal(mean_of(added), mean_of(prior))


def test_settings_and_states_are_checked() -> None:
    for wrong in (
        {"kernel": "rbf"},
        {"deviations": "mean"},
        {"alpha": 0.0},
        {"alpha": "much"},
        {"sqrt_beta": -1.0},
    ):
        name, value = next(iter(wrong.items()))
        with pytest.raises(SettingError, match=f"{name} is {value!r}; "):
            StackGP(**wrong)
    with pytest.raises(SettingError, match="n_jobs is 0"):
        StackGP().meta_fit(META, n_jobs=0)
    state = StackGP().meta_fit(META).state()
    for name in state:
        with pytest.raises(ScaMLError, match=f"its {name} is not of shape"):
            StackGP().restore(META, {**state, name: state[name][:1]})
