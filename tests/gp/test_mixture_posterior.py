"""The posterior of an average: its moments against formulas in NumPy, its replicas against p."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from scaml.gp.mixture_posterior import REPLICAS, mixture_of
from tests.oracles import Array


def members(seed: int, batch: tuple[int, ...], e: int, q: int) -> tuple[Array, Array]:
    """Means and covariances of e random normal distributions."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((*batch, e, q, q))
    return 2.0 * rng.standard_normal((*batch, e, q)), root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(q)


def moments(mean: Array, covariance: Array, p: Array) -> tuple[Array, Array]:
    """Mean and covariance of a mixture, entry by entry: E f f' - E f E f'."""
    e, q = mean.shape
    first = [sum(p[k] * mean[k, i] for k in range(e)) for i in range(q)]
    second = np.empty((q, q))
    for i in range(q):
        for j in range(q):
            raw = sum(p[k] * (covariance[k, i, j] + mean[k, i] * mean[k, j]) for k in range(e))
            second[i, j] = raw - first[i] * first[j]
    return np.array(first), second


def random_probabilities(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), shape[:-1])


@pytest.mark.parametrize(("e", "q"), [(1, 1), (3, 1), (2, 4), (5, 3)])
def test_moments_are_those_of_the_mixture(e: int, q: int) -> None:
    (mean, covariance), p = members(e, (), e, q), random_probabilities(q, e)
    posterior = mixture_of(*map(torch.tensor, (mean, covariance, p)))
    first, second = moments(mean, covariance, p)
    np.testing.assert_allclose(posterior.mixture_mean.squeeze(-1), first, rtol=0, atol=1e-12)
    variance = posterior.mixture_variance.squeeze(-1)
    np.testing.assert_allclose(variance, np.diag(second), rtol=0, atol=1e-12)
    np.testing.assert_allclose(posterior.mixture_covariance_matrix, second, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False], ids=["one for all", "one for each"])
def test_batches_equal_their_parts(shared: bool) -> None:
    """Probabilities of fantasies belong to the first dimension of the batch."""
    mean, covariance = members(1, (2, 3), 4, 2)
    p = random_probabilities(2, 4) if shared else random_probabilities(2, 2, 4)
    posterior = mixture_of(*map(torch.tensor, (mean, covariance, p)))
    assert posterior.mean.shape == posterior.variance.shape == (2, 3, REPLICAS, 2, 1)
    assert posterior.mixture_mean.shape == posterior.mixture_variance.shape == (2, 3, 2, 1)
    for i, j in np.ndindex(2, 3):
        own = p if shared else p[i]
        first, second = moments(mean[i, j], covariance[i, j], own)
        np.testing.assert_allclose(posterior.mixture_mean[i, j, :, 0], first, rtol=0, atol=1e-12)
        whole = posterior.mixture_covariance_matrix[i, j]
        np.testing.assert_allclose(whole, second, rtol=0, atol=1e-12)
        alone = mixture_of(*map(torch.tensor, (mean[i, j], covariance[i, j], own)))
        torch.testing.assert_close(posterior.mean[i, j], alone.mean)
        torch.testing.assert_close(posterior.variance[i, j], alone.variance)


def test_covariances_that_fantasies_share_are_expanded() -> None:
    mean, _ = members(3, (5,), 2, 3)
    _, covariance = members(4, (), 2, 3)
    p = random_probabilities(5, 2)
    posterior = mixture_of(*map(torch.tensor, (mean, covariance, p)))
    for i in range(5):
        _, second = moments(mean[i], covariance, p)
        whole = posterior.mixture_covariance_matrix[i]
        np.testing.assert_allclose(whole, second, rtol=0, atol=1e-12)


def shown(p: Tensor) -> Tensor:
    """How often each member is shown, `batch x E`: member e has the mean e and the variance e + 1."""
    number = torch.arange(p.shape[-1], dtype=torch.float64)
    mean = number.expand(p.shape).unsqueeze(-1)
    posterior = mixture_of(mean, (mean + 1.0).unsqueeze(-1), p)
    which = posterior.mean.flatten(-3)
    assert which.shape == (*p.shape[:-1], REPLICAS)
    assert torch.equal(posterior.variance.flatten(-3), which + 1.0)
    times: Tensor = (which.unsqueeze(-1) == number).sum(-2)
    return times


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20).filter(lambda p: sum(p) > 1e-3))
def test_replicas_follow_the_probabilities(parts: list[float]) -> None:
    p = torch.tensor(parts, dtype=torch.float64) / sum(parts)
    times = shown(p)
    assert times.sum() == REPLICAS
    assert ((times - REPLICAS * p).abs() <= 1.0 + 1e-9).all()


@given(st.integers(0, 1000), st.integers(1, 8), st.integers(1, 4))
def test_every_batch_has_its_own_replicas(seed: int, e: int, batch: int) -> None:
    p = torch.tensor(random_probabilities(seed, batch, e))
    times = shown(p)
    for row, own in zip(times, p, strict=True):
        assert torch.equal(row, shown(own))
        assert ((row - REPLICAS * own).abs() <= 1.0 + 1e-9).all()


def test_impossible_members_are_not_shown() -> None:
    p = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0], dtype=torch.float64)
    assert shown(p).tolist() == [0, 4, 0, 12, 0]


def test_probabilities_that_round_to_less_than_1_still_show_members() -> None:
    p = torch.tensor([0.5, 0.5 - 1e-12], dtype=torch.float64)
    assert shown(p).tolist() == [8, 8]


@pytest.mark.parametrize("unit", [1e-3, 1e-9, 1e-30])
def test_tiny_variances_are_kept_without_a_warning(unit: float) -> None:
    (mean, covariance), p = members(6, (), 3, 2), random_probabilities(7, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = mixture_of(
            torch.tensor(unit * mean), torch.tensor(unit**2 * covariance), torch.tensor(p)
        )
        own, mixed = posterior.variance, posterior.mixture_variance
    usual = mixture_of(*map(torch.tensor, (mean, covariance, p)))
    torch.testing.assert_close(own / unit**2, usual.variance)
    torch.testing.assert_close(mixed / unit**2, usual.mixture_variance)


def test_samples_are_those_of_the_replicas() -> None:
    (mean, covariance), p = members(8, (), 2, 2), np.array([0.25, 0.75])
    posterior = mixture_of(*map(torch.tensor, (mean, covariance, p)))
    torch.manual_seed(0)
    drawn = posterior.rsample(torch.Size([4000])).squeeze(-1)
    assert drawn.shape == (4000, REPLICAS, 2)
    for replica in range(REPLICAS):
        own = mean[0] if replica < 4 else mean[1]
        spread = np.sqrt(np.diagonal(covariance[0 if replica < 4 else 1]))
        np.testing.assert_array_less(np.abs(drawn[:, replica].mean(0).numpy() - own), 0.1 * spread)
