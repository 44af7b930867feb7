"""`TaskGPs` of tasks that lack columns or have some of their own, against dense computations."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml import MetaData, Task, TaskGPs
from scaml.gp.kernels import KernelName
from tests.cases import query
from tests.gp.cases import data, mixed_tasks
from tests.oracles import kernel_matrix


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
