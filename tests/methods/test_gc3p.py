"""GC3P: the prior network, the residuals' GP, and the copula process against NumPy and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from botorch.sampling import SobolQMCNormalSampler
from scipy.stats import norm, rankdata
from torch import Tensor, nn

import scaml.methods.gc3p as module
from scaml import MetaData, SavedFileError, SettingError, SpaceError, Task
from scaml.methods.gc3p import GC3P, CopulaProcess, GC3PPrior, PriorNetwork, gaussian_loss
from scaml.methods.shared.networks import seeded
from tests.cases import meta_data, query, task_of
from tests.oracles import Array, kernel_matrix

QUICK = GC3P(updates=100)
META = meta_data((9, 14, 11), 2)


@pytest.fixture(scope="module")
def prior() -> GC3PPrior:
    return QUICK.meta_fit(META, seed=0)


def by_hand(network: PriorNetwork, X: Tensor) -> tuple[Array, Array]:
    """μ and σ from the weights alone."""
    weights = [p.detach().numpy() for p in network.parameters()]
    hidden = X.numpy()
    for W, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        hidden = np.maximum(hidden @ W.T + b, 0.0)
    out = hidden @ weights[-2].T + weights[-1]
    return out[:, 0], np.log1p(np.exp(out[:, 1])) + 0.01


def z_of(y: Tensor) -> Array:
    n = len(y)
    delta = 1.0 / (4.0 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    return np.asarray(norm.ppf(np.clip(rankdata(y) / n, delta, 1.0 - delta)))


# The prior network.


def test_the_loss_is_that_of_scipys_normal() -> None:
    with seeded(3):
        network = PriorNetwork(2, (50, 50, 50), 0.1).eval()
    X, z = query(40, 2), torch.linspace(-2.0, 2.0, 40, dtype=torch.float64)
    mean, deviation = by_hand(network, X)
    expected = -norm.logpdf(z.numpy(), mean, deviation).mean()
    np.testing.assert_allclose(gaussian_loss(network, X, z).item(), expected, rtol=0, atol=1e-13)


def test_layers_and_dropout_are_the_publications() -> None:
    network = PriorNetwork(4, tuple(GC3P().widths), GC3P().dropout)
    shapes = [tuple(layer.weight.shape) for layer in network.modules() if isinstance(layer, nn.Linear)]
    assert shapes == [(50, 4), (50, 50), (50, 50), (2, 50)]
    assert [layer.p for layer in network.modules() if isinstance(layer, nn.Dropout)] == [0.1] * 3
    assert all(p.dtype == torch.float64 for p in network.parameters())


def test_deviations_have_a_floor() -> None:
    network = PriorNetwork(2, (3,), 0.0)
    nn.init.constant_(network.head.bias, -1e3)
    assert network(query(5, 2))[1].tolist() == [0.01] * 5


def test_the_training_is_the_publications(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    batches: list[tuple[Tensor, Tensor]] = []

    def descend(loss: Any, network: nn.Module, **options: Any) -> int:
        seen.update(options)
        monkeypatch.setattr(module, "gaussian_loss", record)
        for step in range(40):
            loss(step)
        seen["batches"] = list(batches)
        batches.clear()
        options["stopping"].held_out()
        return 0

    def record(network: nn.Module, X: Tensor, z: Tensor) -> Tensor:
        batches.append((X, z))
        return z.sum()

    monkeypatch.setattr(module, "descend", descend)
    meta = meta_data((40, 50, 60), 2)
    GC3P().meta_fit(meta, seed=0)
    rates = [seen["rate"](step) for step in (0, 999, 1000, 1999, 2000, 2999)]
    np.testing.assert_allclose(rates, [0.01, 0.01, 0.002, 0.002, 0.0004, 0.0004], rtol=1e-12)
    assert seen["steps"] == 3000
    assert seen["stopping"].every * seen["stopping"].patience == 1000
    assert all(len(z) == 64 for _, z in seen["batches"])
    # What is held out is a tenth, never trained on; everything else is, with the z of its own task.
    ((held, _),) = batches
    held_out = {tuple(x) for x in held.tolist()}
    trained = {
        tuple(x): value
        for X, z in seen["batches"]
        for x, value in zip(X.tolist(), z.tolist(), strict=True)
    }
    everything = {
        tuple(x): value for t in meta for x, value in zip(t.X.tolist(), z_of(t.y), strict=True)
    }
    assert len(held_out) == 15
    assert held_out | trained.keys() == everything.keys()
    assert not held_out & trained.keys()
    assert trained == pytest.approx({x: everything[x] for x in trained}, abs=1e-13)


def test_the_network_learns_what_the_past_agrees_on() -> None:
    rng = np.random.default_rng(0)
    tasks = []
    for m in range(6):
        X = rng.random((40, 2))
        tasks.append(Task(X, 10.0**m * (X[:, 0] + 0.02 * rng.standard_normal(40)) - m, name=f"t{m}"))
    prior = GC3P(updates=300).meta_fit(MetaData(tasks), seed=0)
    new = torch.tensor([[0.05, 0.5], [0.5, 0.2], [0.95, 0.9]], dtype=torch.float64)
    mean, deviation = prior.network(new)
    np.testing.assert_allclose(mean, norm.ppf([0.05, 0.5, 0.95]), rtol=0, atol=0.35)
    assert (deviation < 0.5).all()
    assert not any(p.requires_grad for p in prior.network.parameters())


def test_progress_and_few_points() -> None:
    told: list[tuple[int, int]] = []
    few = MetaData([Task([[0.1], [0.7]], [1.0, 2.0]), Task([[0.2], [0.9]], [3.0, 1.0])])
    prior = GC3P(updates=20).meta_fit(
        few, progress=lambda done, total: told.append((done, total))
    )  # 4 points: none is held out
    assert told[-1] == (60, 60)
    assert prior.condition(Task.empty(d=1)).posterior(query(2, 1)).mean.isfinite().all()


def test_the_order_of_tasks_changes_no_bit(prior: GC3PPrior) -> None:
    turned = QUICK.meta_fit(MetaData([META[i] for i in (2, 0, 1)]), seed=0)
    for name, tensor in turned.state().items():
        assert torch.equal(tensor, prior.state()[name])


def test_the_units_of_y_change_no_bit(prior: GC3PPrior) -> None:
    def scaled(task: Task) -> Task:
        return Task(task.X, 1e3 * task.y - 50.0, name=task.name)

    other = QUICK.meta_fit(MetaData([scaled(task) for task in META]), seed=0)
    task, X = task_of(5, 2), query(3, 2)
    ours, theirs = prior.condition(task), other.condition(scaled(task))
    assert torch.equal(ours.posterior(X).mean, theirs.posterior(X).mean)


def test_the_seed_decides(prior: GC3PPrior) -> None:
    other = QUICK.meta_fit(META, seed=1)
    assert not torch.equal(other.state()["head.weight"], prior.state()["head.weight"])


# The copula process.


def dense(model: CopulaProcess, X: Tensor, z: Array, noise: Array, Z: Tensor) -> tuple[Array, Array]:
    """Posterior of z at Z by dense conditioning of the process itself: mean μ, kernel σ k_r σ."""
    ell, scale = model.residual.lengthscale.numpy(), model.residual.outputscale.item()
    (m, s), (m_new, s_new) = by_hand(model.network, X), by_hand(model.network, Z)

    def k(A: Tensor, a: Array, B: Tensor, b: Array) -> Array:
        R = kernel_matrix("matern52", A.numpy(), B.numpy(), ell, scale)
        return np.asarray(a[:, None] * R * b[None])

    gain = np.linalg.solve(k(X, s, X, s) + np.diag(noise * s**2), k(X, s, Z, s_new)).T
    return m_new + gain @ (z - m), k(Z, s_new, Z, s_new) - gain @ k(X, s, Z, s_new)


@pytest.mark.parametrize("n", [2, 7])
def test_the_posterior_is_that_of_the_copula_process(prior: GC3PPrior, n: int) -> None:
    task, Z = task_of(n, 2), query(5, 2)
    model = prior.condition(task)
    noise = np.full(n, model.noise.item())
    mean, covariance = dense(model, task.X, z_of(task.y), noise, Z)
    posterior = model.posterior(Z)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(posterior.distribution.covariance_matrix, covariance, rtol=0, atol=1e-8)
    # ... which is the residual's GP, mapped back.
    (m, s), (r, k) = by_hand(model.network, Z), model.residual.moments(Z)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), m + s * r.numpy(), rtol=0, atol=1e-12)
    mapped = s[:, None] * k.numpy() * s[None]
    np.testing.assert_allclose(posterior.distribution.covariance_matrix, mapped, rtol=0, atol=1e-12)


def test_without_observations_it_is_the_networks_normal(prior: GC3PPrior) -> None:
    Z = query(6, 2)
    posterior = prior.condition(Task.empty(d=2)).posterior(Z)
    mean, deviation = by_hand(prior.network, Z)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), mean, rtol=0, atol=1e-13)
    np.testing.assert_allclose(posterior.variance.squeeze(-1), deviation**2, rtol=0, atol=1e-13)


def test_ranks_are_computed_anew_at_every_step(prior: GC3PPrior) -> None:
    task = task_of(4, 2)
    later = task.append([0.5, 0.5], task.y.max() + 1.0)
    first, second = (prior.condition(t).residual.train_targets for t in (task, later))
    mean, deviation = by_hand(prior.network, later.X)
    np.testing.assert_allclose(second, (z_of(later.y) - mean) / deviation, rtol=0, atol=1e-11)
    assert not torch.allclose(first, second[:4])


@pytest.mark.parametrize("given", [None, 0.3])
def test_further_observations_are_dense_conditioning(prior: GC3PPrior, given: float | None) -> None:
    """Of z, with noise that grows with σ(x)²."""
    task, X, Z = task_of(4, 2), query(3, 2), query(9, 2)[5:]
    model = prior.condition(task)
    new = torch.tensor([[0.5], [-1.0], [1.5]], dtype=torch.float64)
    noise = None if given is None else torch.full_like(new, given)
    later = model.condition_on_observations(X, new, noise=noise)
    _, s = by_hand(model.network, X)
    own = model.noise.item()
    added = np.full(3, own) if given is None else given / s**2
    z = np.concatenate([z_of(task.y), new.squeeze(-1).numpy()])
    noises = np.concatenate([np.full(4, own), added])
    mean, covariance = dense(model, torch.cat([task.X, X]), z, noises, Z)
    posterior = later.posterior(Z)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), mean, rtol=0, atol=1e-7)
    np.testing.assert_allclose(posterior.distribution.covariance_matrix, covariance, rtol=0, atol=1e-7)


def test_observation_noise_grows_with_the_deviation(prior: GC3PPrior) -> None:
    model, Z = prior.condition(task_of(4, 2)), query(2, 3, 2)
    added = model.posterior(Z, observation_noise=True).variance - model.posterior(Z).variance
    _, s = by_hand(model.network, Z.view(6, 2))
    np.testing.assert_allclose(added.flatten(), model.noise.item() * s**2, rtol=0, atol=1e-12)
    fixed = torch.full((2, 3, 1), 0.5, dtype=torch.float64)
    more = model.posterior(Z, observation_noise=fixed).variance
    torch.testing.assert_close(more, model.posterior(Z).variance + 0.5)


def test_cross_covariances_and_fantasies(prior: GC3PPrior) -> None:
    model, X = prior.condition(task_of(4, 2)), query(3, 7, 2)
    _, joint = model.moments(X)
    torch.testing.assert_close(model.cross(X[:, :3], X[:, 3:]), joint[:, :3, 3:], rtol=1e-8, atol=1e-11)
    fantasies = model.fantasize(query(2, 2), SobolQMCNormalSampler(torch.Size([4]), seed=0))
    assert fantasies.batch_shape == (4,)
    assert fantasies.posterior(query(5, 1, 3, 2)).mean.shape == (5, 4, 3, 1)


def test_gradients_by_finite_differences(prior: GC3PPrior) -> None:
    model = prior.condition(task_of(4, 2))
    X = query(3, 1, 2).requires_grad_()
    assert torch.autograd.gradcheck(model.marginal, (X,), rtol=1e-5, atol=1e-6)


# What is refused.


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "linear"}, "kernel is 'linear'"),
        ({"widths": ()}, "widths is"),
        ({"widths": "50"}, "widths is '50'"),
        ({"widths": (50, 0)}, "A width of the network is 0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"validation": -0.1}, "validation is -0.1"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"rate": math.nan}, "rate is nan"),
        ({"batch": 0}, "batch is 0"),
        ({"updates": 1.5}, "updates is 1.5"),
        ({"sqrt_beta": -1.0}, "sqrt_beta is -1.0"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        GC3P(**settings)


def test_settings_from_a_file_are_the_same() -> None:
    assert GC3P(widths=[50, 50, 50]) == GC3P()


def test_tasks_that_lack_parameters_are_refused() -> None:
    partial = Task(query(5, 2), range(5), name="old", known=[True, False])
    with pytest.raises(SpaceError, match="Task 'old' lacks parameters"):
        QUICK.meta_fit(MetaData([META[0], partial]))


def test_a_state_of_another_network_is_refused(prior: GC3PPrior) -> None:
    with pytest.raises(SavedFileError, match=r"body\.0\.weight"):
        GC3P(widths=(20, 20, 20)).restore(META, prior.state())
