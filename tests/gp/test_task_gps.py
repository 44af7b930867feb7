"""TaskGPs against GPyTorch, and its exact treatment of unequal sizes and missing parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scaml import FitError, MetaData, Task, TaskGPs
from scaml.gp.kernels import KernelName, correlation, squared_distance
from tests import botorch_baseline
from tests.cases import meta_data, pair, query


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_posterior_equals_gpytorch(kernel: KernelName) -> None:
    case, X = pair(kernel, (6, 15, 11), 0, d=3, seed=2), query(5, 3)
    gps = case.task_gps
    mean, variance, covariance = gps.mean(X), gps.variance(X), gps.covariance(X)
    for m in range(3):
        theta = torch.cat([gps.lengthscale[m], gps.outputscale[m, None], gps.noise[m, None]]).log()
        data = torch.tensor(case.joint.X_meta[m]), torch.tensor(case.joint.z_meta[m])
        with torch.no_grad():
            normal = botorch_baseline.single_task_gp(kernel, *data, theta).posterior(X).distribution
        torch.testing.assert_close(mean[m], normal.mean, rtol=0, atol=1e-8)
        torch.testing.assert_close(variance[m], normal.variance, rtol=0, atol=1e-8)
        torch.testing.assert_close(covariance[m], normal.covariance_matrix, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_log_likelihood_is_the_normal_density_of_the_values(kernel: KernelName) -> None:
    case = pair(kernel, (6, 15, 11), 0, d=3, seed=2)
    gps, found = case.task_gps, case.task_gps.log_likelihood()
    for m in range(3):
        X, z = torch.tensor(case.joint.X_meta[m]), torch.tensor(case.joint.z_meta[m])
        a = X / gps.lengthscale[m]
        K = gps.outputscale[m] * correlation(kernel, squared_distance(a, a))
        K = K + gps.noise[m] * torch.eye(len(z), dtype=torch.float64)
        normal = torch.distributions.MultivariateNormal(torch.zeros_like(z), K)
        torch.testing.assert_close(found[m], normal.log_prob(z), rtol=1e-10, atol=1e-9)


def test_cross_covariance_is_a_block_of_the_joint_covariance() -> None:
    gps = pair("se", (6, 15, 11), 0, d=2, seed=2).task_gps
    X, Z = query(2, 4, 2), query(2, 3, 2)
    joint = gps.covariance(torch.cat([X, Z], dim=-2))
    assert joint.shape == (3, 2, 7, 7)
    torch.testing.assert_close(gps.covariance(X, Z), joint[..., :4, 4:])
    torch.testing.assert_close(gps.variance(X), gps.covariance(X).diagonal(dim1=-2, dim2=-1))
    mean, covariance = gps.posterior(X)
    torch.testing.assert_close(mean, gps.mean(X), rtol=1e-9, atol=1e-11)
    assert torch.equal(covariance, gps.covariance(X))


@pytest.mark.parametrize("what", ["mean", "variance", "covariance"])
def test_differentiable_in_x(what: str) -> None:
    gps = pair("se", (6, 9), 0, d=2, seed=2).task_gps
    X = query(3, 2).requires_grad_()
    assert torch.autograd.gradcheck(getattr(gps, what), (X,), rtol=1e-6, atol=1e-7)


def test_tasks_of_unequal_size_do_not_touch_each_other() -> None:
    case, X = pair("se", (3, 20), 0, d=2, seed=6), query(4, 2)
    together = case.task_gps
    small = TaskGPs.condition(
        MetaData([meta_data((3, 20), 2, 6)[0]]),
        kernel="se",
        lengthscale=together.lengthscale[:1],
        outputscale=together.outputscale[:1],
        noise=together.noise[:1],
    )
    torch.testing.assert_close(small.mean(X)[0], together.mean(X)[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(small.variance(X)[0], together.variance(X)[0], rtol=1e-10, atol=1e-12)


def test_a_parameter_of_infinite_lengthscale_is_not_known_to_the_task() -> None:
    meta, X = meta_data((8,), 2, 1), query(4, 2)
    gps = TaskGPs.condition(
        meta,
        kernel="se",
        lengthscale=torch.tensor([[0.4, torch.inf]], dtype=torch.float64),
        outputscale=torch.ones(1, dtype=torch.float64),
        noise=torch.full((1,), 1e-3, dtype=torch.float64),
    )
    one_dimensional = TaskGPs.condition(
        MetaData([Task(meta[0].X[:, :1], meta[0].y)]),
        kernel="se",
        lengthscale=torch.tensor([[0.4]], dtype=torch.float64),
        outputscale=gps.outputscale,
        noise=gps.noise,
    )
    torch.testing.assert_close(gps.mean(X), one_dimensional.mean(X[:, :1]))
    torch.testing.assert_close(gps.covariance(X), one_dimensional.covariance(X[:, :1]))


@given(
    a=st.floats(1e-6, 1e6),
    b=st.floats(-1e3, 1e3),
    seed=st.integers(0, 100),
)
@settings(max_examples=15, deadline=None)
def test_affine_change_of_a_past_task_leaves_its_standardized_gp(a: float, b: float, seed: int) -> None:
    X, task = query(4, 2), meta_data((12,), 2, seed)[0]
    changed = Task(task.X, a * task.y + a * b)
    before, after = (TaskGPs.fit(MetaData([t]), kernel="se", seed=0, n_jobs=1) for t in (task, changed))
    torch.testing.assert_close(after.mean(X), before.mean(X), rtol=0, atol=1e-6)
    torch.testing.assert_close(after.variance(X), before.variance(X), rtol=0, atol=1e-6)
    torch.testing.assert_close(after.y_std, a * before.y_std, rtol=1e-8, atol=0)
    torch.testing.assert_close(after.y_mean, a * (before.y_mean + b), rtol=1e-6, atol=1e-6 * a)


def test_constant_values_and_duplicate_rows_work() -> None:
    X = np.repeat(np.random.default_rng(0).random((4, 2)), 3, axis=0)
    meta = MetaData(
        [
            Task(X, np.full(12, 5.0), name="constant"),
            Task(X, np.arange(12.0), name="repeated"),
            Task(X, np.full(12, 1e-300), name="tiny"),
            Task(X, np.full(12, -1e90), name="large"),
        ]
    )
    gps = TaskGPs.fit(meta, kernel="se", seed=0, n_jobs=1)
    assert gps.mean(query(3, 2)).isfinite().all()
    torch.testing.assert_close(gps.mean(query(3, 2))[0], torch.zeros(3, dtype=torch.float64))
    assert (gps.variance(query(3, 2)) >= 0).all()


def test_a_kernel_matrix_beyond_jitter_names_its_task() -> None:
    meta = meta_data((4,), 2, 0)
    with pytest.raises(FitError, match="'t0'"):
        TaskGPs.condition(
            meta,
            kernel="se",
            lengthscale=torch.ones(1, 2, dtype=torch.float64),
            outputscale=torch.full((1,), -1.0, dtype=torch.float64),
            noise=torch.zeros(1, dtype=torch.float64),
        )


def test_names_dimension_subset_and_none() -> None:
    gps = pair("se", (6, 9, 7), 0, d=2, seed=2).task_gps
    assert (len(gps), gps.d, gps.names) == (3, 2, ("t0", "t1", "t2"))
    assert gps.subset([2, 0]).names == ("t2", "t0")
    torch.testing.assert_close(gps.subset([2]).mean(query(3, 2))[0], gps.mean(query(3, 2))[2])
    none = TaskGPs.none(2, kernel="se")
    assert len(none) == 0
    assert none.mean(query(3, 2)).shape == (0, 3)


def test_a_pickled_copy_derives_everything_anew() -> None:
    gps = TaskGPs.fit(meta_data((5, 3), 2), kernel="se", seed=0, n_jobs=1)
    before = pickle.dumps(gps)
    expected = gps.mean(query(4, 2))
    assert len(pickle.dumps(gps)) == len(before)
    assert torch.equal(pickle.loads(before).mean(query(4, 2)), expected)


def test_blocks_of_tasks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gps, X = TaskGPs.fit(meta_data((5, 3, 9), 2), kernel="se", seed=0, n_jobs=1), query(4, 2)
    mean, variance = gps.mean(X), gps.variance(X)
    monkeypatch.setattr("scaml.gp.task_gps._CACHED_ENTRIES", 1)
    torch.testing.assert_close(gps.mean(X), mean, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(gps.variance(X), variance, rtol=1e-12, atol=1e-14)
