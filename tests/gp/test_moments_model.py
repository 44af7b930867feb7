"""A process given by its moments, as a BoTorch model, against dense conditioning by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.moments_model import MomentsModel
from scaml.gp.posterior import LEAST_VARIANCE
from scaml.gp.units import Units
from tests.cases import query
from tests.oracles import Array, kernel_matrix

ELL, SIGNAL, NOISE, OFFSET, SCALE = 0.4, 1.7, 1e-3, 5.0, 2.0


class Process(MomentsModel):
    """A GP with mean sin(3 x_0) + x_1 and an SE kernel; `o` is its variance."""

    def __init__(self, o: float = SIGNAL) -> None:
        units = Units(
            torch.tensor(OFFSET, dtype=torch.float64), torch.tensor(SCALE, dtype=torch.float64)
        )
        super().__init__(units, torch.tensor(NOISE, dtype=torch.float64))
        self.o = o

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sin(3.0 * X[..., 0]) + X[..., 1], self.cross(X, X)

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        squared = (X.unsqueeze(-2) - Z.unsqueeze(-3)).square().sum(-1)
        return self.o * torch.exp(-0.5 * squared / ELL**2)


def conditioned(X: Array, y: Array, noise: float, Q: Array) -> tuple[Array, Array]:
    """Mean and covariance at Q given y at X, in the units of y, by NumPy."""

    def k(A: Array, B: Array) -> Array:
        return kernel_matrix("se", A, B, np.full(2, ELL), SIGNAL)

    def mean(A: Array) -> Array:
        return np.asarray(np.sin(3.0 * A[:, 0]) + A[:, 1])

    gain = np.linalg.solve(k(X, X) + noise * np.eye(len(X)), k(X, Q)).T
    after = mean(Q) + gain @ ((y - OFFSET) / SCALE - mean(X))
    return OFFSET + SCALE * after, SCALE**2 * (k(Q, Q) - gain @ k(X, Q))


@pytest.mark.parametrize("shape", [(4,), (1,), (3, 1), (2, 3, 4)])
def test_the_posterior_is_in_the_units_of_y(shape: tuple[int, ...]) -> None:
    model, X = Process(), query(*shape, 2)
    posterior = model.posterior(X)
    mean, covariance = model.moments(X)
    torch.testing.assert_close(posterior.mean.squeeze(-1), OFFSET + SCALE * mean)
    torch.testing.assert_close(posterior.distribution.covariance_matrix, SCALE**2 * covariance)
    if shape[-1] == 1:
        marginal = model.marginal(X)
        torch.testing.assert_close(marginal[0], posterior.mean.squeeze(-1))
        torch.testing.assert_close(marginal[1], posterior.variance.squeeze(-1))


@pytest.mark.parametrize("noise", [None, 0.05])
def test_further_observations_are_dense_conditioning(noise: float | None) -> None:
    X, Q = query(3, 2), query(9, 2)[5:]
    Y = torch.tensor([[4.0], [7.0], [5.5]], dtype=torch.float64)
    given = None if noise is None else torch.full_like(Y, noise)
    later = Process().condition_on_observations(X, Y, noise=given)
    added = NOISE if noise is None else noise / SCALE**2
    mean, covariance = conditioned(X.numpy(), Y.squeeze(-1).numpy(), added, Q.numpy())
    ours = later.posterior(Q)
    np.testing.assert_allclose(ours.mean.squeeze(-1), mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.distribution.covariance_matrix, covariance, rtol=0, atol=1e-9)


def test_observations_in_two_steps_equal_those_in_one() -> None:
    X, Q, Y = query(5, 2), query(9, 2)[5:], query(5, 1)
    once = Process().condition_on_observations(X, Y)
    twice = Process().condition_on_observations(X[:2], Y[:2]).condition_on_observations(X[2:], Y[2:])
    torch.testing.assert_close(twice.posterior(Q).mean, once.posterior(Q).mean, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(
        twice.posterior(Q).variance, once.posterior(Q).variance, rtol=1e-6, atol=1e-8
    )


def test_cross_covariances_are_blocks_of_the_joint_one() -> None:
    later = Process().condition_on_observations(query(2, 2), torch.ones(2, 1, dtype=torch.float64))
    X = query(3, 7, 2)
    _, joint = later.moments(X)
    torch.testing.assert_close(later.cross(X[:, :3], X[:, 3:]), joint[:, :3, 3:], rtol=1e-7, atol=1e-10)


def test_values_as_expected_leave_the_mean_and_shrink_the_variance() -> None:
    model, X, Q = Process(), query(2, 2), query(6, 1, 2)
    later = model.condition_on_observations(X, model.posterior(X).mean)
    torch.testing.assert_close(later.posterior(Q).mean, model.posterior(Q).mean)
    assert (later.posterior(Q).variance <= model.posterior(Q).variance + 1e-12).all()
    assert (later.posterior(X).variance < 0.1 * model.posterior(X).variance).all()


@pytest.mark.parametrize("o", [0.0, -1e-15])
def test_variances_have_a_lower_bound(o: float) -> None:
    """Rounding can make the variance of a point that is known exactly negative."""
    model, X = Process(o), query(3, 1, 2)
    expected = torch.full((3, 1), SCALE**2 * LEAST_VARIANCE, dtype=torch.float64)
    torch.testing.assert_close(model.marginal(X)[1], expected, rtol=1e-9, atol=0.0)
    torch.testing.assert_close(model.posterior(X).variance.squeeze(-1), expected, rtol=1e-9, atol=0.0)


def test_fantasies_have_a_batch_of_their_own() -> None:
    model, sampler = Process(), SobolQMCNormalSampler(torch.Size([4]), seed=0)
    fantasies = model.fantasize(query(2, 2), sampler)
    assert model.batch_shape == ()
    assert fantasies.batch_shape == (4,)
    assert fantasies.posterior(query(5, 1, 3, 2)).mean.shape == (5, 4, 3, 1)
    twice = fantasies.condition_on_observations(query(4, 1, 2), torch.ones(4, 1, 1).double())
    assert twice.posterior(query(3, 2)).mean.shape == (4, 3, 1)


def test_gradients_by_finite_differences() -> None:
    later = Process().condition_on_observations(query(2, 2), torch.ones(2, 1, dtype=torch.float64))
    X = query(3, 1, 2).requires_grad_()
    assert torch.autograd.gradcheck(later.marginal, (X,), rtol=1e-5, atol=1e-7)


def test_botorch_takes_it() -> None:
    model = Process()
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    improvement = qLogExpectedImprovement(model, best_f=1.0)
    x, _ = optimize_acqf(improvement, bounds, q=2, num_restarts=2, raw_samples=16)
    assert x.shape == (2, 2)
    noisy = model.posterior(query(3, 2), observation_noise=True).variance
    torch.testing.assert_close(noisy, model.posterior(query(3, 2)).variance + SCALE**2 * NOISE)
    torch.testing.assert_close(model.likelihood.noise.item(), SCALE**2 * NOISE)
    assert model.to(torch.float32).posterior(query(1, 2)).mean.dtype == torch.float64
    assert model.num_outputs == 1
    assert model.subset_output([0]) is model


def test_other_outputs_are_refused() -> None:
    with pytest.raises(SettingError, match="the model has one output"):
        Process().posterior(query(1, 2), output_indices=[1])
    with pytest.raises(SettingError, match="the model has one output"):
        Process().subset_output([1])
