"""GPBO against BoTorch's plain GP."""

from __future__ import annotations

import pytest
import torch

from scaml import SettingError, Task, suggest
from scaml.gp.map_fit import FitInput, fit_gps
from scaml.methods import GPBO
from scaml.search.log_nei import NoisyExpectedImprovement
from scaml.search.ucb import UpperConfidenceBound
from tests import botorch_baseline
from tests.cases import meta_data, task_of

META = meta_data((10, 14), 2)
X = torch.rand(6, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_posterior_is_that_of_botorchs_fit() -> None:
    task = task_of(20, 2)
    posterior = GPBO().meta_fit(META).condition(task, seed=0).posterior(X)
    mean, std = task.y.mean(), task.y.std()
    z = (task.y - mean) / std
    starts = fit_gps([FitInput("task", task.X, z)], kernel="se", seed=0).starts[0]
    model, _ = botorch_baseline.fit("se", task.X, z, starts)
    with torch.no_grad():
        theirs = model.posterior(X)
    torch.testing.assert_close(posterior.mean, mean + std * theirs.mean, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(posterior.variance, std**2 * theirs.variance, rtol=2e-2, atol=1e-5)


def test_the_past_is_not_used() -> None:
    task = task_of(5, 2)
    a, b = (GPBO().meta_fit(m).condition(task) for m in (META, meta_data((5, 5, 5), 2, seed=8)))
    assert torch.equal(a.posterior(X).mean, b.posterior(X).mean)
    assert a.weights.shape == (0,)
    assert GPBO().meta_fit(META).names == META.names


def test_without_data_it_is_the_prior() -> None:
    model = GPBO().meta_fit(META).condition(Task.empty(d=2))
    posterior = model.posterior(X)
    torch.testing.assert_close(posterior.mean, torch.zeros(6, 1, dtype=torch.float64))
    torch.testing.assert_close(posterior.variance, model.outputscale.expand(6, 1))


def test_acquisition_function_may_be_that_of_scaml() -> None:
    task = task_of(6, 2)
    ucb, nei = GPBO().meta_fit(META), GPBO(acquisition="lognei").meta_fit(META)
    for prior, kind in ((ucb, UpperConfidenceBound), (nei, NoisyExpectedImprovement)):
        assert type(prior.acquisition(prior.condition(task))) is kind
    nothing = Task.empty(d=2)
    assert torch.equal(suggest(nei, nothing, seed=1), suggest(ucb, nothing, seed=1))
    values = nei.acquisition(nei.condition(task))(X.unsqueeze(-2))
    assert torch.equal(suggest(nei, task, candidates=X)[0], X[values.argmax()])


def test_settings_are_checked() -> None:
    with pytest.raises(SettingError, match="kernel"):
        GPBO(kernel="linear")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="acquisition is 'ei'; choose 'lognei'"):
        GPBO(acquisition="ei")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="sqrt_beta"):
        GPBO(sqrt_beta=float("inf"))
