"""How alike past tasks are: against least squares of NumPy, and on tasks of known likeness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import RBF
from torch import Tensor

from scaml import MetaData, Task
from scaml.bench.safety import SAFETY
from scaml.gp.task_gps import TaskGPs
from scaml.model.past_similarity import PastSimilarity, _explained, _share


def fitted(meta: MetaData) -> TaskGPs:
    return TaskGPs.fit(meta, kernel="se", seed=0, n_jobs=1)


def likeness(name: str, run: int = 0, tasks: int = 8, points: int = 32) -> PastSimilarity:
    meta = SAFETY[name].meta_data(tasks, points, run)
    return PastSimilarity.of(meta, fitted(meta))


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_shares_and_residuals_are_those_of_least_squares() -> None:
    meta = SAFETY["related"].meta_data(4, 20, 0)
    gps = fitted(meta)
    shares, residuals, errors = [], [], []
    for m, task in enumerate(meta):
        others = [k for k in range(4) if k != m]
        a = gps.mean(task.X)[others].mean(0).numpy()
        z = ((task.y - task.y.mean()) / task.y.std()).numpy()
        a = a - a.mean()
        # A ridge of 0.05 a point, as an observation more.
        A, b = np.append(a, np.sqrt(0.05 * len(a))), np.append(z, 0.0)
        share = np.linalg.lstsq(A[:, None], b, rcond=None)[0][0]
        shares.append(share)
        left = np.mean((z - share * a) ** 2)
        residuals.append(np.log(left))
        K = float(gps.outputscale[m]) * RBF(gps.lengthscale[m].numpy())(task.X.numpy())
        K += float(gps.noise[m]) * np.eye(20)
        center = np.eye(20) - 1 / 20
        C = center @ K @ center
        estimate = A[:-1] / (A @ A)  # what a share is of z
        errors.append(left * estimate @ C @ estimate / np.trace(C) * 20)
    found = PastSimilarity.of(meta, gps)
    # What is believed anyway of a residual counts as one task.
    assert found.residual.mu.item() == pytest.approx((sum(residuals) - 1.0) / 5, rel=1e-9)
    error = np.mean(errors)
    mean = (1.0 + sum(shares) / error) / (1.0 + 4 / error)
    mean *= 1.0 - error / 4 / mean**2
    assert found.share.item() == pytest.approx(mean, rel=1e-9)
    beyond = max(0.0, 1.25 * np.var(shares, ddof=1) - error)
    spread = np.sqrt(beyond + (0.3 * mean) ** 2 + 0.05**2)
    assert found.share_spread.item() == pytest.approx(spread, rel=1e-9)


def test_errors_of_shares_are_those_of_unrelated_tasks() -> None:
    """Least squares on draws of a GP that have nothing to do with the average: by simulation."""
    meta = SAFETY["related"].meta_data(4, 20, 0)
    gps = fitted(meta)
    X, ell = meta[0].X.numpy(), gps.lengthscale[0].numpy()
    K = float(gps.outputscale[0]) * RBF(ell)(X) + float(gps.noise[0]) * np.eye(20)
    draws = np.random.default_rng(0).multivariate_normal(np.zeros(20), K, size=400)
    found = []
    for y in draws:
        task = Task(X, y, name=meta.names[0])
        mean = torch.cat([task.y.mean()[None], gps.y_mean[1:]])
        std = torch.cat([task.y.std()[None], gps.y_std[1:]])
        tasks = MetaData([task, *list(meta)[1:]])
        found.append(_explained(0, tasks, replace(gps, y_mean=mean, y_std=std), 100).numpy())
    shares, _, errors = np.array(found).T
    assert np.mean(shares**2) == pytest.approx(errors.mean(), rel=0.2)


def test_what_is_no_more_alike_than_chance_is_worth_nothing() -> None:
    shares, errors = tensor(0.5, -0.6, 0.3, -0.1), tensor(0.4, 0.4, 0.4, 0.4)
    mean, spread = _share(shares, errors)
    assert mean.item() == 0.0
    assert spread.item() == pytest.approx(0.05)
    mean, spread = _share(shares + 1.0, 0.0 * errors)
    assert mean.item() == pytest.approx(1.025, rel=1e-4)
    expected = 1.25 * (shares + 1.0).var() + (0.3 * mean) ** 2 + 0.05**2
    assert spread.item() == pytest.approx(expected.sqrt().item(), rel=1e-4)


def test_tasks_that_are_alike_promise_more_than_others() -> None:
    runs = range(4)
    related = torch.stack([likeness("related", run).share for run in runs])
    unrelated = torch.stack([likeness("unrelated", run).share for run in runs])
    assert related.mean() > 0.8
    assert unrelated.mean() < 0.5
    small = torch.stack([likeness("related", run).residual.mu for run in runs])
    large = torch.stack([likeness("unrelated", run).residual.mu for run in runs])
    assert small.mean() < -1.0
    assert large.mean() > -0.6


def test_lengthscales_and_noise_are_those_of_the_past() -> None:
    meta = SAFETY["related"].meta_data(30, 40, 0)
    gps = fitted(meta)
    found = PastSimilarity.of(meta, gps)
    expected = (gps.lengthscale.log().sum(0) + -0.7) / 31
    torch.testing.assert_close(found.lengthscale.mu, expected)
    assert found.lengthscale.sigma.shape == (3,)
    assert (found.lengthscale.sigma >= 0.5).all()
    torch.testing.assert_close(found.noise.mu, (gps.noise.log().sum() + -7.0) / 31)
    priors = found.kernel_priors()
    assert priors.lengthscale is found.lengthscale
    assert priors.starts(6, 3, torch.Generator().manual_seed(0)).shape == (6, 5)


def test_units_of_the_past_do_not_matter() -> None:
    meta = SAFETY["related"].meta_data(5, 20, 1)
    other = MetaData([Task(t.X, 10.0**i * (t.y - 3 * i), name=str(i)) for i, t in enumerate(meta)])
    one, same = PastSimilarity.of(meta, fitted(meta)), PastSimilarity.of(other, fitted(other))
    torch.testing.assert_close(same.share, one.share, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(same.residual.mu, one.residual.mu, rtol=1e-5, atol=1e-5)


def test_the_order_of_tasks_does_not_matter() -> None:
    meta = SAFETY["related"].meta_data(5, 20, 1)
    other = MetaData([meta[i] for i in (3, 1, 4, 0, 2)])
    one, same = PastSimilarity.of(meta, fitted(meta)), PastSimilarity.of(other, fitted(other))
    torch.testing.assert_close(same.share, one.share, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(same.residual.sigma, one.residual.sigma, rtol=1e-9, atol=1e-9)


def test_one_task_leaves_what_is_believed_anyway() -> None:
    found = likeness("related", tasks=1)
    assert found.share.item() == 1.0
    assert found.residual.mu.item() == -1.0
    assert found.share_spread.item() == pytest.approx((0.3**2 + 0.05**2) ** 0.5)


def test_tasks_that_lack_a_parameter_are_not_asked_but_count() -> None:
    whole = SAFETY["related"].meta_data(3, 20, 0)
    lacking = Task(whole[2].X, whole[2].y, name="lacking", known=[True, False, True])
    meta = MetaData([whole[0], whole[1], lacking])
    found = PastSimilarity.of(meta, fitted(meta))
    assert found.share.isfinite()
    assert found.lengthscale.mu.isfinite().all()
    alone = MetaData([lacking.called("a"), lacking.called("b")])
    assert PastSimilarity.of(alone, fitted(alone)).share.item() == 1.0


def test_constant_tasks_explain_nothing_and_break_nothing() -> None:
    meta = SAFETY["related"].meta_data(3, 10, 0)
    flat = MetaData([*meta, Task(meta[0].X, torch.zeros(10), name="flat")])
    found = PastSimilarity.of(flat, fitted(flat))
    for value in (found.share, found.share_spread, found.residual.mu, found.noise.mu):
        assert value.isfinite()
    flat = MetaData([meta[0], *(Task(meta[0].X, torch.zeros(10), name=name) for name in "ab")])
    assert PastSimilarity.of(flat, fitted(flat)).share.item() == 1.0  # nobody to ask


def test_many_points_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = SAFETY["related"].meta_data(4, 40, 0)
    gps = fitted(meta)
    full = PastSimilarity.of(meta, gps)
    monkeypatch.setattr("scaml.model.past_similarity._MOST_ENTRIES", 4 * 4 * 40 * 10)
    thinned = PastSimilarity.of(meta, gps)
    assert thinned.share != full.share
    assert thinned.share.item() == pytest.approx(full.share.item(), abs=0.3)
