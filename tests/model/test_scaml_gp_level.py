"""ScaMLGP with a level of any variance: posterior, draws and leave-one-out in fifty digits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml import ScaMLGP, Task, TaskGPs
from scaml.gp.kernels import KernelName
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.table_cache import TableCache
from tests import exact
from tests.cases import pair, query
from tests.oracles import Array, JointGP

KERNELS: tuple[KernelName, ...] = ("se", "matern52")
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
SIZES = (5, 4)
JITTER = 1e-4  # of draws, as a share of the noise


@dataclass(frozen=True)
class Case:
    """A model with a level, and the dense joint GP without it."""

    model: ScaMLGP
    joint: JointGP
    level: float
    task_gps: TaskGPs
    units: Units
    theta: Hyperparameters
    noise: Array  # n, variances of the test data

    @property
    def n(self) -> int:
        return len(self.joint.X_test)

    def posterior(self, Q: Array, rows: list[int] | None = None) -> tuple[Array, Array]:
        """Mean and covariance of f_t at Q given some of the test data, in fifty digits."""
        mp, t = exact.mp, len(self.joint.meta)
        kept = list(range(self.n)) if rows is None else rows
        joint = replace(self.joint, X_test=self.joint.X_test[kept], z_test=self.joint.z_test[kept])
        places = [*((X, m) for m, X in enumerate(joint.X_meta)), (joint.X_test, t)]
        noise = [*(np.full(len(X), gp.noise) for X, gp in zip(joint.X_meta, joint.meta, strict=True))]
        blocks = [[joint.covariance(A, i, B, j) for B, j in places] for A, i in places]
        G = np.block(blocks) + np.diag(np.concatenate([*noise, self.noise[kept]]))
        own = np.arange(len(G)) >= len(G) - len(kept)
        cross = np.concatenate([joint.covariance(A, i, Q, t) for A, i in places])
        level = mp.mpf(self.level)
        K = exact.matrix(G) + level * exact.matrix(np.outer(own, own).astype(np.float64))
        k = exact.matrix(cross) + level * exact.matrix(np.outer(own, np.ones(len(Q))))
        z = exact.matrix(np.concatenate([*joint.z_meta, joint.z_test]))
        inverse = K**-1
        prior = exact.matrix(joint.covariance(Q, t, Q, t)) + level * mp.ones(len(Q))
        covariance = exact.array(prior - k.T * inverse * k).reshape(len(Q), len(Q))
        return exact.array(k.T * inverse * z), covariance

    def standardized(self, mean: Tensor, variance: Tensor) -> tuple[Array, Array]:
        """Moments in the units of y, in the oracle's."""
        return (
            ((mean - self.units.offset) / self.units.scale).numpy(),
            (variance / self.units.scale.square()).numpy(),
        )


def case_of(
    kernel: KernelName, level: float, *, n: int = 6, noise: float | None = None, shift: float = 0.0
) -> Case:
    """Random hyperparameters; `shift` moves the data of the test-task far away from their offset."""
    base = pair(kernel, SIZES, n, d=2, seed=8, signed=True)
    units = Units(base.model.y_offset, base.model.y_scale)
    found = base.model.hyperparameters
    theta = Hyperparameters(
        found.weights,
        found.lengthscale,
        found.outputscale,
        found.noise if noise is None else torch.tensor(noise, dtype=torch.float64),
        torch.tensor(level, dtype=torch.float64),
    )
    task = Task(base.joint.X_test, base.model.train_targets + shift) if n else Task.empty(d=2)
    z = ((task.y - units.offset) / units.scale).numpy()
    joint = replace(base.joint, z_test=z)
    model = ScaMLGP(base.task_gps, task, units, theta)
    return Case(model, joint, level, base.task_gps, units, theta, np.full(n, float(theta.noise)))


# The posterior.


@each_kernel
@pytest.mark.parametrize("level", [0.8, 1e4, 1e8])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_posterior_at_a_huge_level(kernel: KernelName, n: int, level: float) -> None:
    case = case_of(kernel, level, n=n, shift=100.0)
    X = query(4, 2)
    posterior = case.model.posterior(X)
    covariance = posterior.distribution.covariance_matrix
    mean, found = case.standardized(posterior.mean.squeeze(-1), covariance)
    expected_mean, expected = case.posterior(X.numpy())
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@each_kernel
@pytest.mark.parametrize("n", [0, 1, 6])
def test_all_ways_to_the_moments_agree_at_a_huge_level(kernel: KernelName, n: int) -> None:
    case = case_of(kernel, 1e8, n=n, shift=100.0)
    X = query(5, 2)
    expected_mean, expected = case.posterior(X.numpy())
    variance = expected.diagonal()
    single = case.model.posterior(X.unsqueeze(-2))
    table = case.model.on_table(TableCache(), X)
    assert table is not None
    ways = [(single.mean.flatten(), single.variance.flatten()), table, case.model.of_fantasies(X)]
    for mean, found in ways:
        m, v = case.standardized(mean.flatten(), found)
        np.testing.assert_allclose(m, expected_mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(v, variance, rtol=1e-8, atol=1e-8)
    cross = case.model.cross(X[:2], X[2:]).numpy()
    np.testing.assert_allclose(cross, expected[:2, 2:], rtol=1e-8, atol=1e-8)


@each_kernel
def test_an_infinite_level_is_universal_kriging(kernel: KernelName) -> None:
    """The level is estimated by generalized least squares, and its error is added."""
    case = case_of(kernel, 1e14, shift=100.0)
    X, one, t = query(4, 2), np.ones(case.n), len(SIZES)
    Q, P = X.numpy(), case.joint.X_test
    nothing = replace(case.joint, X_test=P[:0], z_test=case.joint.z_test[:0])
    mean, prior = nothing.posterior(np.concatenate([P, Q]))
    K = prior[: case.n, : case.n] + np.diag(case.noise)
    cross, inverse = prior[: case.n, case.n :], np.linalg.inv(K)
    z = case.joint.z_test - mean[: case.n]
    beta = (one @ inverse @ z) / (one @ inverse @ one)
    g = 1.0 - cross.T @ inverse @ one
    expected_mean = mean[case.n :] + beta + cross.T @ inverse @ (z - beta)
    expected = prior[case.n :, case.n :] - cross.T @ inverse @ cross
    expected = expected + np.outer(g, g) / (one @ inverse @ one)
    posterior = case.model.posterior(X)
    found_mean, found = case.standardized(
        posterior.mean.squeeze(-1), posterior.distribution.covariance_matrix
    )
    np.testing.assert_allclose(found_mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    assert nothing.covariance(Q, t, Q, t).max() < 100.0  # 1e14 is in none of them


@each_kernel
@pytest.mark.parametrize("level", [0.8, 1e8])
def test_further_observations_are_those_of_a_new_model(kernel: KernelName, level: float) -> None:
    case = case_of(kernel, level, shift=100.0)
    X, y = case.model.train_inputs[0], case.model.train_targets
    first = ScaMLGP(case.task_gps, Task(X[:4], y[:4]), case.units, case.theta)
    Q = query(3, 2)
    whole = case.model.posterior(Q)
    found = first.condition_on_observations(X[4:], y[4:, None]).posterior(Q)
    torch.testing.assert_close(found.mean, whole.mean, rtol=0.0, atol=1e-7)
    torch.testing.assert_close(found.variance, whole.variance, rtol=1e-7, atol=1e-9)
    fantasies = first.condition_on_observations(X[4:], torch.stack([y[4:, None], y[4:, None] + 1.0]))
    torch.testing.assert_close(fantasies.posterior(Q).mean[0], whole.mean, rtol=0.0, atol=1e-7)


# Draws of f at the data.


def moments_of_draws(model: ScaMLGP, n: int) -> tuple[Tensor, Tensor]:
    """Mean and covariance, in the units of y: nodes 0 give the mean, unit nodes the factor."""
    nodes = torch.cat([torch.zeros(1, n, dtype=torch.float64), torch.eye(n, dtype=torch.float64)])
    values = model.draws(nodes)
    L = (values[1:] - values[0]).mT
    return values[0], L @ L.mT


@each_kernel
@pytest.mark.parametrize("level", [0.0, 0.8, 1e8])
@pytest.mark.parametrize("noise", [None, 1e-8])
def test_draws_have_the_posterior_at_the_data(
    kernel: KernelName, noise: float | None, level: float
) -> None:
    case = case_of(kernel, level, noise=noise)
    mean, covariance = case.standardized(*moments_of_draws(case.model, case.n))
    expected_mean, expected = case.posterior(case.joint.X_test)
    expected = expected + JITTER * np.diag(case.noise)
    # As a share of the noise, which is all that is left of the prior there.
    share = case.noise[0]
    np.testing.assert_allclose(covariance / share, expected / share, rtol=0, atol=1e-5)
    deviation = np.sqrt(share)
    np.testing.assert_allclose(mean / deviation, expected_mean / deviation, rtol=0, atol=1e-5)


@each_kernel
def test_draws_know_the_noise_of_every_observation(kernel: KernelName) -> None:
    case = case_of(kernel, 0.8)
    X, y = case.model.train_inputs[0], case.model.train_targets
    own = torch.tensor([0.3, 2.0], dtype=torch.float64)
    first = ScaMLGP(case.task_gps, Task(X[:4], y[:4]), case.units, case.theta)
    model = first.condition_on_observations(X[4:], y[4:, None], noise=own[:, None])
    noise = case.noise.copy()
    noise[4:] = (own / case.units.scale.square()).numpy()
    noisy = replace(case, noise=noise)
    mean, covariance = case.standardized(*moments_of_draws(model, case.n))
    expected_mean, expected = noisy.posterior(case.joint.X_test)
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(covariance, expected + JITTER * np.diag(noise), rtol=0, atol=1e-9)


@each_kernel
@pytest.mark.parametrize("width", [1e-7, 1e-5, 1e-3])
def test_draws_at_points_that_are_close_together(kernel: KernelName, width: float) -> None:
    """K then has no digits but those of one value: rounding makes the covariance indefinite."""
    one = torch.ones((), dtype=torch.float64)
    theta = Hyperparameters(one.new_empty(0), one.expand(2), 1e5 * one, 1e-8 * one, 0.0 * one)
    X = 0.5 + width * torch.rand(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    task = Task(X, -(X - 0.5).square().sum(-1))
    model = ScaMLGP(TaskGPs.none(2, kernel=kernel), task, Units(0.0 * one, one), theta)
    mean, covariance = moments_of_draws(model, task.n)
    assert (mean - task.y).abs().max() < 1e-4
    assert (covariance.diagonal() <= 1.001e-8).all()


@each_kernel
def test_revealed_values_are_those_of_a_model_that_saw_them(kernel: KernelName) -> None:
    case = case_of(kernel, 1e6, shift=100.0)
    values = case.model.draws(torch.zeros(1, case.n, dtype=torch.float64))
    z = ((values[0] - case.units.offset) / case.units.scale).numpy()
    seen = replace(case, joint=replace(case.joint, z_test=z), noise=np.full(case.n, 1e-8))
    X = query(4, 2)
    expected_mean, expected = seen.posterior(X.numpy())
    mean, variance = case.model.revealed(values).of_fantasies(X)
    m, v = case.standardized(mean.flatten(), variance)
    np.testing.assert_allclose(m, expected_mean, rtol=0, atol=1e-5)
    np.testing.assert_allclose(v, expected.diagonal(), rtol=1e-5, atol=1e-7)


# Leave one out.


@each_kernel
@pytest.mark.parametrize("level", [0.0, 0.8, 1e8])
@pytest.mark.parametrize("n", [2, 6])
def test_leave_one_out_is_that_of_models_without_the_row(
    kernel: KernelName, n: int, level: float
) -> None:
    case = case_of(kernel, level, n=n, shift=10.0)
    X, y = case.model.train_inputs[0], case.model.train_targets
    mean, deviation = case.model.leave_one_out()
    m, v = case.standardized(mean, deviation.square())
    for j in range(n):
        rows = [i for i in range(n) if i != j]
        expected_mean, expected = case.posterior(case.joint.X_test[[j]], rows)
        # Relative to its own deviation: with one other row the level is all but unknown.
        total = float(expected[0, 0]) + case.noise[j]
        assert m[j] == pytest.approx(float(expected_mean[0]), abs=1e-7 * max(1.0, total**0.5))
        assert v[j] == pytest.approx(total, rel=1e-7)
        without = ScaMLGP(case.task_gps, Task(X[rows], y[rows]), case.units, case.theta)
        refit = without.posterior(X[[j]], observation_noise=True)
        assert mean[j].item() == pytest.approx(refit.mean.item(), abs=1e-6)
        assert deviation[j].item() == pytest.approx(refit.variance.sqrt().item(), rel=1e-6)


def test_leave_one_out_of_one_observation_is_the_prior() -> None:
    case = case_of("se", 2.0, n=1)
    prior = case.model.before_data().posterior(case.model.train_inputs[0], observation_noise=True)
    mean, deviation = case.model.leave_one_out()
    assert mean.item() == pytest.approx(prior.mean.item(), abs=1e-9)
    assert deviation.item() == pytest.approx(prior.variance.sqrt().item(), rel=1e-9)
    _, variance = case.standardized(prior.mean, prior.variance)
    expected = case.posterior(case.joint.X_test, [])[1] + case.noise
    np.testing.assert_allclose(variance.flatten(), expected.flatten(), rtol=1e-9)
