"""The reference form of Theorem 1 against Lemma 1, and every fast form of it against the reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml.gp.kernels import KernelName
from scaml.model.past_parts import PastParts
from scaml.model.table_cache import TableCache
from scaml.model.theorem1 import prior_covariance, prior_mean, residual_kernel
from tests.cases import Pair, pair, query
from tests.oracles import kernel_matrix

each_kernel = pytest.mark.parametrize("kernel", ["se", "matern52"])


def case_of(kernel: KernelName, n_t: int = 0) -> Pair:
    return pair(kernel, (6, 15, 11), n_t, d=2, seed=7, signed=True, level=0.3)


def reference(case: Pair, X: Tensor) -> tuple[Tensor, Tensor]:
    theta = case.model.hyperparameters
    return prior_mean(case.task_gps, theta, X), prior_covariance(case.task_gps, theta, X)


@each_kernel
def test_it_is_lemma_1_conditioned_on_the_meta_data(kernel: KernelName) -> None:
    case, X = case_of(kernel), query(6, 2)
    for mine, expected in zip(reference(case, X), case.joint.posterior(X.numpy()), strict=True):
        np.testing.assert_allclose(mine.numpy(), expected, rtol=0, atol=1e-8)


@each_kernel
def test_residual_kernel_has_the_level_as_a_constant(kernel: KernelName) -> None:
    case, X, Z = case_of(kernel), query(3, 2), query(8, 2)[3:]
    gp = case.joint.residual
    expected = kernel_matrix(kernel, X.numpy(), Z.numpy(), gp.lengthscale, gp.outputscale) + gp.level
    ours = residual_kernel(case.task_gps, case.model.hyperparameters, X, Z)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12)


@each_kernel
def test_rectangles_and_batches(kernel: KernelName) -> None:
    case, X, Z = case_of(kernel), query(4, 3, 2), query(4, 5, 2)
    theta = case.model.hyperparameters
    batch = prior_covariance(case.task_gps, theta, X, Z)
    assert batch.shape == (4, 3, 5)
    for i in range(4):
        single = prior_covariance(case.task_gps, theta, X[i], Z[i])
        torch.testing.assert_close(batch[i], single, rtol=1e-10, atol=1e-12)


# The fast forms.


@each_kernel
def test_features(kernel: KernelName) -> None:
    """`ScaMLGP` without test data."""
    case, X = case_of(kernel), query(6, 2)
    for mine, expected in zip(case.model.moments(X), reference(case, X), strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=1e-9)


@each_kernel
def test_single_points(kernel: KernelName) -> None:
    """`PastAtPoints`."""
    case, X = case_of(kernel), query(6, 2)
    mean, covariance = reference(case, X)
    ours = case.model.moments(X.unsqueeze(-2))
    torch.testing.assert_close(ours[0].flatten(), mean, rtol=0, atol=1e-9)
    torch.testing.assert_close(ours[1].flatten(), covariance.diagonal(), rtol=0, atol=1e-9)


@each_kernel
def test_rows_of_a_table(kernel: KernelName) -> None:
    """`TableCache`."""
    case, X = case_of(kernel), query(6, 2)
    mean, covariance = reference(case, X)
    ours, model = case.model.on_table(TableCache(), X), case.model
    assert ours is not None
    torch.testing.assert_close((ours[0] - model.y_offset) / model.y_scale, mean, rtol=0, atol=1e-9)
    variance = ours[1] / model.y_scale.square()
    torch.testing.assert_close(variance, covariance.diagonal(), rtol=0, atol=1e-9)


@each_kernel
def test_parts(kernel: KernelName) -> None:
    """`PastParts`: the terms of both sums."""
    case, X = case_of(kernel), query(6, 2)
    mean, covariance = reference(case, X)
    parts, model = case.model.past_parts(), case.model
    assert isinstance(parts, PastParts)
    torch.testing.assert_close(parts.means(X).sum(0) / model.y_scale, mean, rtol=0, atol=1e-9)
    variance = parts.variances(X).sum(0) / model.y_scale.square()
    torch.testing.assert_close(variance, covariance.diagonal(), rtol=0, atol=1e-9)
