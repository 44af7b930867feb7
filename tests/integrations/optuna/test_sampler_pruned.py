"""Pruned trials of the study at hand are observations of `ScaMLSampler`."""

from __future__ import annotations

from statistics import median

import optuna
import pytest
import torch
from botorch.models.model import Model
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, SuccessiveHalvingPruner
from torch import Tensor

from scaml import ScaMLSampler, Task
from scaml.ask import choose_new
from scaml.gp.posterior import mean_and_variance
from scaml.methods.base import MetaPrior
from tests.pruned_cases import COMPLETE, PRUNED, X, curve, number_of, pruned_past, study_with, trial_of
from tests.sampler_cases import distinct, params, run, valleys

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The numbers of observations and of pending points behind every suggestion."""
    counts: list[tuple[int, int]] = []

    def spy(prior: MetaPrior, model: Model, task: Task, q: int, pending: Tensor, seed: int) -> Tensor:
        counts.append((task.n, len(pending)))
        return choose_new(prior, model, task, q, pending, seed)

    monkeypatch.setattr("scaml.integrations.optuna.sampler.choose_new", spy)
    return counts


def test_pruned_points_are_learned_from_and_not_pending(seen: list[tuple[int, int]]) -> None:
    sampler = ScaMLSampler([pruned_past()], seed=0, search_space=X)
    study = run(sampler, curve(), 8, pruner=MedianPruner(n_startup_trials=2, n_warmup_steps=0))
    complete, pruned = (number_of(study, state) for state in (COMPLETE, PRUNED))
    assert complete >= 3
    assert pruned >= 2
    assert seen == [(n, 0) for n in range(8)]
    assert distinct(params(study)) == 8
    known = sampler.prior_of(study)
    assert known.task.n == complete + pruned
    expected = [[trial.params["x"]] for trial in study.trials]
    torch.testing.assert_close(known.task.X, torch.tensor(expected, dtype=torch.float64))
    finals = sorted(-trial.value for trial in study.trials if trial.state == COMPLETE)
    for trial, y in zip(study.trials, known.task.y.tolist(), strict=True):
        if trial.state == PRUNED:
            assert finals[0] <= y <= median(finals)


def test_pruned_points_that_cannot_be_compared_stay_taken(seen: list[tuple[int, int]]) -> None:
    study = optuna.create_study(sampler=ScaMLSampler(valleys(), seed=0, search_space=X))
    for value in (None, 1.0, 2.0, 3.0):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        trial.report(value or 9.0, 0)
        study.tell(trial, value, state=COMPLETE if value else PRUNED)
    assert seen == [(0, 0), (0, 1), (1, 1), (3, 0)]  # the pruned one counts from two complete ones on
    assert distinct(params(study)) == 4


@pytest.mark.parametrize(
    "pruner",
    [
        MedianPruner(n_startup_trials=0, n_warmup_steps=0),
        MedianPruner(n_startup_trials=1),
        SuccessiveHalvingPruner(),
        optuna.pruners.ThresholdPruner(upper=0.0),  # prunes everything at step 0
    ],
    ids=["median from the start", "median after one", "halving", "everything"],
)
def test_any_pruner_may_prune_at_step_0(pruner: BasePruner) -> None:
    study = run(ScaMLSampler(valleys(), seed=0), curve(), 6, pruner=pruner)
    assert number_of(study, PRUNED) >= 1
    assert number_of(study, COMPLETE) + number_of(study, PRUNED) == 6
    assert distinct(params(study)) == 6


def test_hyperband_shows_each_bracket_its_own_pruned_trials(seen: list[tuple[int, int]]) -> None:
    """Optuna gives the sampler only the trials of the new trial's bracket."""
    pruner = HyperbandPruner(max_resource=3)
    study = run(ScaMLSampler(valleys(), seed=0, search_space=X), curve(), 12, pruner=pruner)
    assert number_of(study, PRUNED) >= 2
    brackets = [pruner._get_bracket_id(study, trial) for trial in study.trials]
    earlier = [brackets[:number].count(bracket) for number, bracket in enumerate(brackets)]
    assert [n + pending for n, pending in seen] == earlier
    assert seen[-1][0] > 0


def test_where_the_past_was_pruned_the_prior_expects_less() -> None:
    complete = [trial_of(x, {0: x}, x=x) for x in (0.5, 0.6, 0.7, 0.8, 0.9)]
    pruned = [trial_of(None, {0: 9.0}, x=x) for x in (0.0, 0.1, 0.2, 0.3, 0.4)]
    means = []
    for past in (complete, [*complete, *pruned]):
        known = ScaMLSampler([study_with(past)], seed=0).prior_of(optuna.create_study())
        points = torch.tensor([[0.2], [0.5]], dtype=torch.float64)
        posterior = known.prior.condition(known.task, seed=0).posterior(points)
        means.append(mean_and_variance(posterior)[0].flatten())
    without, with_pruned = (float(mean[0] - mean[1]) for mean in means)
    assert without > 0.0  # the complete trials alone promise more at 0.2 than at 0.5
    assert with_pruned < 0.0
