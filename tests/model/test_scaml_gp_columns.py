"""`ScaMLGP` of meta-tasks that lack columns or have some of their own, against the dense joint GP."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scaml import MetaData, ScaMLGP, TaskGPs
from scaml.gp.kernels import KernelName
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from tests.cases import query, task_of
from tests.gp.cases import mixed_tasks
from tests.oracles import GP, Array, JointGP


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("n_t", [0, 1, 6])
def test_scaml_gp_of_mixed_tasks_is_the_dense_joint_gp(n_t: int, kernel: KernelName) -> None:
    """Lemma 1 on the union of all columns, those that a task does not know at inverse lengthscale 0."""
    rng, tasks, new = np.random.default_rng(n_t), mixed_tasks(7), task_of(n_t, 2, 3)
    columns = [[0, 1], [0], [0, 1, 2, 3], [1, 2]]  # of the union that each task knows
    ell = rng.uniform(0.3, 1.2, (4, 4))
    o, noise = rng.uniform(0.5, 2.0, 4), 10 ** rng.uniform(-4, -2, 4)
    gps = TaskGPs.condition(
        MetaData(tasks),
        kernel=kernel,
        lengthscale=torch.tensor(ell),
        outputscale=torch.tensor(o),
        noise=torch.tensor(noise),
    )
    weights = rng.exponential(size=4)
    theta = Hyperparameters(
        torch.tensor(weights),
        torch.tensor([0.6, 0.9], dtype=torch.float64),
        torch.tensor(0.4, dtype=torch.float64),
        torch.tensor(1e-3, dtype=torch.float64),
    )
    units = Units(torch.tensor(0.7, dtype=torch.float64), torch.tensor(1.9, dtype=torch.float64))
    model = ScaMLGP(gps, new, units, theta)

    def wide(X: Array, extra: Array | None = None) -> Array:
        own = np.zeros((len(X), 2))
        if extra is not None:
            own[:, : extra.shape[1]] = extra
        return np.column_stack([X, own])

    lengths = [np.array([ell[m, j] if j in columns[m] else np.inf for j in range(4)]) for m in range(4)]
    joint = JointGP(
        kernel=kernel,
        meta=[GP(lengths[m], float(o[m]), float(noise[m])) for m in range(4)],
        residual=GP(np.array([0.6, 0.9, np.inf, np.inf]), 0.4, 1e-3),
        weights=weights,
        X_meta=[wide(t.X.numpy(), t.extra.numpy()) for t in tasks],
        z_meta=[((t.y - t.y.mean()) / t.y.std()).numpy() for t in tasks],
        X_test=wide(new.X.numpy()),
        z_test=((new.y - 0.7) / 1.9).numpy(),
    )
    X = query(5, 2)
    mean, covariance = joint.posterior(wide(X.numpy()))
    posterior = model.posterior(X)
    np.testing.assert_allclose((posterior.mean.flatten() - 0.7) / 1.9, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        posterior.distribution.covariance_matrix / 1.9**2, covariance, rtol=0, atol=1e-8
    )
