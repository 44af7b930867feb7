"""RGPE against counting loops in NumPy and left-out GPs of BoTorch."""

from __future__ import annotations

import hashlib
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml import MetaData, SettingError, Task, TaskGPs
from scaml.gp.kernels import KernelName
from scaml.gp.units import standardize
from scaml.methods import rgpe
from scaml.methods.rgpe import RGPE, LeftOut, RGPEPrior, own_loss, rank_weights, ranking_loss
from scaml.methods.shared.ensemble import Ensemble
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.scaml_gp import ScaMLGP
from tests.botorch_baseline import single_task_gp
from tests.cases import meta_data, query, smooth, task_of
from tests.oracles import Array, kernel_matrix

META = meta_data((10, 14, 8), 2)
X = query(6, 2)


@pytest.fixture(scope="module")
def prior() -> RGPEPrior:
    return RGPE().meta_fit(META)


# The loss.


def loss_by_hand(f: Any, y: Any) -> int:
    """f: n values, or n x n with the values of model -j in row j."""
    n, count = len(y), 0
    for j in range(n):
        values = f if f.ndim == 1 else f[j]
        for k in range(n):
            count += bool(values[j] < values[k]) != bool(y[j] < y[k])
    return count


@pytest.mark.parametrize("values", [1000, 3])  # the second with many ties
@pytest.mark.parametrize("n", [3, 8])
def test_losses_are_counted(n: int, values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    f, y = rng.integers(values, size=(4, 5, n)), rng.integers(values, size=n)
    square = rng.integers(values, size=(7, n, n))
    ours, y_ours = torch.tensor(f).double(), torch.tensor(y).double()
    expected = [[loss_by_hand(sample, y) for sample in task] for task in f]
    assert ranking_loss(ours, y_ours).tolist() == expected
    own = [loss_by_hand(sample, y) for sample in square]
    assert own_loss(torch.tensor(square).double(), y_ours).tolist() == own
    monkeypatch.setattr(rgpe, "_ENTRIES", 3 * n * n)  # in parts of three samples
    assert ranking_loss(ours, y_ours).tolist() == expected


def test_the_best_and_the_worst_loss() -> None:
    y = torch.randn(9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert ranking_loss(3.0 * y - 1.0, y) == 0
    assert ranking_loss(-y, y) == 9 * 8


# The left-out GPs.


def plain(task: Task, kernel: KernelName, noise: float | None = None) -> ScaMLGP:
    """The test-task's own GP, perhaps with another noise."""
    own = fit_plain_gp(task, standardize(task.y), kernel=kernel, seed=0)
    if noise is not None:
        own.load_state_dict(own.state_dict() | {"noise": torch.tensor(noise, dtype=torch.float64)})
    return own


def covariances(left_out: LeftOut) -> Tensor:
    outer = left_out.gain.unsqueeze(-1) * left_out.gain.unsqueeze(-2)
    return left_out.factor @ left_out.factor.mT + outer


@pytest.mark.parametrize("noise", [None, 1e-6, 5e-3])
@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_left_out_gps_are_botorchs(kernel: KernelName, noise: float | None) -> None:
    task = task_of(9, 2)
    own = plain(task, kernel, noise)
    left_out = LeftOut.of(own, task)
    z = (task.y - task.y.mean()) / task.y.std()
    theta = torch.cat([own.lengthscale, own.outputscale[None], own.noise[None]]).log()
    for j in range(task.n):
        rest = torch.arange(task.n) != j
        model = single_task_gp(kernel, task.X[rest], z[rest], theta).eval()
        with torch.no_grad():
            theirs = model.posterior(task.X)
        mean, covariance = theirs.mean.squeeze(-1), theirs.distribution.covariance_matrix
        torch.testing.assert_close(left_out.mean[j], mean, rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(covariances(left_out)[j], covariance, rtol=1e-6, atol=1e-7)


def test_left_out_gps_are_those_of_numpy() -> None:
    """Tighter: the added share of the signal's variance, 1e-10, is all that differs."""
    task = task_of(12, 3)
    own = plain(task, "se", 1e-3)
    left_out = LeftOut.of(own, task)
    P, z = task.X.numpy(), ((task.y - task.y.mean()) / task.y.std()).numpy()
    o = float(own.outputscale)
    K = kernel_matrix("se", P, P, own.lengthscale.numpy(), o)
    for j in range(task.n):
        rest = np.arange(task.n) != j
        gain = np.linalg.solve(K[np.ix_(rest, rest)] + 1e-3 * np.eye(task.n - 1), K[rest]).T
        np.testing.assert_allclose(left_out.mean[j], gain @ z[rest], rtol=0, atol=1e-11)
        expected = K - gain @ K[rest] + 1e-10 * o * np.eye(task.n)
        np.testing.assert_allclose(covariances(left_out)[j], expected, rtol=0, atol=1e-11 * o)


def test_samples_are_joint_and_have_the_moments() -> None:
    task = task_of(4, 1)
    left_out = LeftOut.of(plain(task, "se", 1e-2), task)
    S = 40_000
    f = left_out.sample(S, torch.Generator().manual_seed(0))
    assert f.shape == (S, 4, 4)
    covariance = covariances(left_out)
    deviation = covariance.diagonal(dim1=-2, dim2=-1).sqrt()
    # Five standard errors.
    assert ((f.mean(0) - left_out.mean).abs() < 5 * deviation / S**0.5).all()
    centered = f - left_out.mean
    found = torch.einsum("sjk,sjl->jkl", centered, centered) / S
    bound = 5 * 2**0.5 * deviation.unsqueeze(-1) * deviation.unsqueeze(-2) / S**0.5
    assert ((found - covariance).abs() < bound).all()
    # Models without different observations are drawn by themselves.
    across = torch.einsum("sk,sk->k", centered[:, 0], centered[:, 1]) / S
    assert (across.abs() < 5 * deviation[0] * deviation[1] / S**0.5).all()


# The weights.


def weights_by_hand(losses: Array, own: Array, guard: bool) -> tuple[Array, float]:
    M, S = losses.shape
    left = [m for m in range(M) if not guard or np.median(losses[m]) <= np.percentile(own, 95)]
    weights, own_weight = np.zeros(M), 0.0
    for s in range(S):
        best = min([own[s], *(losses[m, s] for m in left)])
        if own[s] == best:
            own_weight += 1.0 / S
            continue
        tied = [m for m in left if losses[m, s] == best]
        for m in tied:
            weights[m] += 1.0 / (S * len(tied))
    return weights, own_weight


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_shares_of_wins(seed: int, guard: bool) -> None:
    rng = np.random.default_rng(seed)
    losses = rng.integers(6, size=(5, 41)) + np.array([0, 1, 0, 4, 9])[:, None]  # many ties
    own = rng.integers(1, 8, size=41)
    weights, own_weight = rank_weights(torch.tensor(losses), torch.tensor(own), guard=guard)
    expected, own_expected = weights_by_hand(losses.astype(float), own.astype(float), guard)
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-14)
    assert own_weight == pytest.approx(own_expected, abs=1e-14)
    assert float(weights.sum()) + own_weight == pytest.approx(1.0, abs=1e-14)
    assert weights.count_nonzero() >= 2


def test_ties_go_to_the_test_task_and_else_are_split() -> None:
    losses = torch.tensor([[2, 2, 9, 1], [2, 2, 9, 3], [5, 2, 9, 1]])
    weights, own = rank_weights(losses, torch.tensor([2, 4, 9, 4]), guard=False)
    assert own == 0.5
    np.testing.assert_allclose(weights, [(1 / 3 + 1 / 2) / 4, 1 / 12, (1 / 3 + 1 / 2) / 4])


def test_the_guard_drops_tasks_that_win_by_luck() -> None:
    """A task with the smallest loss now and then, but a large one mostly."""
    losses = torch.cat([torch.zeros(2, 30), torch.full((2, 70), 50.0)], dim=1)
    losses[1] = 8.0
    own = torch.arange(100) % 10 + 1.0
    with_guard, without = (rank_weights(losses, own, guard=guard)[0] for guard in (True, False))
    assert with_guard.tolist() == [0.0, pytest.approx(0.2)]  # where the own loss is 9 or 10
    assert without[0] == pytest.approx(0.3)
    # It is the median that counts, not one quantile further.
    own, mostly = torch.full((100,), 3.0), torch.full((2, 100), 2.0)
    mostly[0, :45], mostly[1, :55] = 9.0, 9.0
    assert rank_weights(mostly[:1], own, guard=True)[0] == pytest.approx(0.55)
    assert rank_weights(mostly[1:], own, guard=True)[0] == 0.0
    # On the percentile itself a task stays.
    assert rank_weights(torch.full((1, 4), 3.0), torch.full((4,), 3.0), guard=True)[1] == 1.0
    high = torch.tensor([3.0, 3.0, 3.0, 4.0])
    assert rank_weights(torch.full((1, 4), 3.0), high, guard=True)[0] == 0.25


# The whole.


def draws_by_hand(past: Task, n: int) -> Array:
    rows = past.X.numpy()[np.argsort(past.y.numpy(), kind="stable")]
    digest = hashlib.sha256((5).to_bytes(8, "little") + rows.tobytes()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
    return torch.randn(40, n, generator=generator, dtype=torch.float64).numpy()


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("n", [3, 10])
def test_condition_from_end_to_end(n: int, guard: bool, prior: RGPEPrior) -> None:
    """Meta-task posteriors, samples, losses and weights by NumPy, from the same normal draws."""
    method, task = RGPE(samples=40, guard=guard), task_of(n, 2)
    prior = method.restore(META, prior.state())
    model = prior.condition(task, seed=5)
    P, y, gps = task.X.numpy(), task.y.numpy(), prior.task_gps
    generator = torch.Generator().manual_seed(5)
    losses = np.empty((3, 40))
    for m, past in enumerate(META):
        o = float(gps.outputscale[m])

        def k(A: Array, B: Array, m: int = m, o: float = o) -> Array:
            return kernel_matrix("se", A, B, gps.lengthscale[m].numpy(), o)

        Q, z = past.X.numpy(), ((past.y - past.y.mean()) / past.y.std()).numpy()
        gain = np.linalg.solve(k(Q, Q) + float(gps.noise[m]) * np.eye(past.n), k(Q, P)).T
        L = np.linalg.cholesky(k(P, P) - gain @ k(Q, P) + 1e-10 * o * np.eye(n))
        losses[m] = [loss_by_hand(gain @ z + L @ row, y) for row in draws_by_hand(past, n)]
    own = fit_plain_gp(task, standardize(task.y), kernel="se", seed=5)
    samples = LeftOut.of(own, task).sample(40, generator).numpy()
    own_losses = np.array([loss_by_hand(sample, y) for sample in samples])
    ours = prior.losses(own, task, seed=5)
    np.testing.assert_array_equal(ours[0], losses)
    np.testing.assert_array_equal(ours[1], own_losses)
    weights, own_weight = weights_by_hand(losses, own_losses.astype(float), guard)
    np.testing.assert_allclose(model.weights, weights, rtol=0, atol=1e-14)
    assert model.own_weight == pytest.approx(own_weight, abs=1e-14)


def check_prediction(model: Ensemble, task_gps: TaskGPs, own: ScaMLGP) -> None:
    """Σ w_i μ_i and Σ w_i² s_i², in the units of the test-task."""
    units = model.units
    theirs = own.posterior(X)
    z = (theirs.mean.squeeze(-1) - units.offset) / units.scale
    mean = model.weights @ task_gps.mean(X) + model.own_weight * z
    variance = model.weights.square() @ task_gps.variance(X) * units.scale.square()
    variance = variance + model.own_weight**2 * theirs.variance.squeeze(-1)
    posterior = model.posterior(X)
    torch.testing.assert_close(posterior.mean.squeeze(-1), units.offset + units.scale * mean)
    torch.testing.assert_close(posterior.variance.squeeze(-1), variance, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
def test_prediction_is_the_weighted_sum(prior: RGPEPrior, n: int) -> None:
    task = task_of(n, 2) if n else Task.empty(d=2)
    model = prior.condition(task, seed=3)
    own = fit_plain_gp(task, standardize(task.y), kernel="se", seed=3)
    assert torch.equal(model.units.offset, standardize(task.y).offset)
    check_prediction(model, prior.task_gps, own)
    if n < 3:
        assert model.weights.tolist() == [0.25] * 3
        assert model.own_weight == 0.25
    assert float(model.weights.sum()) + model.own_weight == pytest.approx(1.0, abs=1e-14)


def test_one_task_can_have_all_the_weight() -> None:
    """Of the meta-tasks, or the test-task alone: the others drop out."""
    rng = np.random.default_rng(1)
    P, Q = rng.random((30, 2)), rng.random((8, 2))
    same, mirrored = Task(P, 5 * smooth(P, 0.0), name="same"), Task(P, -smooth(P, 0.0), name="mirror")
    task = Task(Q, smooth(Q, 0.0))
    both = RGPE().meta_fit(MetaData([same, mirrored])).condition(task)
    assert both.weights[0] > 0.9
    assert both.weights[1] == 0.0
    alone = RGPE().meta_fit(MetaData([mirrored])).condition(task)
    assert (alone.weights.tolist(), alone.own_weight) == ([0.0], 1.0)
    own = fit_plain_gp(task, standardize(task.y), kernel="se", seed=0).posterior(X)
    torch.testing.assert_close(alone.posterior(X).mean, own.mean)
    torch.testing.assert_close(alone.posterior(X).variance, own.variance)


def test_the_order_of_tasks_only_reorders_the_weights(prior: RGPEPrior) -> None:
    order, task = [2, 0, 1], task_of(9, 2)
    turned = RGPE().meta_fit(MetaData([META[i] for i in order]))
    ours, theirs = prior.condition(task, seed=2), turned.condition(task, seed=2)
    assert torch.equal(ours.weights[order], theirs.weights)
    assert ours.own_weight == theirs.own_weight
    assert ours.weights.count_nonzero() >= 2


def test_the_seed_decides_the_samples(prior: RGPEPrior) -> None:
    task = task_of(9, 2)
    own = plain(task, "se")
    first, again, other = (prior.losses(own, task, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])
    assert not torch.equal(first[1], other[1])


def test_singular_covariances_can_be_sampled() -> None:
    """Test points on past points, the least noise, the same row twice."""
    P = np.random.default_rng(0).random((40, 1))
    meta = MetaData([Task(P, np.sin(5 * P[:, 0]))])
    state = {
        "lengthscale": torch.tensor([[0.5]], dtype=torch.float64),
        "outputscale": torch.tensor([100.0], dtype=torch.float64),
        "noise": torch.tensor([1e-8], dtype=torch.float64),
    }
    prior = RGPE(samples=16).restore(meta, state)
    task = Task(np.concatenate([P[:20], P[:5]]), np.sin(5 * np.concatenate([P[:20], P[:5]])[:, 0]))
    model = prior.condition(task)
    assert float(model.weights.sum()) + model.own_weight == pytest.approx(1.0)
    losses, own = prior.losses(plain(task, "se", 1e-8), task, seed=0)
    # Only the five rows that come twice, tied in y, are in doubt.
    assert (losses == 5).all()
    assert (own < 25 * 24 / 2).all()


def test_tasks_that_lack_or_add_parameters() -> None:
    rng = np.random.default_rng(2)
    P = rng.random((12, 2))
    lacks = Task(P, P[:, 0], known=[True, False], name="lacks")
    adds = Task(P, P[:, 1], extra=rng.random((12, 1)), name="adds")
    posterior = RGPE().meta_fit(MetaData([lacks, adds, META[0]])).condition(task_of(5, 2)).posterior(X)
    assert posterior.mean.isfinite().all()


def test_settings_are_frozen_and_checked() -> None:
    with pytest.raises(FrozenInstanceError):
        RGPE().samples = 1  # type: ignore[misc]
    assert RGPE(samples=np.int64(7)) == RGPE(samples=7)  # type: ignore[arg-type]
    wrong: tuple[dict[str, Any], ...] = (
        {"kernel": "rbf"},
        {"samples": 0},
        {"samples": 2.5},
        {"samples": True},
        {"guard": "yes"},
        {"guard": 1},
        {"sqrt_beta": -1.0},
    )
    for settings in wrong:
        with pytest.raises(SettingError, match=str(next(iter(settings.values())))):
            RGPE(**settings)
