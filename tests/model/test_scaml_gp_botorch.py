"""ScaMLGP against BoTorch's contract: shapes, noise, transforms, fantasies, state, acquisition."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    LogExpectedImprovement,
    PosteriorStandardDeviation,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qMaxValueEntropy,
    qUpperConfidenceBound,
)
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import ModelListGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from scaml import ScaMLGP, SettingError, Task
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from tests.cases import pair

D = 2
CUBE = torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)


def model_of(n_t: int) -> ScaMLGP:
    return pair("se", (6, 9, 7), n_t, d=D, seed=3).model


def points(*shape: int) -> Tensor:
    return torch.rand(*shape, D, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


@pytest.mark.parametrize("n_t", [0, 1, 5])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("q", [1, 4])
def test_t_batches_equal_their_members(n_t: int, batch: tuple[int, ...], q: int) -> None:
    model, X = model_of(n_t), points(*batch, q)
    posterior = model.posterior(X)
    assert posterior.mean.shape == posterior.variance.shape == (*batch, q, 1)
    assert posterior.rsample(torch.Size([5])).shape == (5, *batch, q, 1)
    flat_mean, flat_variance = posterior.mean.view(-1, q, 1), posterior.variance.view(-1, q, 1)
    for i, one in enumerate(X.view(-1, q, D)):
        alone = model.posterior(one)
        torch.testing.assert_close(flat_mean[i], alone.mean, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(flat_variance[i], alone.variance, rtol=1e-8, atol=1e-10)


def test_marginals_of_a_q_batch_are_those_of_single_points() -> None:
    model, X = model_of(5), points(4)
    joint, single = model.posterior(X), model.posterior(X.unsqueeze(-2))
    torch.testing.assert_close(joint.mean, single.mean.squeeze(-2))
    torch.testing.assert_close(joint.variance, single.variance.squeeze(-2), rtol=1e-8, atol=1e-12)


def test_samples_follow_the_posterior() -> None:
    model, X = model_of(3), points(3)
    posterior = model.posterior(X)
    sampler = SobolQMCNormalSampler(torch.Size([4096]), seed=0)
    samples = sampler(posterior).squeeze(-1)
    torch.testing.assert_close(samples.mean(0), posterior.mean.squeeze(-1), rtol=0, atol=5e-3)
    covariance = posterior.distribution.covariance_matrix
    torch.testing.assert_close(torch.cov(samples.T), covariance, rtol=0.05, atol=5e-3)


def test_gradients_of_mean_and_variance_by_finite_differences() -> None:
    for n_t in (0, 5):
        model = model_of(n_t)

        def both(X: Tensor, model: ScaMLGP = model) -> Tensor:
            posterior = model.posterior(X)
            return torch.cat([posterior.mean, posterior.variance])

        X = points(3).requires_grad_()
        assert torch.autograd.gradcheck(both, (X,), rtol=1e-6, atol=1e-7)


def test_observation_noise_is_added_in_the_units_of_y() -> None:
    model, X = model_of(4), points(2, 3)
    bare = model.posterior(X)
    fitted = model.posterior(X, observation_noise=True)
    given = model.posterior(X, observation_noise=torch.full((2, 3, 1), 0.5, dtype=torch.float64))
    noise = model.noise * model.y_scale.square()
    torch.testing.assert_close(fitted.variance, bare.variance + noise)
    torch.testing.assert_close(given.variance, bare.variance + 0.5)
    torch.testing.assert_close(fitted.mean, bare.mean)
    torch.testing.assert_close(model.likelihood.noise, noise.view(1))
    off_diagonal = ~torch.eye(3, dtype=torch.bool)
    a, b = (p.distribution.covariance_matrix[..., off_diagonal] for p in (fitted, bare))
    torch.testing.assert_close(a, b)


def test_posterior_transform() -> None:
    model, X = model_of(4), points(2, 3)
    transform = ScalarizedPosteriorTransform(torch.tensor([-2.0], dtype=torch.float64), offset=1.0)
    bare, transformed = model.posterior(X), model.posterior(X, posterior_transform=transform)
    torch.testing.assert_close(transformed.mean, 1.0 - 2.0 * bare.mean)
    torch.testing.assert_close(transformed.variance, 4.0 * bare.variance)


@pytest.mark.parametrize("n_t", [0, 4])
def test_condition_on_observations_is_the_model_with_more_data(n_t: int) -> None:
    case = pair("se", (6, 9, 7), n_t, d=D, seed=3)
    model, X_new, Q = case.model, points(3), points(5)
    y_new = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    conditioned = model.condition_on_observations(X_new, y_new.unsqueeze(-1))
    joint = case.joint
    z_new = ((y_new - model.y_offset) / model.y_scale).numpy()
    more = type(joint)(
        **{
            **vars(joint),
            "X_test": np.concatenate([joint.X_test, X_new.numpy()]),
            "z_test": np.concatenate([joint.z_test, z_new]),
        }
    )
    mean, covariance = more.posterior(Q.numpy())
    posterior = conditioned.posterior(Q)
    ours = (posterior.mean.squeeze(-1) - model.y_offset) / model.y_scale
    np.testing.assert_allclose(ours.numpy(), mean, rtol=0, atol=1e-8)
    variance = posterior.variance.squeeze(-1) / model.y_scale.square()
    np.testing.assert_allclose(variance.numpy(), np.diag(covariance), rtol=0, atol=1e-8)
    assert conditioned.train_inputs[0].shape == (n_t + 3, D)
    assert conditioned.train_targets.shape == (n_t + 3,)
    assert model.train_targets.shape == (n_t,)


def test_known_noise_of_new_observations() -> None:
    model, X, y = model_of(4), points(2), torch.zeros(2, 1, dtype=torch.float64)
    fitted = float(model.noise * model.y_scale.square())
    same = model.condition_on_observations(X, y, noise=torch.full_like(y, fitted))
    vague = model.condition_on_observations(X, y, noise=torch.full_like(y, 1e12))
    Q = points(3)
    expected = model.condition_on_observations(X, y).posterior(Q).mean
    torch.testing.assert_close(same.posterior(Q).mean, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(vague.posterior(Q).mean, model.posterior(Q).mean, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_t", [0, 4])
def test_fantasies_equal_one_model_each(n_t: int) -> None:
    model, X, Q = model_of(n_t), points(2, 3), points(2, 5)
    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
    fantasies = model.fantasize(X, sampler)
    assert isinstance(fantasies, ScaMLGP)
    assert fantasies.batch_shape == (4, 2)
    assert fantasies.train_inputs[0].shape == (4, 2, n_t + 3, D)
    assert fantasies.train_targets.shape == (4, 2, n_t + 3)
    posterior = fantasies.posterior(Q)
    assert posterior.mean.shape == (4, 2, 5, 1)
    for s in range(4):
        for b in range(2):
            y = fantasies.train_targets[s, b, n_t:].unsqueeze(-1)
            alone = model.condition_on_observations(X[b], y).posterior(Q[b])
            torch.testing.assert_close(posterior.mean[s, b], alone.mean, rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(posterior.variance[s, b], alone.variance, rtol=1e-7, atol=1e-9)
    again = fantasies.condition_on_observations(Q[:, :1], torch.zeros(4, 2, 1, 1, dtype=torch.float64))
    assert again.train_targets.shape == (4, 2, n_t + 4)


def test_outputs_and_batch_shape() -> None:
    model = model_of(3)
    assert model.num_outputs == 1
    assert model.batch_shape == ()
    assert model.subset_output([0]) is model
    with pytest.raises(SettingError, match="the model has one output"):
        model.subset_output([1])
    with pytest.raises(SettingError, match="the model has one output"):
        model.posterior(points(1), output_indices=[2])


@pytest.mark.parametrize("copy", [deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("n_t", [0, 4])
def test_copies_predict_the_same(n_t: int, copy: Callable[[ScaMLGP], ScaMLGP]) -> None:
    model, X = model_of(n_t), points(3)
    twin = copy(model)
    assert torch.equal(twin.posterior(X).mean, model.posterior(X).mean)
    assert torch.equal(twin.posterior(X).variance, model.posterior(X).variance)


def test_state_dict_carries_the_model() -> None:
    model, X = model_of(4), points(3)
    other = model_of(4)
    blank = {name: torch.ones_like(value) for name, value in other.state_dict().items()}
    other.load_state_dict(blank)
    assert not torch.allclose(other.posterior(X).mean, model.posterior(X).mean)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.posterior(X).mean, model.posterior(X).mean)
    fantasy = model.condition_on_observations(X, X[:, :1])
    before = fantasy.posterior(X).mean
    model.load_state_dict(blank)
    assert torch.equal(fantasy.posterior(X).mean, before)


def test_float32_queries_are_answered_in_float64() -> None:
    model, X = model_of(4), points(3)
    ucb = UpperConfidenceBound(model, beta=9.0)
    ucb(X.float().unsqueeze(-2))
    assert model.weights.dtype == torch.float64
    assert model.posterior(X.float()).mean.dtype == torch.float64


def test_zero_weights_leave_the_prediction() -> None:
    case = pair("se", (6, 9, 7), 4, d=D, seed=3)
    model, X = case.model, points(3)
    weights = model.weights.clone()
    weights[1] = 0.0
    model.load_state_dict({**model.state_dict(), "weights": weights})
    theta = Hyperparameters(weights[[0, 2]], model.lengthscale, model.outputscale, model.noise)
    task = Task(model.train_inputs[0], model.train_targets)
    others = ScaMLGP(case.task_gps.subset([0, 2]), task, Units(model.y_offset, model.y_scale), theta)
    assert torch.equal(others.posterior(X).mean, model.posterior(X).mean)
    assert torch.equal(others.posterior(X).variance, model.posterior(X).variance)


ACQUISITIONS: dict[str, Callable[[ScaMLGP], AcquisitionFunction]] = {
    "UpperConfidenceBound": lambda m: UpperConfidenceBound(m, beta=9.0),
    "PosteriorStandardDeviation": lambda m: PosteriorStandardDeviation(m),
    "LogExpectedImprovement": lambda m: LogExpectedImprovement(m, best_f=0.5),
    "qLogExpectedImprovement": lambda m: qLogExpectedImprovement(m, best_f=0.5),
    "qUpperConfidenceBound": lambda m: qUpperConfidenceBound(m, beta=9.0),
    "qKnowledgeGradient": lambda m: qKnowledgeGradient(m, num_fantasies=4),
    "qMaxValueEntropy": lambda m: qMaxValueEntropy(m, candidate_set=points(64)),
    "qLogNoisyExpectedImprovement": lambda m: qLogNoisyExpectedImprovement(
        m, X_baseline=m.train_inputs[0], prune_baseline=False
    ),
}


# qLogNoisyExpectedImprovement alone is defined by observed points and needs some.
RUNS = [(name, 5) for name in ACQUISITIONS]
RUNS += [(name, 0) for name in ACQUISITIONS if name != "qLogNoisyExpectedImprovement"]


@pytest.mark.parametrize(("name", "n_t"), RUNS)
def test_acquisition_functions_run_through_optimize_acqf(name: str, n_t: int) -> None:
    torch.manual_seed(0)
    model = model_of(n_t)
    q = 2 if name in ("qLogExpectedImprovement", "qUpperConfidenceBound", "qKnowledgeGradient") else 1
    candidate, value = optimize_acqf(
        ACQUISITIONS[name](model), CUBE, q=q, num_restarts=3, raw_samples=16, options={"maxiter": 15}
    )
    assert candidate.shape == (q, D)
    assert ((candidate >= 0) & (candidate <= 1)).all()
    assert value.isfinite().all()


def test_model_list_accepts_it() -> None:
    a, b, X = model_of(4), model_of(2), points(3)
    both = ModelListGP(a, b)
    posterior = both.posterior(X)
    assert both.num_outputs == 2
    torch.testing.assert_close(
        posterior.mean, torch.cat([a.posterior(X).mean, b.posterior(X).mean], -1)
    )
    torch.testing.assert_close(
        posterior.variance, torch.cat([a.posterior(X).variance, b.posterior(X).variance], -1)
    )
    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
    fantasies = both.fantasize(X, sampler)
    assert fantasies.posterior(X).mean.shape == (4, 3, 2)
    y = torch.zeros(3, 2, dtype=torch.float64)
    conditioned = both.condition_on_observations([X, X], y)
    expected = a.condition_on_observations(X, y[:, :1]).posterior(X).mean
    torch.testing.assert_close(conditioned.posterior(X).mean[:, :1], expected)
    twin = ModelListGP(model_of(4), model_of(2))
    twin.load_state_dict(both.state_dict())
    torch.testing.assert_close(twin.posterior(X).mean, posterior.mean)
