"""The density that the search evaluates, against the reference form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scaml.gp.kernels import KernelName
from scaml.model.fit_theta import negative_log_posterior
from scaml.model.packed_posterior import PackedPosterior
from tests.weights_cases import BELIEFS, points, problem, tensor

each_kind = pytest.mark.parametrize("kind", sorted(BELIEFS))


@each_kind
@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize(("tasks", "n", "d"), [(0, 4, 2), (1, 1, 1), (3, 8, 2), (20, 30, 5)])
def test_it_is_the_reference_form(kind: str, kernel: KernelName, tasks: int, n: int, d: int) -> None:
    cache = problem(max(tasks, 1), n, d)
    if not tasks:
        cache = type(cache)(cache.X, cache.z, cache.mean[:0], cache.covariance[:0])
    x = points(cache, kind, batch=3)
    density = PackedPosterior.of(kernel, cache, BELIEFS[kind])
    for sign in (None, tensor([1.0, -1.0, -1.0])):
        if sign is not None and not BELIEFS[kind].weights.mirrored:
            continue
        value, slope = density(x.numpy(), None if sign is None else sign.numpy())
        expected, by_x = negative_log_posterior(kernel, cache, BELIEFS[kind], x, sign)
        np.testing.assert_allclose(value, expected.numpy(), rtol=1e-10)
        size = float(by_x.abs().max())
        np.testing.assert_allclose(slope, by_x.numpy(), rtol=1e-9, atol=1e-10 * size)


@each_kind
def test_the_metric_is_positive_definite_on_the_free_coordinates(kind: str) -> None:
    cache = problem(4, 8, 2)
    x = points(cache, kind, batch=2).numpy()
    free = np.ones(x.shape, dtype=np.bool_)
    free[0, 1] = free[1, 0] = free[1, -1] = False
    multiplied = PackedPosterior.of("se", cache, BELIEFS[kind]).metric(x, free)
    p = x.shape[1]
    for row in range(2):
        columns = []
        for k in range(p):
            v = np.zeros_like(x)
            v[row, k] = 1.0
            columns.append(multiplied(v)[row])
        H = np.array(columns)[np.ix_(free[row], free[row])]
        np.testing.assert_allclose(H, H.T, rtol=1e-9, atol=1e-18)
        assert np.linalg.eigvalsh(H).min() > 0


def test_the_metric_inverts_the_curvature_of_the_weights_prior() -> None:
    """Where the past says nothing, its arrow is all there is for the weights and c."""
    cache = problem(5, 8, 2)
    cache = type(cache)(cache.X, cache.z, 0.0 * cache.mean, cache.covariance)
    x = points(cache, "shared", batch=1)
    w, c = x[:, :5].numpy(), x[:, 5].numpy()
    bends, crossed, common = BELIEFS["shared"].weights.curvature(w, c)
    assert crossed is not None
    assert common is not None
    B = np.diag(np.append(bends[0], common))
    B[5, :5] = B[:5, 5] = crossed[0]
    density = PackedPosterior.of("se", cache, BELIEFS["shared"])
    v = torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).numpy()
    found = density.metric(x.numpy(), np.ones(x.shape, dtype=np.bool_))(v)
    np.testing.assert_allclose(found[0, :6], np.linalg.solve(B, v[0, :6]), rtol=1e-9)
