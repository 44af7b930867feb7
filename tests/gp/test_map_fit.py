"""The meta-fit against BoTorch's own, and its independence of batches, order and jobs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scaml import FitError
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import STARTS, FitInput, fit_gps
from tests import botorch_baseline


def random_task(i: int) -> FitInput:
    """Waves, bowls, bumps under heavy noise and terraces, 8 to 128 points in 1 to 8 dimensions."""
    rng = np.random.default_rng([5, i])
    n, d = int(rng.integers(8, 129)), int(rng.integers(1, 9))
    X = rng.random((n, d))
    bowl = (X - rng.random(d)) ** 2
    kinds = (
        lambda: np.sin(X @ rng.normal(size=(d, 3)) * rng.uniform(0.5, 6.0)).sum(-1),
        lambda: -(bowl * rng.gamma(1.0, 3.0, size=d)).sum(-1),
        lambda: np.exp(-20.0 * bowl.sum(-1) / d) + 0.3 * rng.normal(size=n),
        lambda: np.round(X @ rng.normal(size=d), 1),
    )
    y = kinds[i % 4]() + rng.normal(size=n) * 10.0 ** rng.uniform(-4, -1)
    return FitInput(f"task-{i}", torch.tensor(X), torch.tensor((y - y.mean()) / y.std(ddof=1)))


@pytest.mark.parametrize("block", range(4))
def test_map_objective_is_as_good_as_botorch(block: int) -> None:
    """Over 48 tasks: never worse by 1e-3 nats per point, and within 1e-5 in at least 44.

    A guard, not an estimate: the constants of `minimize` were chosen on these tasks. Small tasks have
    several optima, and which one a start reaches is luck on either side. On 200 tasks that nobody had
    looked at (i = 600 to 799), 1 was behind by more than 1e-3 and 3 were ahead by more than 1e-3.
    """
    behind = []
    for i in range(12 * block, 12 * (block + 1)):
        task = random_task(i)
        ours = fit_gps([task], kernel="se", seed=0)
        _, theirs = botorch_baseline.fit("se", task.X, task.z, ours.starts[0])
        behind.append(ours.value.item() - theirs)
    assert max(behind) < 1e-3
    assert sum(value > 1e-5 for value in behind) <= 1


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_value_is_the_objective_of_gpytorch(kernel: KernelName) -> None:
    task = random_task(1)
    fit = fit_gps([task], kernel=kernel, seed=0)
    model = botorch_baseline.single_task_gp(kernel, task.X, task.z, fit.theta[0])
    assert fit.value.item() == pytest.approx(botorch_baseline.negative_log_posterior(model), abs=1e-7)


def test_a_fit_does_not_depend_on_its_company_order_or_jobs() -> None:
    """Bit for bit."""
    tasks = [random_task(i) for i in range(60)]
    tasks = [task for task in tasks if task.X.shape[-1] == 2]
    assert len(tasks) >= 4
    together = fit_gps(tasks, kernel="se", seed=3)
    backwards = fit_gps(tasks[::-1], kernel="se", seed=3)
    assert torch.equal(together.theta, backwards.theta.flip(0))
    for i, task in enumerate(tasks[:3]):
        assert torch.equal(fit_gps([task], kernel="se", seed=3).theta[0], together.theta[i])
    assert torch.equal(fit_gps(tasks, kernel="se", seed=3, n_jobs=2).theta, together.theta)


def test_seed_decides_the_starts() -> None:
    task = FitInput("task", torch.rand(9, 2, dtype=torch.float64), torch.randn(9, dtype=torch.float64))
    first, again, other = (fit_gps([task], kernel="se", seed=s).starts[0] for s in (0, 0, 1))
    assert first.shape == (STARTS, 4)
    assert torch.equal(first, again)
    assert torch.equal(first[0], other[0])
    assert not torch.equal(first[1:], other[1:])


@pytest.mark.parametrize("n", [2, 5])
def test_constant_and_duplicate_data_are_fitted(n: int) -> None:
    X = torch.full((n, 2), 0.5, dtype=torch.float64)
    fit = fit_gps([FitInput("flat", X, torch.zeros(n, dtype=torch.float64))], kernel="se", seed=0)
    assert fit.theta.isfinite().all()


def test_hopeless_data_name_the_task() -> None:
    X = torch.rand(4, 1, dtype=torch.float64)
    bad = FitInput("broken", X, torch.full((4,), torch.nan, dtype=torch.float64))
    with pytest.raises(FitError, match="'broken'"):
        fit_gps([FitInput("fine", X, X[:, 0]), bad], kernel="se", seed=0)
