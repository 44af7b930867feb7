"""What the benchmarks count and compare with, not how long anything takes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import optuna
import pytest
import torch
from optuna._gp.gp import GPRegressor

from benchmarks import loops, sampler_speed
from benchmarks.evaluations import counting, replaced
from benchmarks.sampler_spaces import SPACES
from benchmarks.speed_rows.other_minimizers import batched_l_bfgs_b, l_bfgs_b_per_start
from scaml.gp import map_fit, minimize
from scaml.gp.map_fit import FitInput, fit_gps
from scaml.gp.minimize import Minimum
from tests.cases import meta_data


def inputs() -> list[FitInput]:
    tasks = meta_data((8, 12, 9), 2)
    return [FitInput(task.name, task.X, (task.y - task.y.mean()) / task.y.std()) for task in tasks]


def test_likelihoods_are_counted_and_nothing_stays_replaced() -> None:
    with counting() as counts:
        fit = fit_gps(inputs(), kernel="se", seed=0)
    assert counts.likelihood == fit.evaluations > 0
    assert counts.acquisition == 0
    assert vars(map_fit)["minimize"] is minimize.minimize
    assert GPRegressor.marginal_log_likelihood.__module__ == GPRegressor.__module__
    assert not hasattr(GPRegressor.marginal_log_likelihood, "__wrapped__")


@pytest.mark.parametrize("other", [batched_l_bfgs_b, l_bfgs_b_per_start])
def test_other_minimizers_find_the_same_minima_of_our_likelihood(other: Callable[..., Minimum]) -> None:
    own = fit_gps(inputs(), kernel="se", seed=0)
    with replaced(other):
        found = fit_gps(inputs(), kernel="se", seed=0)
    assert found.evaluations != own.evaluations  # it was really another one
    torch.testing.assert_close(found.value, own.value, atol=1e-6, rtol=0.0)


def test_loops_ask_every_sampler_after_the_same_random_trials() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[str, optuna.samplers.BaseSampler] = {
        "tpe": optuna.samplers.TPESampler(seed=0, n_startup_trials=1),
        "random": optuna.samplers.RandomSampler(seed=0),
    }
    space = SPACES["8 mixed"]
    asks, best = loops.ask_and_tell(samplers, space, 0.1, seed=0, last=8)
    assert [(ask.sampler, ask.done) for ask in asks] == [
        (name, n) for n in (5, 6, 7) for name in samplers
    ]
    assert all(ask.likelihood == ask.acquisition == 0 for ask in asks)
    assert set(best) == set(samplers)
    told = loops.summary(asks, "tpe", "random")
    assert told["5-20"]["cpu_share"] > 0
    assert "20-40" not in told


def test_a_comparison_without_greenlet_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_speed, "find_spec", lambda name: importlib.util.find_spec("no_such"))
    with pytest.raises(SystemExit, match="greenlet is not installed"):
        sampler_speed.check_greenlet()
