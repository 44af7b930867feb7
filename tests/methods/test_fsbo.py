"""FSBO against GPyTorch's exact GP on the network's features."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import pytest
import torch
from torch import Tensor

from scaml import FitError, MetaData, SavedFileError, SettingError, SpaceError, Task
from scaml.ask import suggest
from scaml.gp.units import Units
from scaml.methods import fsbo
from scaml.methods.fsbo import FSBO, DeepKernel, FSBOModel
from scaml.methods.shared.network_tasks import Standardized, settled
from tests.cases import meta_data, query, task_of

QUICK = FSBO(iterations=40, epochs=10)
META = meta_data((12, 9, 15), 2)


class Exact(gpytorch.models.ExactGP):
    """GPyTorch's GP on given features."""

    def __init__(self, X: Tensor, y: Tensor, kernel: DeepKernel) -> None:
        constraint = gpytorch.constraints.Positive()
        super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood(noise_constraint=constraint))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        self.double()
        self.covar_module.base_kernel.lengthscale = kernel.log_lengthscale.exp()
        self.covar_module.outputscale = kernel.log_outputscale.exp()
        self.likelihood.noise = kernel.noise

    def forward(self, X: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


def kernel_of(lengthscale: float, outputscale: float, noise: float) -> DeepKernel:
    """Any deep kernel."""
    kernel = DeepKernel(2, (16, 9), 3).requires_grad_(False)
    for name, value in (("lengthscale", lengthscale), ("outputscale", outputscale), ("noise", noise)):
        getattr(kernel, f"log_{name}").fill_(math.log(value))
    return kernel


def features_by_hand(kernel: DeepKernel, X: Tensor) -> Tensor:
    """Two layers of ReLU."""
    W, b, V, c = kernel.network.parameters()
    return ((X @ W.T + b).clamp_min(0.0) @ V.T + c).clamp_min(0.0)


KERNELS = [(1.0, 1.0, 1e-2), (0.2, 3.0, 1e-3), (0.05, 0.4, 0.3)]


@pytest.mark.parametrize("parameters", KERNELS)
def test_likelihood_is_gpytorchs(parameters: tuple[float, float, float]) -> None:
    kernel, X = kernel_of(*parameters), query(20, 2)
    z = torch.sin(5.0 * X[:, 0]) + X[:, 1]
    model = Exact(features_by_hand(kernel, X), z, kernel).train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    expected = -mll(model(*model.train_inputs), z)
    torch.testing.assert_close(kernel.loss(X, z, "t"), expected, rtol=1e-8, atol=1e-9)
    # The best scale, by brute force.
    K = np.asarray(model.likelihood(model(*model.train_inputs)).covariance_matrix.detach())
    quadratic, (_, log_det) = z.numpy() @ np.linalg.solve(K, z.numpy()), np.linalg.slogdet(K)
    s2 = np.geomspace(1e-4, 1e4, 200001)
    every = 0.5 * (quadratic / s2 + log_det + 20 * np.log(s2) + 20 * np.log(2.0 * np.pi)) / 20
    assert kernel.loss_of_any_scale(X, z, "t").item() == pytest.approx(every.min(), abs=1e-7)


@pytest.mark.parametrize("parameters", KERNELS)
@pytest.mark.parametrize("n", [1, 3, 20])
def test_posterior_is_gpytorchs(parameters: tuple[float, float, float], n: int) -> None:
    kernel, task, X = kernel_of(*parameters), task_of(n, 2), query(7, 2)
    offset, scale = torch.tensor([0.7, 2.5], dtype=torch.float64)
    z = (task.y - offset) / scale
    ours = FSBOModel(kernel, task.X, z, Units(offset, scale))
    model = Exact(features_by_hand(kernel, task.X), z, kernel).eval()
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        theirs = model(features_by_hand(kernel, X))
        covariance = theirs.covariance_matrix
    posterior = ours.posterior(X)
    torch.testing.assert_close(
        posterior.mean.squeeze(-1), offset + scale * theirs.mean, rtol=1e-7, atol=1e-8
    )
    torch.testing.assert_close(
        posterior.distribution.covariance_matrix, scale**2 * covariance, rtol=1e-6, atol=1e-7
    )
    torch.testing.assert_close(ours.cross(X[:3], X[3:]), covariance[:3, 3:], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(ours.mean(X), theirs.mean, rtol=1e-7, atol=1e-8)
    single = ours.posterior(X.unsqueeze(-2))
    torch.testing.assert_close(
        single.variance.flatten(), posterior.variance.flatten(), rtol=1e-9, atol=0
    )


def test_without_data_it_is_the_prior() -> None:
    prior = QUICK.meta_fit(META)
    posterior = prior.condition(Task.empty(d=2)).posterior(query(50, 1, 2))
    assert (posterior.mean == 0).all()
    assert (posterior.variance == prior.kernel.log_outputscale.exp()).all()


def test_slopes_by_finite_differences() -> None:
    model = QUICK.meta_fit(META).condition(task_of(5, 2))

    def moments(X: Tensor) -> tuple[Tensor, Tensor]:
        posterior = model.posterior(X)
        return posterior.mean, posterior.variance

    assert torch.autograd.gradcheck(moments, (query(3, 2).requires_grad_(),), atol=1e-5)
    assert not any(p.requires_grad for p in model.parameters())


def test_tasks_and_scales_are_drawn_and_batches_are_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task drawn gets its steps, and each batch is rows of it on the scale of l and u."""
    seen: list[tuple[str, Tensor, Tensor]] = []
    loss = DeepKernel.loss

    def spied(self: DeepKernel, X: Tensor, z: Tensor, whose: str) -> Tensor:
        seen.append((whose.split(" at step")[0], X, z))
        return loss(self, X, z, whose)

    monkeypatch.setattr(DeepKernel, "loss", spied)
    method = FSBO(iterations=60, steps=3, batch=8)
    method.meta_fit(META, seed=1)
    assert len(seen) == 180
    tasks = {f"task {task.name!r}": task for task in settled(META)[0]}
    z = torch.cat([task.z for task in tasks.values()])
    scales = []
    for i in range(0, 180, 3):
        assert len({whose for whose, _, _ in seen[i : i + 3]}) == 1
        pairs = []
        for whose, X, scaled in seen[i : i + 3]:
            task = tasks[whose]
            assert len(X) == 8
            assert len(X.unique(dim=0)) == 8
            rows = [int((task.X == x).all(-1).nonzero()) for x in X]
            slope, level = np.polyfit(task.z[rows].numpy(), scaled.numpy(), 1)
            pairs.append((-level / slope, (1.0 - level) / slope))  # where it is 0 and where it is 1
        np.testing.assert_allclose(pairs, [pairs[0]] * 3, atol=1e-6)
        scales.append(pairs[0])
    lower, upper = np.array(scales).T
    width = (upper - lower) / float(z.max() - z.min())
    assert lower.min() >= z.min() - 1e-6
    assert upper.max() <= z.max() + 1e-6
    assert width.min() >= 0.1 - 1e-9
    assert width.min() < 0.25
    assert width.max() > 0.6
    # One of three tasks is held out, the two others take turns.
    assert len({whose for whose, _, _ in seen}) == 2


def test_pairs_are_uniform_among_those_far_enough_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    pairs = np.array([fsbo._pair(-2.0, 3.0, generator) for _ in range(4000)])
    rng = np.random.default_rng(0)
    drawn = np.sort(rng.uniform(-2.0, 3.0, (40000, 2)), axis=1)
    drawn = drawn[drawn[:, 1] - drawn[:, 0] >= 0.5]
    np.testing.assert_allclose(pairs.mean(0), drawn.mean(0), atol=0.06)
    np.testing.assert_allclose(pairs.std(0), drawn.std(0), atol=0.06)
    assert fsbo._pair(0.0, 0.0, generator) == (0.0, 1.0)


def test_what_is_held_out() -> None:
    def split(*sizes: int) -> tuple[list[int], list[int]]:
        data = [Standardized(f"t{i}", query(n, 2), query(n) * 4.0) for i, n in enumerate(sizes)]
        seen, held_out = fsbo._split(data, torch.Generator().manual_seed(0))
        names = [task.name for task in (*seen, *held_out)]
        assert len(sizes) == 1 or sorted(names) == sorted(task.name for task in data)
        return [len(task.z) for task in seen], [len(task.z) for task in held_out]

    assert [len(part) for part in split(*[5] * 25)] == [23, 2]
    assert [len(part) for part in split(4, 4)] == [1, 1]
    assert split(20) == ([16], [4])
    assert split(9) == ([9], [])
    flat = Standardized("flat", query(6, 2), torch.zeros(6, dtype=torch.float64))
    some = Standardized("some", query(6, 2), query(6) * 4.0)
    seen, held_out = fsbo._split([flat, some], torch.Generator())
    assert [task.name for task in seen] == ["some"]
    assert not held_out


def test_the_kernel_ends_where_the_held_out_task_was_likeliest(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[tuple[float, Tensor]] = []
    look = DeepKernel.loss_of_any_scale

    def spied(self: DeepKernel, X: Tensor, z: Tensor, whose: str) -> Tensor:
        value = look(self, X, z, whose)
        looks.append((value.item(), self.log_noise.detach().clone()))
        return value

    monkeypatch.setattr(DeepKernel, "loss_of_any_scale", spied)
    told: list[tuple[int, int]] = []
    method = FSBO(iterations=100, rate=0.02, widths=(16, 16))
    prior = method.meta_fit(META, progress=lambda done, total: told.append((done, total)))
    assert len(looks) == 5
    assert torch.equal(prior.kernel.log_noise, min(looks, key=lambda item: item[0])[1])
    assert told[-1] == (500, 500)


def test_fine_tuning_is_adam_on_a_copy() -> None:
    prior = FSBO(iterations=10, epochs=4).meta_fit(META)
    before = {name: tensor.clone() for name, tensor in prior.kernel.state_dict().items()}
    task = task_of(7, 2)
    with torch.no_grad():  # a caller's mode is no reason not to learn
        tuned = prior.condition(task).kernel
    by_hand = DeepKernel(2, (128, 128), 0)
    by_hand.load_state_dict(before)
    optimizer = torch.optim.Adam(by_hand.parameters(), lr=1e-3)
    z = (task.y - task.y.mean()) / task.y.std()
    for _ in range(4):
        optimizer.zero_grad()
        a = by_hand.network(task.X) / by_hand.log_lengthscale.exp()
        R = torch.exp(-0.5 * (a[:, None] - a[None]).square().sum(-1))
        K = by_hand.log_outputscale.exp() * R + (1e-5 + by_hand.log_noise.exp()) * torch.eye(7)
        normal = torch.distributions.MultivariateNormal(torch.zeros_like(z), K)
        (-normal.log_prob(z) / 7).backward()
        optimizer.step()
    for name, tensor in tuned.state_dict().items():
        torch.testing.assert_close(tensor, by_hand.state_dict()[name], rtol=1e-6, atol=1e-6)
        assert torch.equal(prior.kernel.state_dict()[name], before[name])
    assert not torch.equal(tuned.log_noise, before["log_noise"])
    untuned = FSBO(iterations=10, epochs=0).meta_fit(META).condition(task)
    assert torch.equal(untuned.kernel.log_noise, before["log_noise"])


def test_more_points_than_a_batch_are_fine_tuned_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = FSBO(iterations=5, epochs=3, batch=8).meta_fit(META)
    sizes: list[int] = []
    loss = DeepKernel.loss

    def spied(self: DeepKernel, X: Tensor, z: Tensor, whose: str) -> Tensor:
        sizes.append(len(X))
        return loss(self, X, z, whose)

    monkeypatch.setattr(DeepKernel, "loss", spied)
    prior.condition(task_of(20, 2))
    assert len(sizes) == 9
    assert max(sizes) <= 8
    assert all(sum(sizes[i : i + 3]) == 20 for i in (0, 3, 6))


def test_training_on_the_past_helps() -> None:
    meta, new = meta_data((40,) * 6, 2), task_of(60, 2)
    z = (new.y - new.y.mean()) / new.y.std()
    task = Task(new.X[:8], new.y[:8])
    losses, errors = [], []
    for method in (FSBO(iterations=150), FSBO(iterations=1)):
        prior = method.meta_fit(meta)
        losses.append(prior.kernel.loss_of_any_scale(new.X, z, "new").item())
        mean = prior.condition(task).posterior(new.X).mean.squeeze(-1)
        errors.append(float((mean - new.y).square().mean()))
    assert losses[0] < losses[1] - 0.3
    assert errors[0] < errors[1]


def test_initial_points_come_first() -> None:
    method = FSBO(iterations=40, epochs=2, initial=3)
    prior = method.meta_fit(META, seed=4)
    assert prior.initial.shape == (3, 2)
    assert torch.equal(prior.initial, prior.initial_points(3, seed=4))
    task = Task.empty(d=2)
    for point in prior.initial:
        x = suggest(prior, task, seed=0)
        torch.testing.assert_close(x[0], point, rtol=0, atol=1e-5)
        task = task.append(x, 1.0)
    assert type(prior.condition(task)) is FSBOModel
    both = suggest(prior, Task.empty(d=2), q=4, seed=0)
    torch.testing.assert_close(both[:3], prior.initial, rtol=0, atol=1e-5)
    pending = suggest(prior, Task.empty(d=2), pending=prior.initial[:1], seed=0)
    torch.testing.assert_close(pending, prior.initial[1:2], rtol=0, atol=1e-5)
    table = query(30, 2)
    row = suggest(prior, Task.empty(d=2), candidates=table, seed=0)
    assert torch.equal(row[0], table[(table - prior.initial[0]).norm(dim=-1).argmin()])


def test_initial_points_suit_every_past_task() -> None:
    """Tasks with two optima far apart: two points find both, better than any random two."""
    X = query(30, 2)
    corners = torch.tensor([[0.1, 0.1], [0.9, 0.8]], dtype=torch.float64)
    tasks = [Task(X, -(X - corner).norm(dim=-1), name=f"t{i}") for i, corner in enumerate(corners)]
    prior = FSBO(iterations=100).meta_fit(MetaData(tasks))
    points = prior.initial_points(2, seed=0)
    distance = (points[:, None] - corners).norm(dim=-1)
    assert distance.amin(0).max() < 0.25
    assert prior.initial_points(0).shape == (0, 2)
    assert FSBO(iterations=1).meta_fit(META).initial.shape == (0, 2)


def test_units_and_order_change_no_bit_of_the_kernel() -> None:
    other = [Task(t.X, 1e3 * t.y - 50.0, name=t.name) for t in META]
    ours, theirs = (QUICK.meta_fit(m).state() for m in (META, MetaData(other[::-1])))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_kernel_that_is_no_number_names_task_and_step(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.no_grad():
        broken = DeepKernel(2, (4,), 0)
        broken.log_noise.fill_(math.nan)
    monkeypatch.setattr(fsbo, "DeepKernel", lambda *args: broken)
    with pytest.raises(FitError, match=r"task 't\d' at step 0"):
        QUICK.meta_fit(META)


def test_settings_are_checked() -> None:
    for name, value in (
        ("widths", ()),
        ("iterations", 0),
        ("steps", 0),
        ("batch", 1),
        ("epochs", -1),
        ("initial", 1.5),
        ("rate", 0.0),
        ("rate", math.nan),
        ("rate", True),
        ("sqrt_beta", -1.0),
    ):
        with pytest.raises(SettingError, match=name):
            FSBO(**{name: value})  # type: ignore[arg-type]
    assert FSBO(widths=[7, 5]) == FSBO(widths=(7, 5))  # type: ignore[arg-type]
    partly = Task(query(5, 2), query(5), known=[True, False], name="partly")
    with pytest.raises(SpaceError, match="'partly' lacks parameters"):
        QUICK.meta_fit(MetaData([partly]))


def test_a_damaged_state_is_refused() -> None:
    method = FSBO(iterations=1, initial=1)
    state = method.meta_fit(META).state()
    for name, value in (
        ("initial", torch.zeros(2, 2, dtype=torch.float64)),
        ("initial", torch.full((1, 2), math.nan, dtype=torch.float64)),
        ("log_noise", torch.full((), math.nan, dtype=torch.float64)),
        ("network.0.weight", torch.zeros(3, 3, dtype=torch.float64)),
    ):
        with pytest.raises(SavedFileError, match=name):
            method.restore(META, {**state, name: value})
