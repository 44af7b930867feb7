"""MTGP: BoTorch's MultiTaskGP, its loss and its posterior, and a dense GP by NumPy."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from botorch.models import MultiTaskGP
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.utils import get_parameters
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

import scaml.methods.mtgp as module
from scaml import FitError, MetaData, SavedFileError, SettingError, SpaceError, Task, TaskDataError
from scaml.gp.kernels import KernelName
from scaml.methods.mtgp import MTGP, Loss, MTGPPrior
from tests.cases import meta_data, query, task_of
from tests.oracles import Array, kernel_matrix

QUICK = MTGP(max_iterations=30, warm_iterations=15)
COLD = MTGP(max_iterations=30, warm_start=False)
META = meta_data((6, 9, 7), 2)
# linear_operator warns of torch's sparse tensors, once a process.
ignore_sparse = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")


@pytest.fixture(scope="module")
def prior() -> MTGPPrior:
    return QUICK.meta_fit(META, seed=0)


def units(y: Tensor) -> tuple[float, float]:
    return (y.mean().item(), y.std().item()) if len(y) else (0.0, 1.0)


# BoTorch's own.


@ignore_sparse
@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("n", [0, 5])
def test_the_posterior_is_botorchs(kernel: KernelName, warm: bool, n: int) -> None:
    method = MTGP(kernel=kernel, warm_start=warm, max_iterations=30, warm_iterations=15)
    prior, task = method.meta_fit(META), task_of(n, 2)
    botorch, ours = prior.multi_task_gp(task), prior.condition(task)
    offset, scale = units(task.y)
    for shape in [(4,), (3, 1), (2, 3)]:
        X = query(*shape, 2)
        posterior = botorch.posterior(X)
        mean = ours.posterior(X).mean
        assert mean.shape == (*shape, 1)
        torch.testing.assert_close(mean, offset + scale * posterior.mean, rtol=0, atol=1e-6)
        covariance = scale**2 * posterior.distribution.covariance_matrix
        torch.testing.assert_close(
            ours.posterior(X).distribution.covariance_matrix, covariance, rtol=0, atol=1e-6
        )


def test_the_model_is_botorchs_over_all_data_with_the_test_task_last(prior: MTGPPrior) -> None:
    task = task_of(4, 2)
    model = prior.multi_task_gp(task)
    assert type(model) is MultiTaskGP
    assert model._output_tasks == [3]
    X, z = model.train_inputs[0], model.train_targets
    assert X[:, -1].long().bincount().tolist()[-1] == 4
    assert sorted(X[:, -1].long().bincount().tolist()) == [4, 6, 7, 9]
    assert torch.equal(X[-4:, :2], task.X)
    for i in range(4):
        own = z[X[:, -1] == i]
        assert own.mean().item() == pytest.approx(0.0, abs=1e-12)
        assert own.std().item() == pytest.approx(1.0, abs=1e-12)
    assert type(model.covar_module.kernels[0]) is RBFKernel
    matern = MTGP(kernel="matern52", warm_start=False, max_iterations=1).meta_fit(META)
    assert type(matern.multi_task_gp(task).covar_module.kernels[0]) is MaternKernel
    low = MTGP(rank=1, warm_start=False, max_iterations=1).meta_fit(META)
    assert low.multi_task_gp(task).covar_module.kernels[1].raw_covar_factor.shape == (4, 1)
    assert model.covar_module.kernels[1].raw_covar_factor.shape == (4, 4)


@ignore_sparse
@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("n", [0, 5])
def test_the_loss_and_its_gradients_are_botorchs(kernel: KernelName, n: int) -> None:
    method = MTGP(kernel=kernel, warm_start=False, max_iterations=1)
    model = method.meta_fit(META).multi_task_gp(task_of(n, 2))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # away from the start, where the noise prior has its mode and no slope
        for parameter in model.parameters():
            parameter += 0.3 * torch.rand(parameter.shape, generator=generator, dtype=torch.float64)
    mll = ExactMarginalLogLikelihood(model.likelihood, model).train()
    theirs = get_loss_closure_with_grads(mll, get_parameters(mll, requires_grad=True))
    value, grads = theirs()
    expected = [torch.zeros(()) if grad is None else grad.clone() for grad in grads]
    ours, slopes = Loss(mll, kernel)()
    assert ours.item() == pytest.approx(value.item(), abs=1e-12)
    assert len(slopes) == len(expected)
    for a, b in zip(slopes, expected, strict=True):
        assert a is not None
        torch.testing.assert_close(a, b.expand_as(a).double(), rtol=1e-8, atol=1e-10)


def test_the_posterior_by_numpy(prior: MTGPPrior) -> None:
    """The intrinsic coregionalization model written out: B_st R(x, x')."""
    task, Z = task_of(5, 2), query(4, 2).numpy()
    model, ours = prior.multi_task_gp(task), prior.condition(task)
    data, index = model.covar_module.kernels
    ell = data.lengthscale.detach().numpy()[0]
    F = index.covar_factor.detach().numpy()
    B = F @ F.T + np.diag(index.var.detach().numpy())
    B /= B[0, 0]
    c = np.array([mean.constant.item() for mean in model.mean_module.base_means])
    inputs = model.train_inputs[0].numpy()
    X, t = inputs[:, :2], inputs[:, 2].astype(int)
    noise = model.likelihood.noise.detach().numpy()

    def k(A: Array, s: Any, C: Array, u: Any) -> Array:
        return np.asarray(B[np.ix_(s, u)] * kernel_matrix("se", A, C, ell, 1.0))

    new = np.full(4, 3)
    gain = np.linalg.solve(k(X, t, X, t) + np.diag(noise[t]), k(X, t, Z, new)).T
    mean = c[3] + gain @ (model.train_targets.numpy() - c[t])
    covariance = k(Z, new, Z, new) - gain @ k(X, t, Z, new)
    offset, scale = units(task.y)
    posterior = ours.posterior(torch.tensor(Z))
    np.testing.assert_allclose(posterior.mean.squeeze(-1), offset + scale * mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        posterior.distribution.covariance_matrix, scale**2 * covariance, rtol=0, atol=1e-9
    )
    noisy = ours.posterior(torch.tensor(Z), observation_noise=True).variance - posterior.variance
    np.testing.assert_allclose(noisy, scale**2 * noise[3], rtol=0, atol=1e-12)


@ignore_sparse
def test_further_observations_are_botorchs(prior: MTGPPrior) -> None:
    task, X, Z = task_of(5, 2), query(3, 2), query(9, 2)[5:]
    new = torch.tensor([[1.0], [2.0], [0.5]], dtype=torch.float64)
    model, ours = prior.multi_task_gp(task), prior.condition(task)
    offset, scale = units(task.y)
    index = torch.full((3, 1), 3.0, dtype=torch.float64)
    model.set_train_data(
        torch.cat([model.train_inputs[0], torch.cat([X, index], -1)]),
        torch.cat([model.train_targets, (new.squeeze(-1) - offset) / scale]),
        strict=False,
    )
    posterior, later = model.posterior(Z), ours.condition_on_observations(X, new).posterior(Z)
    torch.testing.assert_close(later.mean, offset + scale * posterior.mean, rtol=0, atol=1e-6)
    torch.testing.assert_close(later.variance, scale**2 * posterior.variance, rtol=0, atol=1e-6)


def test_batches_fantasies_and_gradients(prior: MTGPPrior) -> None:
    model, X = prior.condition(task_of(5, 2)), query(3, 7, 2)
    _, joint = model.moments(X)
    torch.testing.assert_close(model.cross(X[:, :3], X[:, 3:]), joint[:, :3, 3:], rtol=1e-8, atol=1e-11)
    fantasies = model.fantasize(query(2, 2), SobolQMCNormalSampler(torch.Size([4]), seed=0))
    assert fantasies.posterior(query(5, 1, 3, 2)).mean.shape == (5, 4, 3, 1)
    point = query(3, 1, 2).requires_grad_()
    assert torch.autograd.gradcheck(model.marginal, (point,), rtol=1e-5, atol=1e-7)


# The fit.


class Counting(Loss):
    calls = 0

    def __call__(self) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        Counting.calls += 1
        return super().__call__()


def test_iterations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The options reach SciPy: BoTorch would swallow a misspelled keyword."""
    monkeypatch.setattr(module, "Loss", Counting)

    def evaluations(method: MTGP) -> tuple[int, int]:
        Counting.calls = 0
        prior = method.meta_fit(META)
        learned = Counting.calls
        prior.condition(task_of(4, 2))
        return learned, Counting.calls - learned

    assert evaluations(MTGP(warm_start=False, max_iterations=1))[0] == 0
    assert 0 < evaluations(MTGP(warm_start=False, max_iterations=1))[1] < 10
    assert evaluations(MTGP(warm_start=False, max_iterations=40))[1] > 40
    learned, step = evaluations(MTGP(max_iterations=40, warm_iterations=1))
    assert learned > 40
    assert 0 < step < 10


def test_without_observations_the_warm_start_is_the_model(
    monkeypatch: pytest.MonkeyPatch, prior: MTGPPrior
) -> None:
    monkeypatch.setattr(module, "Loss", Counting)
    Counting.calls = 0
    model = prior.multi_task_gp(Task.empty(d=2))
    assert Counting.calls == 0
    for name, parameter in model.named_parameters():
        if not name.endswith("raw_covar_factor"):
            assert torch.equal(parameter, prior.start[name])
    factor = model.covar_module.kernels[1].covar_factor
    torch.testing.assert_close(factor[-1], factor[:-1].mean(0))


def test_the_fit_raises_the_likelihood(prior: MTGPPrior) -> None:
    task = task_of(5, 2)

    def loss(iterations: int) -> float:
        method = MTGP(warm_iterations=iterations)
        model = method.restore(META, prior.state()).multi_task_gp(task)
        return Loss(ExactMarginalLogLikelihood(model.likelihood, model), "se")()[0].item()

    assert loss(40) < loss(1) - 0.01


def test_a_task_of_the_past_is_recognized() -> None:
    """Few values, but many of a task like it: the prediction between them is the past's."""
    meta = meta_data((20, 20), 2)
    seen = Task(meta[1].X[:4], meta[1].y[:4])
    model = MTGP(max_iterations=100).meta_fit(meta).condition(seen)
    with torch.no_grad():
        mean = model.posterior(meta[1].X[4:].unsqueeze(-2)).mean.flatten()
    assert torch.stack([mean, meta[1].y[4:]]).corrcoef()[0, 1] > 0.95


@pytest.mark.parametrize("method", [QUICK, COLD])
def test_the_order_of_tasks_changes_no_bit(method: MTGP) -> None:
    turned = MetaData([META[i] for i in (2, 0, 1)])
    task, X = task_of(4, 2), query(5, 2)
    means = [method.meta_fit(m).condition(task).posterior(X).mean for m in (META, turned)]
    assert torch.equal(means[0], means[1])


def test_the_same_points_in_every_task() -> None:
    """Then y decides the indices, in whatever units."""
    X = query(6, 2)
    values = [np.sin(5.0 * X[:, 0].numpy() + m) for m in range(3)]

    def mean(order: tuple[int, ...], scale: float) -> Tensor:
        meta = MetaData([Task(X, 7.0 + scale * values[m], name=f"t{m}") for m in order])
        task = Task(X[:3], 7.0 + scale * values[0][:3])
        values_of_y: Tensor = COLD.meta_fit(meta).condition(task).posterior(query(4, 2)).mean
        return (values_of_y - 7.0) / scale

    assert torch.equal(mean((0, 1, 2), 1.0), mean((2, 0, 1), 1.0))
    torch.testing.assert_close(mean((0, 1, 2), 1.0), mean((2, 0, 1), 1e3), rtol=0, atol=1e-4)


def test_a_matrix_that_is_none_makes_botorch_start_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    class Once(Loss):
        failures = 1

        def __call__(self) -> tuple[Tensor, tuple[Tensor | None, ...]]:
            if Once.failures > 0:
                Once.failures -= 1
                raise NotPSDError("not positive definite")
            return super().__call__()

    monkeypatch.setattr(module, "Loss", Once)
    prior, task = COLD.meta_fit(META), task_of(4, 2)
    before = torch.get_rng_state()
    first = prior.condition(task).posterior(query(3, 2)).mean
    Once.failures = 1
    assert torch.equal(prior.condition(task).posterior(query(3, 2)).mean, first)
    assert torch.equal(torch.get_rng_state(), before)
    Once.failures = 10**6
    with pytest.raises(FitError, match="could not be fitted"):
        prior.condition(task)


def test_a_loss_that_is_no_number_says_so(prior: MTGPPrior) -> None:
    model = prior.multi_task_gp(task_of(4, 2))
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    model.likelihood.noise_covar.raw_noise.data.fill_(math.nan)
    with pytest.raises(NotPSDError, match="all tasks together"):
        Loss(mll, "se")()


def test_no_warning_leaks() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # A single iteration, and a search that goes on until no digit is left to gain.
        MTGP(max_iterations=1, warm_iterations=1).meta_fit(META).condition(task_of(3, 2))
        MTGP(max_iterations=500, rank=1).meta_fit(MetaData([META[0]])).condition(task_of(2, 2))
    assert not caught


# What is refused.


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "linear"}, "kernel is 'linear'"),
        ({"rank": 0}, "rank is 0"),
        ({"max_points": 0}, "max_points is 0"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"warm_iterations": 1.5}, "warm_iterations is 1.5"),
        ({"warm_start": 1}, "warm_start is 1"),
        ({"sqrt_beta": math.nan}, "sqrt_beta is nan"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        MTGP(**settings)


def test_more_points_than_allowed_are_refused() -> None:
    with pytest.raises(TaskDataError, match=r"The past tasks have 22 points .* 21 .* cube"):
        MTGP(max_points=21).meta_fit(META)
    prior = MTGP(max_points=24, warm_start=False, max_iterations=1).meta_fit(META)
    prior.condition(task_of(2, 2))
    with pytest.raises(TaskDataError, match=r"All tasks together have 25 points .* 24 .* cube"):
        prior.condition(task_of(3, 2))


def test_a_rank_above_the_number_of_tasks_is_refused() -> None:
    MTGP(rank=4, warm_start=False).meta_fit(META)
    with pytest.raises(SettingError, match="rank is 5 but there are 4 tasks"):
        MTGP(rank=5).meta_fit(META)


def test_tasks_that_lack_parameters_are_refused() -> None:
    partial = Task(query(5, 2), range(5), name="old", known=[True, False])
    with pytest.raises(SpaceError, match="Task 'old' lacks parameters"):
        QUICK.meta_fit(MetaData([META[0], partial]))


def test_states_are_checked(prior: MTGPPrior) -> None:
    name = "covar_module.kernels.1.raw_covar_factor"
    assert COLD.meta_fit(META).state() == {}
    for wrong in (None, torch.zeros(3, 3, dtype=torch.float64), torch.zeros(4, 4)):
        state = {
            key: tensor for key, tensor in (prior.state() | {name: wrong}).items() if tensor is not None
        }
        with pytest.raises(SavedFileError, match=r"raw_covar_factor is not of shape \(4, 4\)"):
            QUICK.restore(META, state)
    endless = prior.state() | {name: torch.full((4, 4), math.inf, dtype=torch.float64)}
    with pytest.raises(SavedFileError, match="raw_covar_factor is not finite"):
        QUICK.restore(META, endless)
