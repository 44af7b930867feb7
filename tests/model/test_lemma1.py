"""`JointGP` against the same kernel written in NumPy, and with tasks of other columns."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scaml import MetaData, ScaMLGP, Task, TaskGPs
from scaml.gp.kernels import KernelName
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.lemma1 import JointGP
from tests.cases import Pair, meta_data, pair, query, smooth

SIZES = (6, 15, 11)


def joint_of(case: Pair, seed: int) -> JointGP:
    model = case.model
    z = torch.tensor(case.joint.z_test)
    meta = meta_data(SIZES, 2, seed)
    return JointGP(meta, case.task_gps, model.hyperparameters, torch.tensor(case.joint.X_test), z)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n_t", [0, 5])
def test_gram_posterior_and_likelihood_are_those_of_numpy(
    n_t: int, signed: bool, kernel: KernelName
) -> None:
    case = pair(kernel, SIZES, n_t, d=2, seed=3, signed=signed, level=0.4)
    ours, X = joint_of(case, 3), query(4, 2)
    np.testing.assert_allclose(ours.gram().numpy(), case.joint.gram(), rtol=0, atol=1e-12)
    for mine, expected in zip(ours.posterior(X), case.joint.posterior(X.numpy()), strict=True):
        np.testing.assert_allclose(mine.numpy(), expected, rtol=0, atol=1e-8)
    assert ours.log_likelihood().item() == pytest.approx(case.joint.log_likelihood(), abs=1e-8)


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=20)
def test_the_joint_kernel_is_positive_semi_definite(seed: int, signed: bool) -> None:
    """Lemma 1: for any real weights."""
    case = pair("se", SIZES, 4, d=2, seed=seed, signed=signed)
    eigenvalues = torch.linalg.eigvalsh(joint_of(case, seed).gram())
    assert eigenvalues.min() > 0


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_tasks_that_lack_a_column_or_have_one_more(kernel: KernelName) -> None:
    rng = np.random.default_rng(0)
    A, B = rng.random((7, 3)), rng.random((9, 3))
    meta = MetaData(
        [
            Task(A[:, :2], smooth(A, 0.1), name="lacks", known=[False, True]),
            Task(B[:, :2], smooth(B, 0.3), name="has more", extra=B[:, 2:] - 0.5),
        ]
    )
    gps = TaskGPs.fit(meta, kernel=kernel, seed=0, n_jobs=1)
    one = torch.ones((), dtype=torch.float64)
    theta = Hyperparameters(
        torch.tensor([0.7, -0.4]).double(), torch.full((2,), 0.5).double(), one, one
    )
    task = Task(rng.random((5, 2)), rng.random(5))
    model = ScaMLGP(gps, task, Units(0.0 * one, one), theta)
    joint, X = JointGP(meta, gps, theta, task.X, task.y), query(4, 2)
    posterior = model.posterior(X)
    mean, covariance = joint.posterior(X)
    torch.testing.assert_close(posterior.mean.squeeze(-1), mean, rtol=0, atol=1e-8)
    dense: Tensor = posterior.distribution.covariance_matrix
    torch.testing.assert_close(dense, covariance, rtol=0, atol=1e-8)
