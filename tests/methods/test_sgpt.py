"""SGPT against SciPy's Kendall τ and the sum written out."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from scaml import MetaData, SettingError, Task
from scaml.gp.units import standardize
from scaml.methods.sgpt import SGPT, SGPTPrior, discordance, epanechnikov
from scaml.methods.shared.plain_gp import fit_plain_gp
from tests.cases import query, smooth, task_of

X = query(6, 2)


def related(shift: float, n: int, seed: int) -> Task:
    P = np.random.default_rng(seed).random((n, 2))
    return Task(P, 3.0 * shift + (1.0 + shift) * smooth(P, shift), name=f"shift {shift}")


META = MetaData([related(0.5, 14, 1), related(2.0, 10, 0), related(3.5, 8, 2)])


@pytest.fixture(scope="module")
def prior() -> SGPTPrior:
    return SGPT().meta_fit(META)


@pytest.mark.parametrize("n", [2, 3, 17])
def test_discordance_is_kendalls(n: int) -> None:
    """τ = (concordant - discordant) / pairs, and without ties there are no other pairs."""
    rng = np.random.default_rng(n)
    mean, y = rng.standard_normal((5, n)), rng.standard_normal(n)
    tau = np.array([kendalltau(row, y).statistic for row in mean])
    shares = discordance(torch.tensor(mean), torch.tensor(y))
    np.testing.assert_allclose(shares, (1.0 - tau) / 2.0, rtol=0, atol=1e-15)
    assert discordance(torch.tensor(y)[None], torch.tensor(y)) == 0.0
    assert discordance(-torch.tensor(y)[None], torch.tensor(y)) == 1.0


def test_tied_pairs_are_not_discordant() -> None:
    """Counted pair by pair; the order of the rows does not matter."""
    rng = np.random.default_rng(0)
    mean, y = rng.integers(4, size=(6, 12)), rng.integers(3, size=12)
    expected = [
        sum(
            (row[j] < row[k] and y[j] > y[k]) or (row[j] > row[k] and y[j] < y[k])
            for j in range(12)
            for k in range(j + 1, 12)
        )
        / 66
        for row in mean
    ]
    turned = rng.permutation(12)
    for order in (np.arange(12), turned):
        shares = discordance(torch.tensor(mean[:, order]).double(), torch.tensor(y[order]).double())
        np.testing.assert_allclose(shares, expected, rtol=0, atol=1e-15)
    assert not discordance(torch.tensor(mean).double(), torch.ones(12, dtype=torch.float64)).any()


def test_differences_of_any_size_count() -> None:
    y = torch.tensor([1e-200, 2e-200, 3e-200], dtype=torch.float64)
    assert discordance(-y[None], y) == 1.0


def test_the_kernel() -> None:
    t = torch.tensor([0.0, 0.5, 0.999, 1.0, 7.0], dtype=torch.float64)
    expected = [0.75, 0.5625, 0.75 * (1 - 0.999**2), 0.0, 0.0]
    np.testing.assert_allclose(epanechnikov(t), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
@pytest.mark.parametrize("rho", [0.1, 0.4])
def test_prediction_is_the_weighted_mean(prior: SGPTPrior, n: int, rho: float) -> None:
    task = task_of(n, 2) if n else Task.empty(d=2)
    prior = SGPT(rho=rho).restore(META, prior.state())
    model = prior.condition(task, seed=3)
    own = fit_plain_gp(task, standardize(task.y), kernel="se", seed=3)
    b = np.full(4, 0.75)
    if n >= 2:
        means = prior.task_gps.mean(task.X).numpy()
        taus = np.array([kendalltau(row, task.y.numpy()).statistic for row in means])
        t = (1.0 - taus) / 2.0 / rho
        b[:3] = np.where(t < 1.0, 0.75 * (1.0 - t**2), 0.0)
    w = b / b.sum()
    np.testing.assert_allclose(model.weights, w[:3], rtol=1e-12, atol=1e-15)
    units = standardize(task.y)
    theirs = own.posterior(X)
    z = (theirs.mean.squeeze(-1) - units.offset) / units.scale
    mean = torch.tensor(w[:3]) @ prior.task_gps.mean(X) + w[3] * z
    posterior = model.posterior(X)
    torch.testing.assert_close(posterior.mean.squeeze(-1), units.offset + units.scale * mean)
    torch.testing.assert_close(posterior.variance, theirs.variance, rtol=1e-10, atol=0.0)


def test_the_case_has_weights_of_all_kinds(prior: SGPTPrior) -> None:
    """Else the test above shows little."""
    wide, narrow = (
        SGPT(rho=rho).restore(META, prior.state()).condition(task_of(9, 2)).weights
        for rho in (0.4, 0.1)
    )
    assert len(wide.unique()) == 3
    assert (narrow == 0).any()
    assert (narrow > 0).any()


def test_a_mirrored_task_is_dropped_and_a_copy_is_kept() -> None:
    rng = np.random.default_rng(1)
    P, Q = rng.random((30, 2)), rng.random((8, 2))
    same, mirrored = Task(P, 5 * smooth(P, 0.0), name="same"), Task(P, -smooth(P, 0.0), name="mirror")
    model = SGPT().meta_fit(MetaData([same, mirrored])).condition(Task(Q, smooth(Q, 0.0)))
    assert model.weights[0] > 0.45
    assert model.weights[1] == 0.0
    assert 0.5 <= model.own_weight < 0.55


def test_rho_is_where_a_task_loses_its_weight(prior: SGPTPrior) -> None:
    task = task_of(9, 2)
    share = float(discordance(prior.task_gps.mean(task.X), task.y).max())
    assert share > 0
    inside, on = (
        SGPT(rho=rho).restore(META, prior.state()).condition(task).weights.min()
        for rho in (share * 1.01, share)
    )
    assert inside > 0
    assert on == 0


def test_tasks_that_lack_or_add_parameters() -> None:
    rng = np.random.default_rng(2)
    P = rng.random((12, 2))
    lacks = Task(P, P[:, 0], known=[True, False], name="lacks")
    adds = Task(P, P[:, 1], extra=rng.random((12, 1)), name="adds")
    posterior = SGPT().meta_fit(MetaData([lacks, adds, META[0]])).condition(task_of(5, 2)).posterior(X)
    assert posterior.mean.isfinite().all()


def test_settings_are_frozen_and_checked() -> None:
    with pytest.raises(FrozenInstanceError):
        SGPT().rho = 1.0  # type: ignore[misc]
    wrong: tuple[dict[str, Any], ...] = (
        {"kernel": "rbf"},
        {"rho": 0.0},
        {"rho": -0.1},
        {"rho": float("nan")},
        {"rho": float("inf")},
        {"rho": True},
        {"rho": "0.1"},
        {"sqrt_beta": -1.0},
    )
    for settings in wrong:
        with pytest.raises(SettingError, match=str(next(iter(settings.values())))):
            SGPT(**settings)
