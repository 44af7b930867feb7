from __future__ import annotations

import numpy as np
import pytest
import torch

from scaml import MetaData, Task
from scaml.explain.shares import Shares, past_parts_of
from scaml.methods import GPBO, RGPE, SGPT, StackGP
from tests.cases import ONE_MODEL, Pair, meta_data, pair, query, task_of
from tests.oracles import Array, kernel_matrix
from tests.run_cases import run_of, without_weights


def by_hand(case: Pair, Q: Array) -> tuple[Array, Array]:
    """Terms of mean and variance of every meta-task, and the residual's, standardized."""
    joint, means, variances = case.joint, [], []
    for m, gp in enumerate(joint.meta):
        X, z = joint.X_meta[m], joint.z_meta[m]
        K = kernel_matrix(joint.kernel, X, X, gp.lengthscale, gp.outputscale) + gp.noise * np.eye(
            len(X)
        )
        k = kernel_matrix(joint.kernel, X, Q, gp.lengthscale, gp.outputscale)
        means.append(joint.weights[m] * (k.T @ np.linalg.solve(K, z)))
        gained = (k * np.linalg.solve(K, k)).sum(0)
        variances.append(joint.weights[m] ** 2 * (gp.outputscale - gained))
    rest = np.full(len(Q), joint.residual.outputscale)
    return np.stack([*means, np.zeros(len(Q))]), np.stack([*variances, rest])


@pytest.mark.parametrize("signed", [False, True])
def test_parts_and_shares_of_scaml_gp(signed: bool) -> None:
    case = pair("se", (6, 9, 5), 4, 2, seed=3, signed=signed)
    Q = query(50, 2)
    parts = past_parts_of(case.model)
    assert parts is not None
    means, variances = by_hand(case, Q.numpy())
    np.testing.assert_allclose(parts.means(Q), 1.9 * means, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(parts.variances(Q), 1.9**2 * variances, rtol=1e-6, atol=1e-9)
    shares = Shares.of(parts, Q)
    moves = np.abs(means).mean(1)
    np.testing.assert_allclose(shares.mean, moves / moves.sum(), rtol=1e-7)
    np.testing.assert_allclose(shares.variance, variances.mean(1) / variances.mean(1).sum(), rtol=1e-6)


def test_the_parts_add_up_to_the_prior() -> None:
    model = pair("matern52", (6, 9, 5), 4, 2, seed=1).model
    Q, parts = query(20, 2), past_parts_of(model)
    assert parts is not None
    prior = model.before_data().posterior(Q.unsqueeze(-2))
    torch.testing.assert_close(float(parts.units.offset) + parts.means(Q).sum(0), prior.mean.flatten())
    torch.testing.assert_close(parts.variances(Q).sum(0), prior.variance.flatten())


@pytest.mark.parametrize("method", [RGPE(samples=16), SGPT()], ids=["RGPE", "SGPT"])
def test_the_parts_of_an_ensemble_add_up_to_its_prediction(method: RGPE | SGPT) -> None:
    model = method.meta_fit(meta_data((7, 8), 2)).condition(task_of(4, 2))
    Q, parts = query(20, 2), past_parts_of(model)
    assert parts is not None
    assert not parts.of_prior
    posterior = model.posterior(Q.unsqueeze(-2))
    torch.testing.assert_close(
        float(parts.units.offset) + parts.means(Q).sum(0), posterior.mean.flatten()
    )
    torch.testing.assert_close(parts.variances(Q).sum(0), posterior.variance.flatten())


def test_shares_do_not_depend_on_units() -> None:
    meta, task, Q = meta_data((8, 9), 2), task_of(5, 2), query(30, 2)
    scaled = MetaData([Task(t.X, 5.0 + 7.0 * t.y, name=t.name) for t in meta])

    def shares(meta: MetaData, task: Task) -> Shares:
        parts = past_parts_of(ONE_MODEL.meta_fit(meta).condition(task))
        assert parts is not None
        return Shares.of(parts, Q)

    one, other = shares(meta, task), shares(scaled, Task(task.X, 5.0 + 7.0 * task.y))
    torch.testing.assert_close(one.mean, other.mean, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(one.variance, other.variance, rtol=1e-5, atol=1e-7)


def test_models_without_parts() -> None:
    meta, task = meta_data((7, 8), 2), task_of(4, 2)
    for method in (GPBO(), StackGP()):
        assert past_parts_of(method.meta_fit(meta).condition(task)) is None


def test_shares_of_nothing_are_0() -> None:
    run = without_weights(run_of())
    parts = past_parts_of(run.model)
    assert parts is not None
    assert Shares.of(parts, run.points).mean.tolist() == [0.0, 0.0, 0.0, 0.0]
