"""Tasks that lack columns or have some of their own: as GPs, against dense computations."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml import MetaData, ScaMLGP, Task, TaskGPs
from scaml.errors import TaskDataError
from scaml.gp.kernels import KernelName
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from tests.cases import query, smooth, task_of
from tests.oracles import GP, Array, JointGP, kernel_matrix


def data(n: int, d: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, smooth(X, 0.3) + 0.01 * rng.standard_normal(n)


def test_a_task_knows_all_columns_and_has_none_of_its_own_by_default() -> None:
    task = Task([[0.1, 0.2]], [1.0])
    assert task.whole
    assert task.known.tolist() == [True, True]
    assert task.extra.shape == (1, 0)
    assert torch.equal(task.inputs, task.X)


def test_what_a_task_does_not_know_is_no_part_of_it() -> None:
    a = Task([[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], known=[True, False], extra=[[0.5], [-0.5]])
    b = Task([[0.1, 0.9], [0.3, 0.7]], [1.0, 2.0], known=[True, False], extra=[[0.5], [-0.5]])
    assert not a.whole
    assert torch.equal(a.X, b.X)
    assert a.inputs.tolist() == [[0.1, 0.5], [0.3, -0.5]]
    renamed = a.called("b")
    assert renamed.name == "b"
    for part in ("X", "y", "known", "extra"):
        assert torch.equal(getattr(renamed, part), getattr(a, part))
    with pytest.raises(TaskDataError, match="build it anew"):
        a.append([0.1, 0.2], 1.0)


@pytest.mark.parametrize(
    ("known", "extra", "message"),
    [
        ([True], None, "give 2 booleans"),
        ([True, True, True], None, "give 2 booleans"),
        ([1, 0], None, "give 2 booleans"),
        ([False, False], None, "at least one of them true"),
        (None, [[0.5]], "has 1 row but X has 2"),
        (None, [0.5, 0.5], "give an n x d array"),
        (None, [[np.nan], [0.5]], "NaN or infinite"),
        (None, [["a"], ["b"]], "give real numbers"),
    ],
)
def test_a_task_refuses_a_mask_or_columns_that_do_not_fit(known: Any, extra: Any, message: str) -> None:
    with pytest.raises(TaskDataError, match=message):
        Task([[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], known=known, extra=extra)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("known", [[True, False, True], [False, True, False]])
def test_a_task_that_lacks_a_parameter_is_the_task_of_the_reduced_space(
    known: list[bool], kernel: KernelName
) -> None:
    (A, y), X = data(13, 3, 0), query(2, 5, 3)
    full = TaskGPs.fit(MetaData([Task(A, y, known=known)]), kernel=kernel, seed=3, n_jobs=1)
    reduced = TaskGPs.fit(MetaData([Task(A[:, known], y)]), kernel=kernel, seed=3, n_jobs=1)
    assert full.d == 3
    assert torch.equal(full.lengthscale[:, known], reduced.lengthscale)
    assert full.lengthscale[:, [not k for k in known]].isinf().all()
    for name in ("outputscale", "noise", "y_mean", "y_std", "whitener", "targets"):
        assert torch.equal(getattr(full, name), getattr(reduced, name)), name
    seen = X[..., known]
    torch.testing.assert_close(full.mean(X), reduced.mean(seen), rtol=0, atol=1e-10)
    torch.testing.assert_close(full.covariance(X), reduced.covariance(seen), rtol=0, atol=1e-10)
    torch.testing.assert_close(full.variance(X), reduced.variance(seen), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_a_column_of_its_own_is_a_dense_gp_at_the_held_value(kernel: KernelName) -> None:
    """The dense GP of d + 1 columns, by NumPy, at the fitted hyperparameters."""
    (A, y), held, X = data(14, 3, 1), 0.3, query(6, 2)
    task = Task(A[:, :2], y, extra=A[:, 2:] - held)
    gps = TaskGPs.fit(MetaData([task]), kernel=kernel, seed=0, n_jobs=1)
    assert (gps.d, gps.lengthscale.shape) == (2, (1, 3))
    ell, o, noise = gps.lengthscale[0].numpy(), gps.outputscale.item(), gps.noise.item()
    z = (y - y.mean()) / y.std(ddof=1)
    Q = np.column_stack([X.numpy(), np.full(6, held)])
    K = kernel_matrix(kernel, A, A, ell, o) + noise * np.eye(14)
    cross = kernel_matrix(kernel, A, Q, ell, o)
    mean = cross.T @ np.linalg.solve(K, z)
    covariance = kernel_matrix(kernel, Q, Q, ell, o) - cross.T @ np.linalg.solve(K, cross)
    np.testing.assert_allclose(gps.mean(X)[0].numpy(), mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(gps.covariance(X)[0].numpy(), covariance, rtol=0, atol=1e-8)
    elsewhere = Task(A[:, :2], y, extra=A[:, 2:] - 0.8)  # where it is held says nothing of the task
    other = TaskGPs.fit(MetaData([elsewhere]), kernel=kernel, seed=0, n_jobs=1)
    torch.testing.assert_close(gps.lengthscale, other.lengthscale, rtol=1e-4, atol=0)


def mixed_tasks(seed: int = 0) -> list[Task]:
    """Whole; lacking a parameter; of two more columns; lacking one and having another."""
    draws = [data(n, d, seed + i) for i, (n, d) in enumerate([(9, 2), (12, 2), (9, 4), (12, 3)])]
    (A, a), (B, b), (C, c), (D, d) = draws
    return [
        Task(A, a, name="whole"),
        Task(B, b, name="lacks", known=[True, False]),
        Task(C[:, :2], c, name="more", extra=C[:, 2:] - 0.5),
        Task(D[:, :2], d, name="both", known=[False, True], extra=D[:, 2:] - 0.2),
    ]


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_company_does_not_change_a_task_by_one_bit(kernel: KernelName) -> None:
    tasks = mixed_tasks()
    together = TaskGPs.fit(MetaData(tasks), kernel=kernel, seed=5, n_jobs=1)
    X = query(4, 2)
    for m, task in enumerate(tasks):
        alone = TaskGPs.fit(MetaData([task]), kernel=kernel, seed=5, n_jobs=1)
        n, D = task.n, alone.lengthscale.shape[1]
        assert torch.equal(together.lengthscale[m, :D], alone.lengthscale[0])
        assert together.lengthscale[m, D:].isinf().all()
        assert torch.equal(together.X[m, :n, :D], alone.X[0])
        assert torch.equal(together.whitener[m, :n, :n], alone.whitener[0])
        assert torch.equal(together.targets[m, :n], alone.targets[0])
        for name in ("outputscale", "noise", "y_mean", "y_std"):
            assert torch.equal(getattr(together, name)[m], getattr(alone, name)[0]), name
        torch.testing.assert_close(together.mean(X)[m], alone.mean(X)[0], rtol=0, atol=1e-10)
        torch.testing.assert_close(together.variance(X)[m], alone.variance(X)[0], rtol=0, atol=1e-10)


def test_the_order_of_mixed_tasks_changes_nothing() -> None:
    tasks = mixed_tasks()
    forward = TaskGPs.fit(MetaData(tasks), kernel="se", seed=0, n_jobs=1)
    backward = TaskGPs.fit(MetaData(tasks[::-1]), kernel="se", seed=0, n_jobs=1).subset([3, 2, 1, 0])
    assert forward.names == backward.names
    for field in fields(TaskGPs):
        value = getattr(forward, field.name)
        if isinstance(value, Tensor):
            assert torch.equal(value, getattr(backward, field.name)), field.name


def test_a_column_of_its_own_is_differentiable() -> None:
    gps = TaskGPs.fit(MetaData(mixed_tasks()), kernel="matern52", seed=0, n_jobs=1)
    X = query(3, 2).requires_grad_()
    assert torch.autograd.gradcheck(gps.mean, (X,), rtol=1e-5, atol=1e-6)


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
