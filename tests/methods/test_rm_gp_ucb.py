"""RM-GP-UCB against gaps, weights and bounds computed by hand with NumPy loops."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

from scaml import MetaData, SettingError, Task, suggest
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import FitInput, fit_gps
from scaml.methods import GPBO, rm_gp_ucb
from scaml.methods.rm_gp_ucb import RMGP, RMGPUCB, RMGPUCBPrior
from tests.cases import meta_data, query, task_of
from tests.oracles import Array, kernel_matrix

META = meta_data((9, 14, 6), 2)
Q = query(6, 2)


def dense(kernel: str, theta: Array, X: Array, z: Array, at: Array) -> tuple[Array, Array]:
    """Posterior mean and deviation of a zero-mean GP with θ = (ℓ, o, σ²)."""
    ell, o, noise = theta[:-2], float(theta[-2]), float(theta[-1])
    K = kernel_matrix(kernel, X, X, ell, o) + noise * np.eye(len(X))
    k = kernel_matrix(kernel, X, at, ell, o)
    solved = np.linalg.solve(K, k)
    return solved.T @ z, np.sqrt(o - (k * solved).sum(0))


def fitted(kernel: KernelName, X: Array, z: Array) -> Array:
    data = FitInput("alone", torch.tensor(X), torch.tensor(z))
    return np.asarray(fit_gps([data], kernel=kernel, seed=0).theta[0].exp())


def gaps_by_hand(method: RMGPUCB, prior: RMGPUCBPrior, task: Task, meta: MetaData) -> list[list[float]]:
    """d̄ of every step and past task, over the mean deviation."""
    spread = np.mean([np.std(past.y.numpy(), ddof=1) for past in meta])
    rows = []
    for s in range(1, task.n + 1):
        X, y = task.X.numpy()[:s], task.y.numpy()[:s]
        offset, scale = y.mean(), y.std(ddof=1) if s > 1 else spread
        theta = fitted(method.kernel, X, (y - offset) / scale)
        row = []
        for m, past in enumerate(meta):
            at = np.where(past.known.numpy(), past.X.numpy(), 0.5)
            mean, deviation = dense(method.kernel, theta, X, (y - offset) / scale, at)
            values = []
            for mu, sd, target in zip(mean, deviation, past.y.numpy(), strict=True):
                upper = offset + scale * (mu + method.sqrt_beta * sd)
                lower = offset + scale * (mu - method.sqrt_beta * sd)
                values.append(max(abs(upper - target), abs(lower - target)))
            if method.gap == "mean":
                row.append(sum(values) / past.n / spread)
            else:
                gps = prior.task_gps
                noise = float(gps.noise[m].sqrt() * gps.y_std[m])
                most = noise * np.sqrt(2.0 * np.log(2.0 * past.n / method.delta))
                row.append((max(values) + most) / spread)
        rows.append(row)
    return rows


def weights_by_hand(method: RMGPUCB, gaps: list[list[float]]) -> tuple[Array, float]:
    total, nu = np.zeros(len(gaps[0])), 1.0
    for row in gaps:
        total += row
        omega = np.exp(-method.eta * (total - total.min()))
        omega /= omega.sum()
        nu *= min(method.r, sum(w * d for w, d in zip(omega, row, strict=True)) ** -method.epsilon)
    return omega, nu


# ω, ν and the acquisition function.


@pytest.mark.parametrize(
    "method",
    [
        RMGPUCB(),
        RMGPUCB(kernel="matern52", gap="maximum", delta=0.2),
        RMGPUCB(eta=0.3, epsilon=1.5, r=0.9, sqrt_beta=1.0),
        RMGPUCB(epsilon=0.0),
    ],
)
@pytest.mark.parametrize("n", [1, 6])
def test_weights_by_hand(method: RMGPUCB, n: int) -> None:
    prior, task = method.meta_fit(META), task_of(n, 2)
    model = prior.condition(task, seed=5)
    omega, nu = weights_by_hand(method, gaps_by_hand(method, prior, task, META))
    np.testing.assert_allclose(model.weights, omega, rtol=1e-8)
    np.testing.assert_allclose(model.nu, nu, rtol=1e-8)


def test_a_worked_example() -> None:
    """Two steps with gaps (1, 2) and (4, 3): ω_1 = softmax(-1, -2), ω_2 = (1/2, 1/2)."""
    prior = RMGPUCB(epsilon=0.5, r=0.7).meta_fit(MetaData([META[0], META[1]]))
    omega, nu = prior._weights(torch.tensor([[1.0, 2.0], [4.0, 3.0]], dtype=torch.float64))
    torch.testing.assert_close(omega, torch.tensor([0.5, 0.5], dtype=torch.float64))
    # 1.2689...^-1/2 = 0.888 is more than r; 3.5^-1/2 = 0.5345 is less.
    assert nu.item() == pytest.approx(0.7 * 3.5**-0.5, rel=1e-14)


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_the_acquisition_function_by_hand(kernel: KernelName, n: int) -> None:
    method = RMGPUCB(kernel=kernel, tau=2.0, sqrt_beta=1.5)
    prior, task = method.meta_fit(META), task_of(n, 2)
    model, at = prior.condition(task), Q.numpy()
    past = np.zeros(len(at))
    for m, other in enumerate(META):
        y = other.y.numpy()
        z = (y - y.mean()) / y.std(ddof=1)
        theta = fitted(kernel, other.X.numpy(), z)
        mean, deviation = dense(kernel, theta, other.X.numpy(), z, at)
        past += float(model.weights[m]) * (mean + 2.0 * deviation)
    own = np.zeros(len(at))
    if n:
        y = task.y.numpy()
        z = (y - y.mean()) / (y.std(ddof=1) if n > 1 else 1.0)
        mean, deviation = dense(kernel, fitted(kernel, task.X.numpy(), z), task.X.numpy(), z, at)
        own = mean + 1.5 * deviation
    nu = float(model.nu)
    values = prior.acquisition(model)(Q.unsqueeze(-2))
    np.testing.assert_allclose(values, nu * past + (1.0 - nu) * own, rtol=0, atol=1e-9)
    X = Q.unsqueeze(-2).requires_grad_()
    assert torch.autograd.gradcheck(prior.acquisition(model), (X,), rtol=1e-5, atol=1e-7)


def test_without_data_all_past_tasks_count_alike() -> None:
    prior = RMGPUCB().meta_fit(META)
    model = prior.condition(Task.empty(d=2))
    assert model.nu == 1.0
    torch.testing.assert_close(model.weights, torch.full((3,), 1 / 3, dtype=torch.float64))
    gps = prior.task_gps
    expected = (gps.mean(Q) + 3.0 * gps.variance(Q).sqrt()).mean(0)
    torch.testing.assert_close(prior.acquisition(model)(Q.unsqueeze(-2)), expected)


def test_many_points_and_batches_are_no_different() -> None:
    """More points than are computed at once, and batches of batches."""
    prior = RMGPUCB().meta_fit(META)
    acquisition = prior.acquisition(prior.condition(task_of(3, 2)))
    acquisition._past._at_once = 4
    X = query(5, 3, 1, 2)
    with torch.no_grad():
        single = torch.stack([acquisition(x) for x in X.view(-1, 1, 1, 2)]).view(5, 3)
        torch.testing.assert_close(acquisition(X), single)


def test_weights_below_rounding_are_left_out() -> None:
    prior = RMGPUCB().meta_fit(META)
    model = prior.condition(task_of(4, 2))
    weights = torch.tensor([1.0 - 1e-21, 1e-21, 0.0], dtype=torch.float64)
    one, none = (RMGP(model.own, model.task_gps, weights, nu) for nu in (model.nu, 0.0 * model.nu))
    assert len(prior.acquisition(one)._past._gps) == 1
    own = prior.acquisition(none)(Q.unsqueeze(-2))
    posterior = model.own.moments(Q.unsqueeze(-2))
    torch.testing.assert_close(own, posterior[0].squeeze(-1) + 3.0 * posterior[1].flatten().sqrt())


# What the weights mean.


def test_a_task_like_the_new_one_wins() -> None:
    rng = np.random.default_rng(0)
    X, T = rng.random((40, 2)), rng.random((15, 2))

    def f(P: Array, shift: float) -> Array:
        return np.asarray(np.sin(7.0 * P[:, 0] + shift) + P[:, 1])

    tasks = [Task(X, f(X, shift), name=f"{shift}") for shift in (3.0, 0.0, 1.5)]
    model = RMGPUCB().meta_fit(MetaData(tasks)).condition(Task(T, f(T, 0.0)))
    assert model.weights.argmax() == 1
    assert model.weights[1] > 0.9
    assert 0.0 < model.nu <= 0.7**15


def test_gaps_are_in_units_of_y() -> None:
    """A task on another level is far away, and a shift of all tasks alike changes nothing."""
    level = Task(META[0].X, META[0].y + 5.0, name="level")
    task = Task(META[0].X, META[0].y)
    prior = RMGPUCB().meta_fit(MetaData([META[0], level]))
    assert prior.condition(task).weights[0] > 0.99
    method, shifted = RMGPUCB(), [Task(t.X, 1e3 * t.y + 7e4, name=t.name) for t in META]
    for n in (1, 2, 5):
        task = task_of(n, 2)
        ours = method.meta_fit(META).condition(task)
        theirs = method.meta_fit(MetaData(shifted)).condition(Task(task.X, 1e3 * task.y + 7e4))
        torch.testing.assert_close(ours.weights, theirs.weights, rtol=1e-8, atol=0.0)
        torch.testing.assert_close(ours.nu, theirs.nu, rtol=1e-8, atol=0.0)


def test_tasks_of_other_parameters() -> None:
    rng = np.random.default_rng(5)
    X, extra = rng.random((8, 2)), rng.standard_normal((8, 1))
    lacking = Task(X, X[:, 0] ** 2, name="lacking", known=[True, False])
    wider = Task(X, X.sum(-1) + extra[:, 0], name="wider", extra=extra)
    meta, method, task = MetaData([META[0], lacking, wider]), RMGPUCB(), task_of(3, 2)
    prior = method.meta_fit(meta)
    model = prior.condition(task)
    omega, nu = weights_by_hand(method, gaps_by_hand(method, prior, task, meta))
    np.testing.assert_allclose(model.weights, omega, rtol=1e-8)
    np.testing.assert_allclose(model.nu, nu, rtol=1e-8)
    gps, own = prior.task_gps, model.own.moments(Q.unsqueeze(-2))
    past = (gps.mean(Q) + 3.0 * gps.variance(Q).sqrt()).T @ model.weights
    expected = model.nu * past
    expected = expected + (1.0 - model.nu) * (own[0].flatten() + 3.0 * own[1].flatten().sqrt())
    torch.testing.assert_close(prior.acquisition(model)(Q.unsqueeze(-2)), expected)


def test_past_tasks_that_are_all_constant() -> None:
    meta = MetaData([Task(META[0].X, np.full(9, level)) for level in (0.0, 4.0)])
    prior = RMGPUCB().meta_fit(meta)
    task = Task.empty(d=2)
    for y in (0.0, 0.0, 1.0):
        model = prior.condition(task)
        assert model.weights.isfinite().all()
        assert model.nu > 0
        task = task.append(suggest(prior, task), y)


# The model.


def test_the_model_is_the_plain_gp() -> None:
    task = task_of(6, 2)
    model, plain = (method.meta_fit(META).condition(task) for method in (RMGPUCB(), GPBO()))
    ours, theirs = model.posterior(Q), plain.posterior(Q)
    assert torch.equal(ours.mean, theirs.mean)
    torch.testing.assert_close(ours.variance, theirs.variance)
    X = query(3, 5, 2)
    torch.testing.assert_close(
        model.cross(X[:, :2], X[:, 2:]), model.moments(X)[1][:, :2, 2:], rtol=1e-7, atol=1e-9
    )


def test_further_observations_leave_the_past_as_it_is() -> None:
    model = RMGPUCB().meta_fit(META).condition(task_of(4, 2))
    later = model.condition_on_observations(Q[:2], torch.ones(2, 1, dtype=torch.float64))
    assert isinstance(later, RMGP)
    assert later.weights is model.weights
    assert later.nu is model.nu
    assert later.task_gps is model.task_gps
    expected = model.own.condition_on_observations(Q[:2], torch.ones(2, 1, dtype=torch.float64))
    torch.testing.assert_close(later.posterior(Q).mean, expected.posterior(Q).mean)
    assert (later.posterior(Q[:2]).variance < model.posterior(Q[:2]).variance).all()
    batch = model.condition_on_observations(Q[:1], torch.ones(3, 1, 1, dtype=torch.float64))
    assert batch.batch_shape == (3,)


# Steps that were made before.


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many GPs every call for the new task has fitted."""
    calls: list[int] = []

    def counting(inputs: list[FitInput], **settings: Any) -> Any:
        calls.append(len(inputs))
        return fit_gps(inputs, **settings)

    monkeypatch.setattr(rm_gp_ucb, "fit_gps", counting)
    return calls


def same(a: RMGP, b: RMGP) -> bool:
    numbers = [(m.weights, m.nu, m.posterior(Q).mean, m.posterior(Q).variance) for m in (a, b)]
    return all(torch.equal(x, y) for x, y in zip(*numbers, strict=True))


def test_one_more_observation_is_one_more_fit_with_the_same_bits(fits: list[int]) -> None:
    prior, task = RMGPUCB().meta_fit(META), task_of(19, 2)
    for n in range(1, 20):
        model = prior.condition(Task(task.X[:n], task.y[:n]), seed=n)
    assert fits == [1] * 19
    assert same(model, prior.condition(task))
    assert fits == [1] * 19
    fresh = pickle.loads(pickle.dumps(prior))
    assert not fresh._steps
    assert same(model, fresh.condition(task))
    assert fits == [1] * 19 + [19]


def test_another_past_of_the_task_is_another_key(fits: list[int]) -> None:
    prior, task = RMGPUCB().meta_fit(META), task_of(4, 2)
    prior.condition(task)
    y = task.y.clone()
    y[1] += 1e-9
    prior.condition(Task(task.X, y))
    prior.condition(Task(task.X.flip(0), task.y.flip(0)))
    assert fits == [4, 3, 4]


def test_few_steps_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(7, 2)
    expected = RMGPUCB().meta_fit(META).condition(task)
    monkeypatch.setattr(rm_gp_ucb, "_MOST_STEPS", 3)
    prior = RMGPUCB().meta_fit(META)
    assert same(prior.condition(task), expected)
    assert len(prior._steps) == 3
    assert same(prior.condition(task), expected)


def test_settings_are_checked() -> None:
    for wrong in (
        {"kernel": "rbf"},
        {"eta": -1.0},
        {"epsilon": float("nan")},
        {"tau": float("inf")},
        {"r": 1.1},
        {"delta": 0.0},
        {"gap": "median"},
        {"sqrt_beta": -1.0},
    ):
        name, value = next(iter(wrong.items()))
        with pytest.raises(SettingError, match=f"{name} is {value!r}; "):
            RMGPUCB(**wrong)


def test_the_acquisition_function_needs_its_model() -> None:
    prior = RMGPUCB().meta_fit(META)
    with pytest.raises(SettingError, match="The model is a ScaMLGP; RM-GP-UCB needs"):
        prior.acquisition(GPBO().meta_fit(META).condition(task_of(3, 2)))
