from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml import ScaML, ScaMLGP, SettingError, Task, suggest
from scaml.errors import FitError
from scaml.gp.map_fit import STARTS
from scaml.gp.minimize import minimize
from scaml.gp.units import Units
from scaml.model.algorithm1 import cached
from scaml.model.fit_theta import MapEstimate, most_probable, negative_log_posterior
from scaml.model.table_cache import TableCache
from study.choices import laplace
from study.choices.former_default import FormerDefault
from study.choices.laplace import Integrated, IntegratedPrior, Mixture, Searching, draws, hessian
from tests.cases import meta_data, pair, query, task_of

META, TASK = meta_data((9, 8, 7), 2), task_of(6, 2)
PAPER: dict[str, Any] = vars(ScaML.paper())
KINDS = {
    "paper": PAPER,
    "signed": PAPER | {"weights": "signed"},
    "learned": PAPER | {"normalization": "learned"},
    "shared": PAPER | {"normalization": "clipped", "weights": "shared", "residual": "past"},
    "matern": PAPER | {"kernel": "matern52", "normalization": "learned", "weights": "shared"},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def mirrored() -> Task:
    """A task that is the opposite of the past."""
    rng = np.random.default_rng(3)
    X = rng.random((8, 2))
    past = -((X - 0.4) ** 2).sum(-1) + 0.2 * np.sin(6.0 * X[:, 0])
    return Task(X, 1.0 - 2.0 * past)


# The Hessian and the draws.


@pytest.mark.parametrize(
    ("kind", "turned"), [*((kind, False) for kind in KINDS), ("shared", True), ("matern", True)]
)
def test_the_hessian_is_that_of_the_value(kind: str, turned: bool) -> None:
    prior = ScaML(**KINDS[kind]).meta_fit(META, seed=0)
    scaling, beliefs = prior.prepare(TASK)
    cache = cached(prior.task_gps, TASK, scaling)
    kernel = prior.task_gps.kernel
    found = most_probable(kernel, cache, beliefs, seed=0)
    x = torch.where(found.upper > found.lower, found.x.clamp(-3.0, 2.0) + 0.1, found.x)
    sign = -1.0 if turned else 1.0
    free = (found.upper > found.lower).nonzero().flatten()
    H = hessian(laplace._slope(kernel, cache, beliefs, sign), x, free, torch.full_like(x[free], 1e-4))
    step, size = 5e-5 * torch.eye(len(x), dtype=torch.float64)[free], len(free)
    corners = [
        x + a * step[i] + b * step[j]
        for i in range(size)
        for j in range(size)
        for a, b in ((1, 1), (-1, 1), (1, -1), (-1, -1))
    ]
    signs = torch.full((len(corners),), sign, dtype=torch.float64) if turned else None
    value, _ = negative_log_posterior(kernel, cache, beliefs, torch.stack(corners), signs)
    expected = value.view(size, size, 4) @ tensor([1.0, -1.0, -1.0, 1.0]) / 1e-8
    torch.testing.assert_close(H, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def bowl(H: Tensor, center: Tensor) -> Any:
    return lambda x: (x - center) @ H


def found(x: list[float], lower: float = -torch.inf, upper: float = torch.inf) -> MapEstimate:
    return MapEstimate(
        tensor(x), 1.0, torch.full((len(x),), lower).double(), torch.full((len(x),), upper).double()
    )


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_draws_have_the_inverse_hessian_as_covariance() -> None:
    H = tensor([[4.0, 1.0, 0.0], [1.0, 9.0, 2.0], [0.0, 2.0, 25.0]])
    where = found([1.0, -2.0, 0.5])
    x = draws(bowl(H, where.x), where, torch.ones(3).double(), 20_000, generator())
    np.testing.assert_allclose(x.mean(0), where.x, atol=1e-9)  # pairs
    np.testing.assert_allclose(np.cov(x.T.numpy()), np.linalg.inv(H.numpy()), atol=0.006)


def test_flat_directions_are_as_wide_as_they_may_be() -> None:
    H, width = torch.diag(tensor([0.0, -3.0, 100.0])), tensor([1.0, 0.2, 1.0])
    x = draws(bowl(H, torch.zeros(3).double()), found([0.0] * 3), width, 20_000, generator())
    np.testing.assert_allclose(x.std(0), [1.0, 0.2, 0.1], rtol=0.03)


@each_kind
def test_only_weights_around_a_common_value_are_counted_in_shares(kind: str) -> None:
    prior = ScaML(**KINDS[kind]).meta_fit(META, seed=0)
    width = laplace._widths(torch.zeros(3 + 2 + 4), 3, prior.theta_priors)
    share = 1 / 3 if KINDS[kind]["weights"] == "shared" else 1.0
    np.testing.assert_allclose(width, [share] * 3 + [1.0] * 6)


def test_what_is_fixed_or_at_a_bound_stays_and_all_else_stays_inside() -> None:
    where = MapEstimate(
        tensor([0.0, 0.3, 5.0, 0.1]), 1.0, tensor([0.0, 0.3, -1.0, 0.0]), tensor([9.0, 0.3, 5.0, 9.0])
    )
    seen: list[Tensor] = []

    def slope(x: Tensor) -> Tensor:
        seen.append(x)
        return x - where.x

    x = draws(slope, where, torch.ones(4).double(), 50, generator())
    assert (x[:, :3] == where.x[:3]).all()
    assert (x[:, 3] >= 0.0).all()
    assert (x[:, 3] == 0.0).any()
    assert len(x[:, 3].unique()) > 20
    assert len(seen) == 1  # one batched call ...
    assert len(seen[0]) == 2  # ... for one free coordinate


def test_steps_stay_inside_the_bounds() -> None:
    where = found([1e-5, 0.5], lower=0.0, upper=1.0)

    def slope(x: Tensor) -> Tensor:
        assert ((x > 0) & (x < 1)).all()
        return x

    assert draws(slope, where, torch.ones(2).double(), 3, generator()).shape == (3, 2)


def test_no_curvature_is_an_error() -> None:
    with pytest.raises(
        FitError, match=r"^The posterior of the .* has no finite curvature; .*larger than the others\.$"
    ):
        draws(lambda x: x * torch.nan, found([0.0]), torch.ones(1).double(), 2, generator())


# The mixture.


def mixture() -> tuple[Mixture, list[ScaMLGP]]:
    """Three models of one past and one task, in units of their own."""
    gps = pair("se", (7, 5), 4, 2, 0).task_gps
    models = []
    for seed in range(3):
        theta = pair("se", (7, 5), 4, 2, seed, level=0.3).model.hyperparameters
        models.append(ScaMLGP(gps, task_of(4, 2), Units(tensor(0.7 + seed), tensor(1.0 + seed)), theta))
    return Mixture(models, Units(tensor(-1.0), tensor(2.5))), models


def test_moments_are_those_of_a_mixture() -> None:
    mixed, models = mixture()
    X, Z = query(5, 2), torch.rand(3, 2, generator=generator(), dtype=torch.float64)
    both = torch.cat([X, Z])
    means = np.stack([m.posterior(both).mean.flatten().numpy() for m in models])
    covariances = [m.posterior(both).distribution.covariance_matrix.numpy() for m in models]
    mean, covariance = means.mean(0), np.mean(covariances, axis=0) + np.cov(means.T, bias=True)
    posterior = mixed.posterior(both)
    np.testing.assert_allclose(posterior.mean.flatten(), mean, rtol=1e-9)
    np.testing.assert_allclose(
        posterior.distribution.covariance_matrix, covariance, rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(2.5**2 * mixed.cross(X, Z), covariance[:5, 5:], rtol=1e-8, atol=1e-10)
    found_mean, found_variance = mixed.marginal(both.unsqueeze(-2))
    np.testing.assert_allclose(found_mean.flatten(), mean, rtol=1e-9)
    np.testing.assert_allclose(found_variance.flatten(), np.diag(covariance), rtol=1e-7)
    noise = np.mean([float(m.noise * m.y_scale.square()) for m in models])
    np.testing.assert_allclose(mixed.likelihood.noise.item(), noise, rtol=1e-10)
    np.testing.assert_allclose(mixed.weights, np.mean([m.weights.numpy() for m in models], axis=0))


def test_batches_of_points_are_independent() -> None:
    mixed, _ = mixture()
    X = query(4, 3, 2)
    mean, covariance = mixed.moments(X)
    for i in range(4):
        torch.testing.assert_close(mean[i], mixed.moments(X[i])[0])
        torch.testing.assert_close(covariance[i], mixed.moments(X[i])[1])


def test_rows_of_a_table_have_the_moments_of_the_posterior() -> None:
    mixed, _ = mixture()
    table = query(30, 2)
    moments = mixed.on_table(TableCache(), table)
    assert moments is not None
    mean, variance = moments
    posterior = mixed.posterior(table.unsqueeze(-2))
    torch.testing.assert_close(mean, posterior.mean.flatten(), rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(variance, posterior.variance.flatten(), rtol=1e-6, atol=1e-10)


# The method.


@each_kind
def test_the_mixture_is_around_the_most_probable_model(kind: str) -> None:
    best = ScaML(**KINDS[kind]).meta_fit(META, seed=0).condition(TASK, seed=2)
    prior = Integrated(**KINDS[kind], samples=6).meta_fit(META, seed=0)
    assert isinstance(prior, IntegratedPrior)
    mixed = prior.condition(TASK, seed=2)
    assert len(mixed.models) == 6
    assert len({model.noise.item() for model in mixed.models}) > 1
    torch.testing.assert_close(mixed.units.offset, best.y_offset)
    torch.testing.assert_close(mixed.units.scale, best.y_scale)
    logs = torch.stack([model.lengthscale.log() for model in mixed.models])
    inside = (logs > np.log(1e-4) + 1e-9).all(0) & (logs < np.log(1e2) - 1e-9).all(0)
    torch.testing.assert_close(
        logs.mean(0)[inside], best.lengthscale.log()[inside], rtol=1e-6, atol=1e-6
    )
    assert (mixed.models[0].weights[best.weights == 0] == 0).all()
    assert torch.equal(mixed.weights, prior.condition(TASK, seed=2).weights)
    assert not torch.equal(mixed.models[0].noise, prior.condition(TASK, seed=3).models[0].noise)


@pytest.mark.parametrize("samples", [1, 3])
def test_the_number_of_samples(samples: int) -> None:
    prior = Integrated(samples=samples).meta_fit(META, seed=0)
    assert len(prior.condition(TASK, seed=0).models) == samples


def test_the_scale_is_integrated_too() -> None:
    prior = Integrated(normalization="learned").meta_fit(META, seed=0)
    mixed = prior.condition(TASK, seed=0)
    assert len({model.y_scale.item() for model in mixed.models}) == 8
    levels = torch.stack([model.level * model.y_scale.square() for model in mixed.models])
    torch.testing.assert_close(levels, levels[:1].expand(8))  # the level's variance has the unit of y


@each_kind
def test_without_data_it_is_scaml(kind: str) -> None:
    mixed = Integrated(**KINDS[kind]).meta_fit(META, seed=0).condition(Task.empty(2), seed=0)
    plain = ScaML(**KINDS[kind]).meta_fit(META, seed=0).condition(Task.empty(2), seed=0)
    X = query(5, 2)
    torch.testing.assert_close(mixed.posterior(X).mean, plain.posterior(X).mean)
    torch.testing.assert_close(mixed.posterior(X).variance, plain.posterior(X).variance)


def test_weights_of_a_mirrored_past_keep_their_sign() -> None:
    prior = Integrated(**KINDS["shared"]).meta_fit(META, seed=0)
    task = mirrored()
    scaling, beliefs = prior.prepare(task)
    cache = cached(prior.task_gps, task, scaling)
    assert most_probable("se", cache, beliefs, seed=0).sign == -1.0
    mixed = prior.condition(task, seed=0)
    assert (mixed.weights < 0).any()
    assert all((model.weights <= 0).all() for model in mixed.models)


def test_tables_are_answered_from_what_is_kept() -> None:
    prior, table = Integrated().meta_fit(META, seed=0), query(40, 2)
    mixed = prior.condition(TASK, seed=0)
    kept = prior.on_table(mixed, table)
    assert kept is not None
    torch.testing.assert_close(kept[0], mixed.posterior(table.unsqueeze(-2)).mean.flatten())
    assert prior.on_table(mixed.condition_on_observations(table[:1], tensor([[0.0]])), table) is None


def test_suggestions_on_the_cube_and_on_a_table() -> None:
    prior, table = Integrated(acquisition="ucb", sqrt_beta=2.0).meta_fit(META, seed=0), query(40, 2)
    again = pickle.loads(pickle.dumps(prior))
    for task in (Task.empty(2), task_of(1, 2), TASK):
        x = suggest(prior, task, q=2, seed=1)
        assert torch.equal(x, suggest(again, task, q=2, seed=1))
        rows = suggest(prior, task, q=2, seed=1, candidates=table)
        assert all((table == row).all(-1).any() for row in rows)
    function, mixed = prior.acquisition(prior.condition(TASK, seed=1)), prior.condition(TASK, seed=1)
    posterior = mixed.posterior(table.unsqueeze(-2))
    bound = posterior.mean.flatten() + 2.0 * posterior.variance.flatten().sqrt()
    torch.testing.assert_close(function(table.unsqueeze(-2)), bound, rtol=1e-6, atol=1e-8)
    assert torch.equal(rows[0], table[bound.argmax()])


# Starts.


@pytest.mark.parametrize("starts", [1, 20])
@pytest.mark.parametrize("kind", ["paper", "shared"])
def test_so_many_searches(starts: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def counting(objective: Any, x0: Tensor, *bounds: Tensor, **settings: Any) -> Any:
        searched.append(len(x0))
        return minimize(objective, x0, *bounds, **settings)

    prior = Searching(**KINDS[kind], starts=starts).meta_fit(META, seed=0)
    monkeypatch.setattr("scaml.model.fit_theta.minimize", counting)
    model = prior.condition(TASK, seed=0)
    assert searched == [starts + (kind == "shared")]  # and one for a mirrored past
    assert (model.weights != 0).any()


def test_as_many_starts_as_ever_change_nothing() -> None:
    usual = FormerDefault().meta_fit(META, seed=0).condition(TASK, seed=0)
    found = Searching(starts=STARTS).meta_fit(META, seed=0).condition(TASK, seed=0)
    for name, value in vars(usual.hyperparameters).items():
        assert torch.equal(getattr(found, name), value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Searching(starts=0), r"^starts is 0; give an integer of at least 1\.$"),
        (lambda: Integrated(samples=-1), r"^samples is -1; give an integer of at least 1\.$"),
    ],
)
def test_other_numbers_are_refused(make: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()
