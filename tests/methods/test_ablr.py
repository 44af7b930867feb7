"""ABLR against the dense GP with kernel Φ Φ^T / α and noise 1/β, in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from scaml import FitError, MetaData, SavedFileError, SettingError, SpaceError, Task, suggest
from scaml.gp.units import Units
from scaml.methods import ablr
from scaml.methods.ablr import ABLR, ABLRModel, negative_log_likelihood
from scaml.methods.shared.network_tasks import settled
from tests.cases import meta_data, query, task_of
from tests.oracles import Array

QUICK = ABLR(iterations=60)
META = meta_data((12, 9, 15), 2)


def dense(Phi: Array, alpha: float, beta: float) -> Array:
    """The covariance of y."""
    return np.asarray(Phi @ Phi.T / alpha + np.eye(len(Phi)) / beta)


def surprise(K: Array, y: Array) -> float:
    """-log N(y; 0, K)."""
    _, log_det = np.linalg.slogdet(K)
    return float(0.5 * (y @ np.linalg.solve(K, y) + log_det + len(y) * math.log(2.0 * math.pi)))


def network_by_hand(prior: ablr.ABLRPrior, X: Tensor) -> Array:
    """Three layers of tanh on 2 x - 1."""
    h = 2.0 * X.numpy() - 1.0
    weights = [w.numpy() for w in prior.network.parameters()]
    for W, b in zip(weights[::2], weights[1::2], strict=True):
        h = np.tanh(h @ W.T + b)
    return h


@pytest.mark.parametrize(("n", "D"), [(1, 5), (4, 7), (7, 7), (20, 5), (60, 50)])
def test_likelihood_is_that_of_the_dense_gp(n: int, D: int) -> None:
    rng = np.random.default_rng(n)
    Phi, y = rng.uniform(-1.0, 1.0, (3, n, D)), rng.standard_normal((3, n))
    alpha, beta = np.array([0.3, 20.0, 4.0]), np.array([5e4, 2.0, 300.0])
    expected = [surprise(dense(Phi[t], alpha[t], beta[t]), y[t]) for t in range(3)]
    count = torch.full((3,), float(n), dtype=torch.float64)
    tensors = [torch.tensor(array) for array in (Phi, y, alpha, beta)]
    values = negative_log_likelihood(tensors[0], tensors[1], tensors[2], tensors[3], count)
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("n", [6, 30])
def test_padded_rows_add_nothing(n: int) -> None:
    Phi, z = query(1, n, 10), query(1, n) - 0.5
    alpha, beta = torch.tensor([2.0, 50.0], dtype=torch.float64).split(1)
    count = torch.tensor([float(n)], dtype=torch.float64)
    padded = nn.functional.pad(Phi, (0, 0, 0, 7)), nn.functional.pad(z, (0, 7))
    torch.testing.assert_close(
        negative_log_likelihood(*padded, alpha, beta, count),
        negative_log_likelihood(Phi, z, alpha, beta, count),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("n", [0, 1, 4, 70])
def test_prediction_is_that_of_the_dense_gp(n: int) -> None:
    prior = ABLR(iterations=10).meta_fit(META)
    task = task_of(n, 2) if n else Task.empty(d=2)
    X = query(6, 2)
    Phi, phi = network_by_hand(prior, task.X), network_by_hand(prior, X)
    alpha, beta = 3.0, 400.0
    offset, scale = 0.7, 2.5
    z = (task.y.numpy() - offset) / scale
    model = ABLRModel(
        prior.network,
        prior.network(task.X),
        torch.tensor(z),
        Units(*torch.tensor([offset, scale], dtype=torch.float64)),
        *torch.tensor([alpha, beta], dtype=torch.float64),
    )
    solved = np.linalg.solve(dense(Phi, alpha, beta), np.column_stack([z, Phi @ phi.T / alpha]))
    mean = phi @ Phi.T @ solved[:, 0] / alpha
    covariance = phi @ phi.T / alpha - phi @ Phi.T / alpha @ solved[:, 1:]
    posterior = model.posterior(X)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), offset + scale * mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        posterior.distribution.covariance_matrix, scale**2 * covariance, rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(
        model.cross(X[:2], X[2:]).numpy(), covariance[:2, 2:], rtol=1e-7, atol=1e-9
    )
    torch.testing.assert_close(model.noise, torch.tensor(1.0 / beta, dtype=torch.float64))


@pytest.mark.parametrize("n", [3, 8, 60])
def test_precisions_of_a_new_task_are_the_likeliest(n: int) -> None:
    prior = QUICK.meta_fit(META)
    task = task_of(n, 2)
    model = prior.condition(task)
    Phi = network_by_hand(prior, task.X)
    z = ((task.y - task.y.mean()) / task.y.std()).numpy()
    found = surprise(dense(Phi, float(model.alpha), float(model.beta)), z)
    every = [
        surprise(dense(Phi, a, b), z)
        for a in np.geomspace(1e-4, 1e4, 40)
        for b in np.geomspace(1e-2, 1e6, 40)
    ]
    assert found <= min(every) + 1e-6
    assert found >= min(every) - 0.5  # the grid is fine enough to see that this is the same maximum


def test_values_that_do_not_vary_leave_the_precisions_at_the_tasks_geometric_mean() -> None:
    flat = Task(query(6, 2), np.full(6, 3.0), name="flat")
    prior = QUICK.meta_fit(MetaData([*META, flat]))
    alpha, beta = prior.alpha[:3].log().mean().exp(), prior.beta[:3].log().mean().exp()
    for task in (Task.empty(d=2), task_of(1, 2), Task(query(4, 2), np.full(4, 0.1))):
        model = prior.condition(task)
        torch.testing.assert_close(model.alpha, alpha)
        torch.testing.assert_close(model.beta, beta)
    assert prior.condition(task_of(4, 2)).alpha != alpha
    X = query(5, 2)
    posterior = prior.condition(Task.empty(d=2)).posterior(X)
    assert (posterior.mean == 0).all()
    expected = (network_by_hand(prior, X) ** 2).sum(-1) / alpha.numpy()
    np.testing.assert_allclose(posterior.variance.squeeze(-1), expected, rtol=1e-10)


def test_training_minimizes_the_joint_likelihood_of_the_seen_points() -> None:
    """The loss that L-BFGS sees is the tasks' sum by the dense GP, and its slope the true one."""
    data, _ = settled(META)
    training = ablr._Training(ablr._network(2, (6, 5), 0), data, 0)
    optimizer = torch.optim.SGD([*training.network.parameters(), training._free], lr=1.0)
    loss = training._loss(optimizer)
    total, count = 0.0, 0
    for task in data:
        seen, held_out = ablr._split(task, 0)
        assert len(held_out.z) == 1
        assert len(seen.z) == len(task.z) - 1
        Phi = training.network(seen.X).detach().numpy()
        total += surprise(dense(Phi, 10.0, 100.0), seen.z.numpy())
        count += len(seen.z)
    assert loss.item() == pytest.approx(total / count, rel=1e-10)
    weight = next(iter(training.network.parameters()))
    assert weight.grad is not None
    slope, h = weight.grad[0, 1].item(), 1e-6
    values = []
    for shift in (h, -2.0 * h):
        with torch.no_grad():
            weight[0, 1] += shift
        values.append(training._loss(optimizer).item())
    assert (values[0] - values[1]) / (2.0 * h) == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_held_out_loss_is_the_predictive_density_by_the_dense_gp() -> None:
    data, _ = settled(MetaData([*META, task_of(3, 2, seed=9).called("tiny")]))
    training = ablr._Training(ablr._network(2, (8,), 0), data, 0)
    alpha, beta = 10.0, 100.0
    densities = []
    for task in data:
        seen, held_out = ablr._split(task, 0)
        Phi, phi = (training.network(part.X).detach().numpy() for part in (seen, held_out))
        K = dense(Phi, alpha, beta)
        for x, z in zip(phi, held_out.z.tolist(), strict=True):
            k = Phi @ x / alpha
            mean = k @ np.linalg.solve(K, seen.z.numpy())
            variance = x @ x / alpha - k @ np.linalg.solve(K, k) + 1.0 / beta
            densities.append(0.5 * ((z - mean) ** 2 / variance + np.log(2.0 * np.pi * variance)))
    assert len(densities) == 3  # of the smallest task none
    assert training._held_out_loss() == pytest.approx(np.mean(densities), rel=1e-9)


def test_the_network_ends_where_held_out_points_were_predicted_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[tuple[float, Tensor]] = []
    look = ablr._Training._held_out_loss

    def spied(self: ablr._Training) -> float:
        looks.append((look(self), next(iter(self.network.parameters())).detach().clone()))
        return looks[-1][0]

    monkeypatch.setattr(ablr._Training, "_held_out_loss", spied)
    told: list[tuple[int, int]] = []
    prior = ABLR().meta_fit(META, progress=lambda done, total: told.append((done, total)))
    _, best = min(looks, key=lambda item: item[0])
    assert torch.equal(next(iter(prior.network.parameters())), best)
    assert len(looks) < 100  # stopped early
    assert told[-1] == (500, 500)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_features_learned_from_the_past_beat_random_ones() -> None:
    meta, new = meta_data((40,) * 6, 2), task_of(200, 2)
    task = Task(new.X[:8], new.y[:8])
    errors = []
    for prior in (ABLR().meta_fit(meta), ABLR(iterations=1).meta_fit(meta)):
        mean = prior.condition(task).posterior(new.X).mean.squeeze(-1)
        errors.append(float((mean - new.y).square().mean() / new.y.var()))
    assert errors[0] < 0.5 * errors[1]
    assert errors[0] < 0.1


def test_retraining_learns_from_the_test_data() -> None:
    method = ABLR(iterations=15, retrain=True)
    prior = method.meta_fit(META)
    x = query(5, 2)
    assert torch.equal(prior.condition(Task.empty(d=2)).network(x), prior.network(x))
    with torch.no_grad():  # a caller's mode is no reason not to learn
        a, b = (prior.condition(task_of(n, 2)).network(x) for n in (6, 7))
    assert not torch.equal(a, b)
    assert not torch.equal(a, prior.network(x))
    kept = ABLR(iterations=15).meta_fit(META).condition(task_of(6, 2)).network
    assert torch.equal(kept(x), prior.network(x))


def test_units_of_y_change_no_bit_of_the_network() -> None:
    shifted = MetaData([Task(t.X, 1e3 * t.y - 50.0, name=t.name) for t in META])
    X = query(5, 2)
    ours, theirs = (QUICK.meta_fit(meta).network(X) for meta in (META, shifted))
    assert torch.equal(ours, theirs)


def test_nothing_keeps_a_gradient() -> None:
    prior = QUICK.meta_fit(META)
    assert not any(p.requires_grad for p in prior.network.parameters())
    assert not prior.condition(task_of(4, 2)).posterior(query(3, 2)).mean.requires_grad


def test_a_loss_that_is_no_number_names_task_and_step() -> None:
    network = ablr._network(2, (4,), 0)
    with torch.no_grad():
        next(iter(network.parameters())).fill_(math.nan)
    training = ablr._Training(network, settled(META)[0], 0)
    with pytest.raises(FitError, match=r"ABLR became nan on task 't\d' at step 0"):
        training.run(10, None)


def test_what_is_refused() -> None:
    for settings, word in (
        ({"widths": ()}, "widths"),
        ({"widths": (50, 0)}, "width"),
        ({"widths": 50}, "widths"),
        ({"iterations": 0}, "iterations"),
        ({"retrain": 1}, "retrain"),
        ({"sqrt_beta": -1.0}, "sqrt_beta"),
    ):
        with pytest.raises(SettingError, match=word):
            ABLR(**settings)
    assert ABLR(widths=[7, 5]) == ABLR(widths=(7, 5))  # type: ignore[arg-type]
    partly = Task(query(5, 2), query(5), known=[True, False], name="partly")
    with pytest.raises(SpaceError, match="'partly' lacks parameters"):
        QUICK.meta_fit(MetaData([partly]))


def test_a_damaged_state_is_refused() -> None:
    state = QUICK.meta_fit(META).state()
    for name, value in (
        ("alpha", torch.ones(2, dtype=torch.float64)),
        ("beta", torch.full((3,), math.nan, dtype=torch.float64)),
        ("1.weight", torch.zeros(3, 3, dtype=torch.float64)),
    ):
        with pytest.raises(SavedFileError, match=name):
            QUICK.restore(META, {**state, name: value})


def test_the_first_point_is_any_by_the_seed() -> None:
    """Where the features are largest says nothing of y."""
    prior = ABLR(widths=(8, 8), iterations=20).meta_fit(meta_data((9, 11), 2), seed=0)
    empty = Task.empty(d=2)
    points = torch.cat([suggest(prior, empty, seed=seed) for seed in range(6)])
    assert len(points.unique(dim=0)) == 6
    values = prior.acquisition(prior.condition(empty))(points.unsqueeze(-2))
    assert (values == values[0]).all()
    later = prior.acquisition(prior.condition(Task(points[:1], [1.0])))(points.unsqueeze(-2))
    assert len(later.unique()) > 1
