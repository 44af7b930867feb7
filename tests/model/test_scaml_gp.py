"""ScaMLGP against the dense joint GP of Lemma 1: Theorem 1, equation 8, limits and invariances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import negative_log_likelihood
from tests.cases import Pair, pair
from tests.oracles import Array, kernel_matrix

SIZES = {1: (9,), 3: (6, 15, 11), 8: (4, 12, 9, 5, 14, 7, 10, 3)}


def query(q: int, d: int, seed: int = 5) -> Tensor:
    return torch.rand(q, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def standardized(case: Pair, X: Tensor) -> tuple[Any, Any]:
    """Posterior mean and covariance of the model in the oracle's units."""
    model = case.model
    posterior = model.posterior(X)
    mean = (posterior.mean.squeeze(-1) - model.y_offset) / model.y_scale
    covariance = posterior.distribution.covariance_matrix / model.y_scale.square()
    return mean.numpy(), covariance.numpy()


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n_t", [0, 1, 7])
@pytest.mark.parametrize("level", [0.0, 0.8])
@pytest.mark.parametrize("M", [1, 3, 8])
def test_theorem_1_is_the_dense_joint_gp(
    M: int, level: float, n_t: int, signed: bool, kernel: KernelName
) -> None:
    case = pair(kernel, SIZES[M], n_t, d=2, seed=10 * M + n_t, signed=signed, level=level)
    X = query(6, 2)
    mean, covariance = standardized(case, X)
    expected_mean, expected_covariance = case.joint.posterior(X.numpy())
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(covariance, expected_covariance, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("n_t", [1, 7])
@pytest.mark.parametrize("M", [1, 3, 8])
def test_likelihood_decomposition(M: int, n_t: int, kernel: KernelName) -> None:
    """Equation 8: log p(y_t, y_1:M) = log p(y_t | D_1:M) + Σ log p(y_m)."""
    case = pair(kernel, SIZES[M], n_t, d=2, seed=100 + M + n_t)
    joint, gps, model = case.joint, case.task_gps, case.model

    def log_likelihood(gp: Any, X: Any, residual: Any, covariance: Any = None) -> float:
        theta = np.log([*gp.lengthscale, gp.outputscale, gp.noise])
        value = negative_log_likelihood(
            kernel,
            torch.tensor(theta)[None],
            torch.tensor(X)[None],
            torch.as_tensor(residual)[None],
            covariance=None if covariance is None else covariance[None],
        ).value
        return -float(value)

    ours = sum(
        log_likelihood(gp, X, z)
        for gp, X, z in zip(joint.meta, joint.X_meta, joint.z_meta, strict=True)
    )
    X_t = torch.tensor(joint.X_test)
    residual = torch.tensor(joint.z_test) - model.weights @ gps.mean(X_t)
    covariance = torch.einsum("m,mij->ij", model.weights.square(), gps.covariance(X_t))
    ours += log_likelihood(joint.residual, joint.X_test, residual, covariance)
    assert ours == pytest.approx(joint.log_likelihood(), abs=1e-8)


@given(seed=st.integers(0, 10**6), signed=st.booleans(), scale=st.floats(0.0, 30.0))
@settings(max_examples=25, deadline=None)
def test_prior_covariance_is_psd_for_any_weights(seed: int, signed: bool, scale: float) -> None:
    case = pair("se", (5, 8), 0, d=2, seed=seed % 1000, signed=signed)
    state = case.model.state_dict()
    state["weights"] = scale * state["weights"]
    case.model.load_state_dict(state)
    covariance = standardized(case, query(12, 2, seed))[1]
    eigenvalues = np.linalg.eigvalsh(covariance)
    assert eigenvalues.min() > -1e-9 * max(1.0, eigenvalues.max())


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_weights_to_zero_is_a_plain_gp(seed: int) -> None:
    case = pair("se", (5, 8), 6, d=2, seed=seed % 1000)
    X, joint = query(4, 2, seed), case.joint
    state, gp = case.model.state_dict(), joint.residual

    def k(A: Array, B: Array) -> Array:
        return kernel_matrix("se", A, B, gp.lengthscale, gp.outputscale)

    Q = X.numpy()
    gram = k(joint.X_test, joint.X_test) + gp.noise * np.eye(len(joint.X_test))
    cross = k(joint.X_test, Q)
    mean = cross.T @ np.linalg.solve(gram, joint.z_test)
    covariance = k(Q, Q) - cross.T @ np.linalg.solve(gram, cross)
    for factor, tolerance in ((0.0, 1e-10), (1e-7, 1e-5)):
        case.model.load_state_dict({**state, "weights": factor * state["weights"]})
        ours = standardized(case, X)
        np.testing.assert_allclose(ours[0], mean, rtol=0, atol=tolerance)
        np.testing.assert_allclose(ours[1], covariance, rtol=0, atol=tolerance)


@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)))
@settings(max_examples=15, deadline=None)
def test_order_of_tasks_does_not_matter(seed: int, order: list[int]) -> None:
    case = pair("se", (5, 8, 6, 3), 4, d=2, seed=seed % 1000)
    X, model = query(3, 2, seed), case.model
    before = model.posterior(X)
    state = {**model.state_dict(), "weights": model.weights[order]}
    model.task_gps = case.task_gps.subset(order)
    model.load_state_dict(state)
    after = model.posterior(X)
    torch.testing.assert_close(after.mean, before.mean, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(after.variance, before.variance, rtol=1e-8, atol=1e-10)


def test_a_model_that_knows_f_at_its_data_has_no_noise_there() -> None:
    """`revealed`: one fantasy per row, all with the same small variance at X_t."""
    model = pair("se", (6, 9), 5, d=2, seed=2).model
    (X,) = model.train_inputs
    nodes = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = model.draws(nodes)
    known = model.revealed(values)
    mean, variance = known.of_fantasies(X)
    scale = model.y_scale.item()
    torch.testing.assert_close(mean, values.T, rtol=0, atol=1e-5 * scale)
    assert (variance < 1e-7 * scale**2).all()
    assert (model.posterior(X).variance > 1e-5 * scale**2).all()


def test_draws_have_the_moments_of_the_posterior() -> None:
    model = pair("se", (6, 9), 4, d=2, seed=2).model
    (X,) = model.train_inputs
    nodes = torch.randn(40_000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values, posterior = model.draws(nodes), model.posterior(X)
    deviation = posterior.variance.sqrt().max().item()
    torch.testing.assert_close(values.mean(0), posterior.mean.flatten(), rtol=0, atol=0.02 * deviation)
    torch.testing.assert_close(
        values.T.cov(), posterior.distribution.covariance_matrix, rtol=0, atol=0.05 * deviation**2
    )
