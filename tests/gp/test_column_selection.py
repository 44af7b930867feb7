"""Columns that only a past task has: left out where they do not matter, used where they do."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import Tensor

from scaml import MetaData, Task, TaskGPs
from scaml.gp.column_selection import fit_selecting_columns
from scaml.gp.hyperpriors import META_TASK
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import FitInput, fit_gps
from scaml.gp.units import standardize
from tests.cases import meta_data, query


def column(seed: int, n: int = 32) -> Tensor:
    """Values in [-0.5, 0.5]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, 1, generator=generator, dtype=torch.float64) - 0.5


def bump(task: Task, values: Tensor) -> Tensor:
    """Two deviations of y, high at the ends of the column."""
    return 8.0 * task.y.std() * values[:, 0].square()


def gps(*tasks: Task) -> TaskGPs:
    return TaskGPs.fit(MetaData(tasks), kernel="se", seed=0, n_jobs=1)


@pytest.mark.parametrize("kernel", get_args(KernelName))
@pytest.mark.parametrize("seed", range(4))
def test_one_that_does_not_matter_is_left_out(seed: int, kernel: KernelName) -> None:
    (task,) = meta_data((32,), 2, seed)
    more = Task(task.X, task.y, extra=column(seed))
    plain, fitted = (TaskGPs.fit(MetaData([t]), kernel=kernel, seed=0, n_jobs=1) for t in (task, more))
    assert fitted.lengthscale[0, 2] == math.inf
    assert torch.equal(fitted.lengthscale[:, :2], plain.lengthscale)
    X = query(50, 2)
    torch.testing.assert_close(fitted.mean(X), plain.mean(X), rtol=0, atol=1e-9)
    torch.testing.assert_close(fitted.variance(X), plain.variance(X), rtol=0, atol=1e-9)


def test_one_that_matters_is_used() -> None:
    (task,), values = meta_data((32,), 2, 0), column(1)
    fitted, plain = gps(Task(task.X, task.y + bump(task, values), extra=values)), gps(task)
    assert fitted.lengthscale[0, 2] < 3.0
    X = query(200, 2)
    # Held at 0, where the bump is 0, the task is what it is without the column.
    predicted = fitted.y_mean + fitted.y_std * fitted.mean(X)[0]
    expected = plain.y_mean + plain.y_std * plain.mean(X)[0]
    assert (predicted - expected).square().mean().sqrt() < 0.15 * plain.y_std


def test_of_several_only_those_that_matter_stay() -> None:
    (task,) = meta_data((40,), 2, 0)
    columns = torch.cat([column(seed, 40) for seed in (1, 2, 3)], dim=-1)
    y = task.y + bump(task, columns[:, 1:2])
    fitted = gps(Task(task.X, y, extra=columns))
    assert fitted.lengthscale[0].isfinite().tolist() == [True, True, False, True, False]


def test_the_company_of_other_tasks_changes_no_bit() -> None:
    a, b, c = meta_data((32, 20, 32), 2, 0)
    one = Task(a.X, a.y + bump(a, column(1)), name="one", extra=column(1))
    two = Task(c.X, c.y, name="two", extra=torch.cat([column(2), column(3)], dim=-1))
    together, alone = gps(one, b, two), gps(one)
    assert torch.equal(together.lengthscale[0, :3], alone.lengthscale[0])
    assert torch.equal(together.noise[0], alone.noise[0])


def test_the_rule_is_schwarzs() -> None:
    """A column whose gain is near the threshold: by refitting both models, whichever it should be."""
    (task,) = meta_data((24,), 2, 5)
    values = column(4, 24)
    decisions = []
    for size in (0.0, 0.02, 0.05, 0.1, 0.2, 0.5):
        y = task.y + size * bump(task, values)
        units = standardize(y)
        z = (y - units.offset) / units.scale
        likelihoods = []
        for X, free in ((task.X, 0), (torch.cat([task.X, values], dim=-1), 1)):
            priors = replace(META_TASK, free=free)
            fit = fit_gps([FitInput("", X, z)], kernel="se", seed=0, priors=priors)
            likelihoods.append(float(-24 * fit.value[0] - priors.log_prob(fit.theta[0])))
        matters = likelihoods[1] - likelihoods[0] >= 0.5 * math.log(24)
        whole = FitInput("", torch.cat([task.X, values], dim=-1), z)
        theta = fit_selecting_columns([whole], 1, kernel="se", seed=0, n_jobs=1)
        assert bool(theta[0, 2].isfinite()) == matters
        decisions.append(matters)
    assert decisions[0] is False
    assert decisions[-1] is True
