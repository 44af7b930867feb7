"""ScaML and its prior: the public contract, seeds, settings."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
import torch

from scaml import MetaData, ScaML, SettingError, Task, TaskDataError
from scaml.gp.kernels import KernelName
from scaml.model.average_gp import AverageGP
from scaml.model.normalization import NormalizationName
from scaml.model.weight_priors import Shared
from tests.cases import ONE_MODEL, meta_data, smooth, task_of
from tests.oracles import Array

META = meta_data((10, 14, 8), 2)
X = torch.rand(6, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize("method", [ONE_MODEL, ScaML.paper()], ids=["shared", "paper"])
def test_without_data_the_prior_is_the_mean_of_the_tasks(method: ScaML) -> None:
    prior = method.meta_fit(META)
    model = prior.condition(Task.empty(d=2))
    weights = prior.theta_priors.weights
    share = weights.center if isinstance(weights, Shared) else 1.0
    torch.testing.assert_close(model.weights, torch.full((3,), share / 3, dtype=torch.float64))
    expected = model.y_offset + model.y_scale * share * prior.task_gps.mean(X).mean(0)
    torch.testing.assert_close(model.posterior(X).mean.squeeze(-1), expected)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
# Where bad values are clipped, they are known less well.
@pytest.mark.parametrize(("normalization", "close"), [("learned", 0.25), ("clipped", 0.5)])
def test_a_task_like_a_past_one_finds_it(
    kernel: KernelName, normalization: NormalizationName, close: float
) -> None:
    """Three past tasks, the test-task a copy of one of them in other units."""
    rng = np.random.default_rng(0)
    functions: tuple[Callable[[Array], Array], ...] = (
        lambda X: smooth(X, 0.0),
        lambda X: np.asarray(np.sin(9 * X[:, 0]) + X[:, 1]),
        lambda X: np.asarray(np.cos(7 * X[:, 1])),
    )
    tasks = []
    for i, f in enumerate(functions):
        P = rng.random((30, 2))
        tasks.append(Task(P, f(P), name=f"t{i}"))
    prior = ScaML(kernel, normalization).meta_fit(MetaData(tasks))
    P = rng.random((12, 2))
    model = prior.condition(Task(P, functions[1](P)))
    assert model.weights.argmax() == 1
    Q = rng.random((50, 2))
    error = model.posterior(torch.tensor(Q)).mean.squeeze(-1).numpy() - functions[1](Q)
    assert np.abs(error).max() < close


def test_signed_weights_use_a_mirrored_task() -> None:
    rng = np.random.default_rng(1)
    P, Q, T = rng.random((30, 2)), rng.random((10, 2)), rng.random((40, 2))
    meta = MetaData([Task(P, -smooth(P, 0.0), name="mirrored")])
    task = Task(Q, smooth(Q, 0.0))
    signed, positive = (
        ScaML(weights=kind).meta_fit(meta).condition(task) for kind in ("signed", "positive")
    )
    assert signed.weights.item() < -0.1
    assert positive.weights.item() >= 0.0

    def error(model: Any) -> float:
        mean = model.posterior(torch.tensor(T)).mean.squeeze(-1).numpy()
        return float(np.abs(mean - smooth(T, 0.0)).mean())

    assert error(signed) < error(positive)


def test_seeds_and_pickles() -> None:
    prior, task = ScaML().meta_fit(META, seed=1), task_of(6, 2)
    again = ScaML().meta_fit(META, seed=1)
    twin = pickle.loads(pickle.dumps(prior))
    expected = prior.condition(task, seed=2).posterior(X).mean
    for other in (again, twin, prior):
        assert torch.equal(other.condition(task, seed=2).posterior(X).mean, expected)


def test_settings_are_frozen_and_checked() -> None:
    method = ScaML()
    with pytest.raises(FrozenInstanceError):
        method.kernel = "matern52"  # type: ignore[misc]
    assert ScaML() == method
    for wrong in (
        {"kernel": "rbf"},
        {"normalization": "none"},
        {"weights": "any"},
        {"sqrt_beta": -1.0},
        {"sqrt_beta": float("nan")},
    ):
        with pytest.raises(SettingError, match=str(next(iter(wrong.values())))):
            ScaML(**wrong)
    with pytest.raises(TaskDataError, match="are a list"):
        method.meta_fit([])  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="seed is -3"):
        method.meta_fit(META, seed=-3)
    with pytest.raises(SettingError, match="n_jobs is 0"):
        method.meta_fit(META, n_jobs=0)


def test_without_data_an_average_is_a_mixture_around_the_mean_of_the_tasks() -> None:
    prior = ScaML(weights="explained").meta_fit(META)
    model = prior.condition(Task.empty(d=2))
    assert isinstance(model, AverageGP)
    whole = max(model.members, key=lambda member: float(member.weights.sum()))
    torch.testing.assert_close(whole.weights, whole.weights.mean().expand(3))
    expected = sum(
        float(p) * member.posterior(X).mean
        for p, member in zip(model.probability, model.members, strict=True)
    )
    torch.testing.assert_close(model.posterior(X).mixture_mean, expected)


def test_ucb_of_an_average_can_be_climbed_without_exploration() -> None:
    """With √β = 0 the gradient is that of the mean, and not NaN."""
    prior = ScaML(weights="explained", acquisition="ucb", sqrt_beta=0.0).meta_fit(META)
    model, points = prior.condition(task_of(4, 2)), X.unsqueeze(-2).requires_grad_()
    (slope,) = torch.autograd.grad(prior.acquisition(model)(points).sum(), points)
    mean = model.posterior(points).mixture_mean
    (expected,) = torch.autograd.grad(mean.sum(), points)
    torch.testing.assert_close(slope, expected)


def test_acquisition_has_the_methods_beta() -> None:
    prior = replace(ONE_MODEL, acquisition="ucb", sqrt_beta=2.0).meta_fit(META)
    model = prior.condition(Task.empty(d=2))
    posterior = model.posterior(X.unsqueeze(-2))
    expected = (posterior.mean + 2.0 * posterior.variance.sqrt()).flatten()
    torch.testing.assert_close(prior.acquisition(model)(X.unsqueeze(-2)), expected)


@pytest.mark.parametrize("normalization", ["pooled", "union"])
def test_hard_cases_work(normalization: Any) -> None:
    """Constant tasks, duplicate rows, one observation, the same point observed twice."""
    P = np.repeat(np.random.default_rng(0).random((3, 2)), 2, axis=0)
    meta = MetaData([Task(P, np.full(6, 4.0)), Task(P, np.full(6, -2.0))])
    prior = ScaML(normalization=normalization).meta_fit(meta)
    task = Task.empty(d=2)
    for y in (0.5, 0.5, 0.7, -1.0):
        posterior = prior.condition(task).posterior(X)
        assert posterior.mean.isfinite().all()
        assert (posterior.variance > 0).all()
        task = task.append([0.5, 0.5], y)


def test_one_terrible_value_does_not_set_the_scale_of_its_task() -> None:
    """The default clips it; "learned" does not, and forgets what the other points say."""
    P = np.random.default_rng(0).random((20, 2))
    y = smooth(P, 0.1)
    wild = y.copy()
    wild[0] -= 1e6
    kept = {}
    for normalization in ("clipped", "learned"):
        method = ScaML(normalization=normalization)
        gps = method.meta_fit(MetaData([Task(P, wild, name="wild"), Task(P, y, name="tame")])).task_gps
        means = gps.mean(torch.tensor(P[1:]))
        kept[normalization] = torch.corrcoef(means)[0, 1].item()
    assert kept["clipped"] > 0.9
    assert kept["learned"] < 0.7
