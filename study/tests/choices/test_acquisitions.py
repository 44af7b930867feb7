from __future__ import annotations

import math
import pickle
from typing import Any, get_args

import numpy as np
import pytest
import torch
from botorch.utils.sampling import manual_seed
from scipy.stats import norm
from torch import Tensor

from scaml import MetaData, ScaML, ScaMLGP, SettingError, Task, suggest
from scaml.gp.kernels import KernelName
from scaml.gp.units import Units
from scaml.search.ucb import UpperConfidenceBound
from study.choices import acquisitions
from study.choices.acquisitions import Acquiring, Path, RuleName, Standardized
from tests.brute_force import mean_improvement
from tests.cases import meta_data, pair, query, task_of
from tests.oracles import kernel_matrix

META, TASK = meta_data((9, 8, 7), 2), task_of(5, 2)
EMPTY, TABLE = Task.empty(2), query(60, 2)
NAMES: tuple[RuleName, ...] = get_args(RuleName)
each_name = pytest.mark.parametrize("name", NAMES)


def at(X: Tensor, function: Any) -> Tensor:
    with torch.no_grad():
        values: Tensor = function(X.unsqueeze(-2))
    return values


# Which function it is.


@pytest.mark.parametrize("n", [0, 5])
def test_the_schedule_grows_with_the_data(n: int) -> None:
    prior = Acquiring(rule="schedule").meta_fit(META, seed=0)
    function = prior.acquisition(prior.condition(task_of(n, 2), seed=0))
    assert isinstance(function, UpperConfidenceBound)
    assert math.isclose(float(function.beta), 0.2 * 2 * math.log(2 * (n + 1)), rel_tol=1e-6)


@pytest.mark.parametrize("name", ["ucb", "logei", "lognei"])
def test_without_data_there_is_ucb(name: RuleName) -> None:
    prior = Acquiring(rule=name, sqrt_beta=1.5).meta_fit(META, seed=0)
    function = prior.acquisition(prior.condition(EMPTY, seed=0))
    assert isinstance(function, UpperConfidenceBound)
    assert float(function.beta) == 1.5**2


@each_name
def test_the_first_suggestion_may_maximize_the_mean(name: RuleName) -> None:
    prior = Acquiring(rule=name, first="mean", sqrt_beta=1.5).meta_fit(META, seed=0)
    model = prior.condition(EMPTY, seed=0)
    mean = model.posterior(TABLE).mean.squeeze(-1)
    torch.testing.assert_close(at(TABLE, prior.acquisition(model)), mean, rtol=1e-10, atol=1e-10)
    x = suggest(prior, EMPTY, candidates=TABLE, seed=0)
    assert torch.equal(x[0], TABLE[mean.argmax()])
    later = prior.acquisition(prior.condition(TASK, seed=0))
    usual = Acquiring(rule=name, sqrt_beta=1.5).meta_fit(META, seed=0)
    assert type(later) is type(usual.acquisition(usual.condition(TASK, seed=0)))
    if name == "ucb":
        assert float(later.beta) == 1.5**2


def test_expected_improvement_is_over_the_best_posterior_mean() -> None:
    prior = Acquiring(rule="logei").meta_fit(META, seed=0)
    model = prior.condition(TASK, seed=0)
    best = model.posterior(TASK.X).mean.max().item()
    assert best != TASK.y.max().item()
    posterior = model.posterior(TABLE.unsqueeze(-2))
    mean, deviation = posterior.mean.flatten().numpy(), posterior.variance.flatten().sqrt().numpy()
    u = (mean - best) / deviation
    improvement = deviation * (norm.pdf(u) + u * norm.cdf(u))
    likely = improvement > 1e-8  # of the others, the textbook's formula keeps no digit
    assert likely.sum() > 5
    found = at(TABLE, prior.acquisition(model)).exp().numpy() * model.y_scale.item()
    np.testing.assert_allclose(found[likely], improvement[likely], rtol=1e-5)


def test_noisy_expected_improvement_is_over_the_unknown_best_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acquisitions, "_SAMPLES", 4096)
    noisy = pair("se", (9, 8), 5, 2, 0).model
    prior = Acquiring(rule="lognei").meta_fit(META, seed=0)
    with manual_seed(0):
        function = prior.acquisition(noisy)
    new, likely = query(6, 2), 0
    found = (at(new, function).exp() * noisy.y_scale).tolist()
    for x, value in zip(new, found, strict=True):
        expected, error = mean_improvement(noisy, x, 100_000)
        assert abs(value - expected) < 5 * error + 0.02 * expected + 1e-9
        likely += expected > 0.01
    assert likely > 1


# The model that BoTorch's functions see.


def test_standardized_moments_are_those_of_the_model() -> None:
    model = pair("matern52", (9, 8), 5, 2, 1, level=0.5).model
    standardized, X = Standardized(model), query(7, 1, 2)
    whole = torch.cat([model.train_inputs[0].expand(7, -1, -1), X], dim=-2)
    for points in (X, query(7, 3, 2), whole, whole[:, :5]):
        expected = model.posterior(points)
        found = standardized.posterior(points)
        mean = model.y_offset + model.y_scale * found.mean
        covariance = found.distribution.covariance_matrix * model.y_scale.square()
        torch.testing.assert_close(mean, expected.mean, rtol=1e-9, atol=1e-9)
        close = 1e-9 if points.shape[-2] in (1, 3) else 1e-7
        torch.testing.assert_close(
            covariance, expected.distribution.covariance_matrix, rtol=1e-9, atol=close
        )
    torch.testing.assert_close(standardized.cross(X, X), model.cross(X, X))


# Paths.


def foreign() -> ScaMLGP:
    """A fitted model whose past tasks lack columns of the space or have others."""
    rng = np.random.default_rng(0)
    X = [rng.random((n, 2)) for n in (9, 8, 7)]
    meta = MetaData(
        [
            Task(X[0], X[0].sum(-1)),
            Task(X[1], np.sin(4.0 * X[1][:, 0]), known=[True, False]),
            Task(X[2], X[2][:, 1] ** 2, extra=rng.random((7, 1)) - 0.5),
        ]
    )
    return ScaML(weights="signed").meta_fit(meta, seed=0).condition(task_of(3, 2), seed=0)


def with_a_weight_of_0() -> ScaMLGP:
    model = pair("se", (7, 5, 6), 4, 2, 3, level=0.7).model
    model.weights[1] = 0.0
    units = Units(model.y_offset, model.y_scale)
    return ScaMLGP(model.task_gps, task_of(4, 2), units, model.hyperparameters)


MODELS = {
    "se": lambda: pair("se", (7, 5), 4, 2, 0).model,
    "matern52": lambda: pair("matern52", (7, 5), 4, 2, 1, signed=True, level=0.7).model,
    "no data": lambda: pair("se", (7, 5), 0, 2, 2, level=0.3).model,
    "a weight of 0": with_a_weight_of_0,
    "foreign tasks": foreign,
}


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_features_have_the_covariance_of_the_kernels(
    kernel: KernelName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acquisitions, "_FREQUENCIES", 200_000)
    case, X = pair(kernel, (7, 5), 0, 2, 0), query(6, 2)
    theta = case.model.hyperparameters
    generator = torch.Generator().manual_seed(0)
    frequency, amplitude = acquisitions._prior_paths(case.task_gps, theta, generator)
    for gp, omega, (cosine, sine) in zip(
        [*case.joint.meta, case.joint.residual], frequency, amplitude.transpose(0, 1), strict=True
    ):
        phase = X @ omega.T
        found = (phase.cos() * cosine) @ (phase.cos() * cosine).T
        found += (phase.sin() * sine) @ (phase.sin() * sine).T
        expected = kernel_matrix(kernel, X.numpy(), X.numpy(), gp.lengthscale, gp.outputscale)
        np.testing.assert_allclose(found.numpy(), expected, atol=0.015 * gp.outputscale)


@pytest.mark.parametrize("kind", MODELS)
def test_paths_have_the_moments_of_the_posterior(kind: str) -> None:
    model, n = MODELS[kind](), 1000
    X = torch.cat([query(3, 2), model.train_inputs[0][:2]])  # at data, what is left is their noise
    paths = torch.stack([at(X, Path(model, seed=seed)) for seed in range(n)]).numpy()
    posterior = model.posterior(X)
    mean = posterior.mean.flatten().numpy()
    covariance = posterior.distribution.covariance_matrix.numpy()
    deviation = np.sqrt(np.diag(covariance))
    z = (paths - mean) / deviation
    np.testing.assert_allclose(z.mean(0), 0.0, atol=4.5 / math.sqrt(n))
    found, correlation = z.T @ z / n, covariance / np.outer(deviation, deviation)
    np.testing.assert_allclose(found, correlation, atol=5.0 * math.sqrt(2.0 / n))


def test_a_path_is_one_smooth_function_of_its_seed() -> None:
    model, X = pair("matern52", (7, 5), 4, 2, 1, level=0.7).model, query(6, 2)
    path = Path(model, seed=5)
    values = at(X, path)
    assert torch.equal(values, at(X, path))
    assert torch.equal(values, at(X, Path(model, seed=5)))
    torch.testing.assert_close(torch.cat([at(x[None], path) for x in X]), values)
    assert (values - at(X, Path(model, seed=6))).abs().min() > 0
    X.requires_grad_()
    (slope,) = torch.autograd.grad(path(X.unsqueeze(-2)).sum(), X)
    for i in range(2):
        step = 1e-6 * torch.eye(2, dtype=torch.float64)[i]
        difference = (at(X + step, path) - at(X - step, path)) / 2e-6
        torch.testing.assert_close(slope[:, i], difference, rtol=1e-5, atol=1e-6)


def test_every_seed_and_every_point_of_a_batch_has_its_own_path() -> None:
    prior = Acquiring(rule="thompson").meta_fit(META, seed=0)
    model = prior.condition(TASK, seed=0)
    with manual_seed(0):
        paths = [prior.acquisition(model), prior.acquisition(model)]
    with manual_seed(1):
        paths.append(prior.acquisition(model))
    values = torch.stack([at(TABLE, path) for path in paths])
    assert (torch.pdist(values) > 1e-3 * values.std()).all()
    with manual_seed(0):
        assert torch.equal(at(TABLE, prior.acquisition(model)), values[0])


# In a loop.


@each_name
def test_suggestions_on_the_cube_and_on_a_table(name: RuleName) -> None:
    prior = Acquiring(rule=name).meta_fit(META, seed=0)
    for task in (EMPTY, task_of(1, 2), TASK):
        x = suggest(prior, task, q=2, seed=3)
        assert x.shape == (2, 2)
        assert ((x >= 0) & (x <= 1)).all()
        assert torch.equal(x, suggest(prior, task, q=2, seed=3))
        rows = suggest(prior, task, q=2, seed=3, candidates=TABLE)
        assert all((TABLE == row).all(-1).any() for row in rows)
        assert not torch.equal(rows[0], rows[1])
    pending = suggest(prior, TASK, seed=3, candidates=TABLE, pending=rows)
    assert not (rows == pending).all(-1).any()


@each_name
def test_the_suggested_row_is_the_maximizer(name: RuleName) -> None:
    prior = Acquiring(rule=name).meta_fit(META, seed=0)
    x = suggest(prior, TASK, seed=3, candidates=TABLE)
    model = prior.condition(TASK, seed=3)
    with manual_seed(3):
        values = at(TABLE, prior.acquisition(model))
    assert torch.equal(x[0], TABLE[values.argmax()])
    assert at(suggest(prior, TASK, seed=3), _same(prior, model)) >= values.max() - 1e-9


def _same(prior: Any, model: ScaMLGP) -> Any:
    with manual_seed(3):
        return prior.acquisition(model)


@each_name
def test_the_unit_of_y_does_not_matter(name: RuleName) -> None:
    tiny = META.with_values([1e-8 * task.y for task in META])
    method = Acquiring(rule=name)
    usual = suggest(method.meta_fit(META, seed=0), TASK, seed=1, candidates=TABLE)
    other = method.meta_fit(tiny, seed=0)
    assert torch.equal(usual, suggest(other, TASK.with_values(1e-8 * TASK.y), seed=1, candidates=TABLE))


def test_repeated_points_do_no_harm() -> None:
    prior = Acquiring(rule="lognei").meta_fit(META, seed=0)
    task = Task(torch.cat([TASK.X, TASK.X]), torch.cat([TASK.y, TASK.y + 0.01]))
    assert suggest(prior, task, seed=0).isfinite().all()


def test_priors_can_be_pickled() -> None:
    prior = Acquiring(rule="thompson").meta_fit(META, seed=0)
    again = pickle.loads(pickle.dumps(prior))
    assert torch.equal(suggest(prior, TASK, seed=0), suggest(again, TASK, seed=0))


def test_other_settings_are_refused() -> None:
    names = "'ucb', 'schedule', 'logei', 'lognei', 'thompson'"
    with pytest.raises(SettingError, match=rf"^rule is 'ei'; choose one of {names}\.$"):
        Acquiring(rule="ei")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"^acquisition is 'lognei'; choose 'ucb', and set rule\.$"):
        Acquiring(acquisition="lognei")
    with pytest.raises(SettingError, match=r"^first is 'random'; choose 'ucb' or 'mean'\.$"):
        Acquiring(first="random")  # type: ignore[arg-type]
