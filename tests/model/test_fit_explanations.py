"""Posterior probabilities of explanations, and which of them are fitted."""

from __future__ import annotations

import math

import torch

from scaml import ScaML, Task
from scaml.bench.safety import SAFETY
from scaml.methods.scaml import ScaMLPrior
from scaml.model import fit_explanations
from scaml.model.average_gp import AverageGP
from scaml.model.evidence import log_evidence
from scaml.model.fit_explanations import LEAST_PROBABLE, explain_task
from scaml.tasks.meta_data import MetaData


def prior_of(meta: MetaData) -> ScaMLPrior:
    return ScaML(weights="explained").meta_fit(meta)


def data(family: str, n: int, seed: int = 0) -> tuple[ScaMLPrior, Task]:
    problem = SAFETY[family]
    X = torch.rand(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    task = Task(X, problem.draw(seed)(X)) if n else Task.empty(3)
    return prior_of(problem.meta_data(8, 16, seed)), task


def test_probabilities_of_all_and_of_the_members_add_up_to_one() -> None:
    for n in (0, 1, 7):
        prior, task = data("related", n)
        assert prior.explanations is not None
        found = explain_task(prior.task_gps, prior.explanations, task, prior.prepare(task)[0])
        torch.testing.assert_close(found.log_probability.exp().sum(), torch.tensor(1.0).double())
        torch.testing.assert_close(found.log_member.exp().sum(), torch.tensor(1.0).double())
        assert (found.log_member >= math.log(LEAST_PROBABLE)).all()


def test_without_data_probabilities_are_the_prior_and_no_single_task_is_a_member() -> None:
    prior, task = data("related", 0)
    assert prior.explanations is not None
    found = explain_task(prior.task_gps, prior.explanations, task, prior.prepare(task)[0])
    assert torch.equal(found.log_probability, prior.explanations.log_prior)
    used = [int((theta.weights != 0).sum()) for theta in found.theta]
    assert 1 not in used


def test_what_is_fitted_has_its_own_evidence_and_the_rest_an_estimate() -> None:
    prior, task = data("one-flipped", 9)
    told = prior.explanations
    assert told is not None
    scaling, _ = prior.prepare(task)
    found = explain_task(prior.task_gps, told, task, scaling)
    every = fit_explanations._problem(prior.task_gps, told, task, scaling, prior.rows)
    # All explanations fitted, none screened: the fitted ones must keep their ratios.
    evidence = log_evidence(every, fit_explanations._minima(every, 1e-9))
    chosen = fit_explanations._chosen(told, fit_explanations._screened(every, told) + told.log_prior)
    ours = found.log_probability[chosen] - found.log_probability[0]
    exact = (evidence + told.log_prior)[chosen] - (evidence + told.log_prior)[0]
    torch.testing.assert_close(ours, exact, atol=1e-3, rtol=0)


def test_screening_finds_the_best_single_task() -> None:
    """The task with the largest evidence of all is among the fitted ones."""
    for seed in range(4):
        prior, task = data("shifted", 12, seed)
        told = prior.explanations
        assert told is not None
        every = fit_explanations._problem(
            prior.task_gps, told, task, prior.prepare(task)[0], prior.rows
        )
        exact = log_evidence(every, fit_explanations._minima(every, 1e-9)) + told.log_prior
        chosen = fit_explanations._chosen(
            told, fit_explanations._screened(every, told) + told.log_prior
        )
        single = [i for i, item in enumerate(told.items) if item.kind == "task"]
        assert max(single, key=lambda i: float(exact[i])) in chosen


def test_mirrored_tasks_are_told_as_mirrored() -> None:
    prior, task = data("mirrored", 15)
    model = prior.condition(task)
    assert isinstance(model, AverageGP)
    verdict = model.explain()
    assert verdict.none < 0.5
    assert sum(verdict.mirrored.values()) > 0.5 * sum(verdict.matters.values())


def test_what_is_not_fitted_counts_for_the_past_as_a_whole() -> None:
    prior, task = data("related", 7)
    told = prior.explanations
    assert told is not None
    scaling, _ = prior.prepare(task)
    found = explain_task(prior.task_gps, told, task, scaling)
    every = fit_explanations._problem(prior.task_gps, told, task, scaling, prior.rows)
    chosen = fit_explanations._chosen(told, fit_explanations._screened(every, told) + told.log_prior)
    member = fit_explanations._with_the_rest(found.log_probability, chosen, told).exp()
    p = found.log_probability.exp()
    (whole,) = [i for i, e in enumerate(told.items) if e.kind == "all" and not e.mirrored]
    assert len(chosen) < len(told)
    for place, i in enumerate(chosen):
        expected = p[i] + (1.0 - p[chosen].sum() if i == whole else 0.0)
        torch.testing.assert_close(member[place], expected)


def test_tolerances_of_the_fits_hardly_change_the_evidence() -> None:
    prior, task = data("shifted", 10)
    told = prior.explanations
    assert told is not None
    every = fit_explanations._problem(prior.task_gps, told, task, prior.prepare(task)[0], prior.rows)
    fine, coarse = (
        log_evidence(every, fit_explanations._minima(every, tolerance)) for tolerance in (1e-9, 1e-6)
    )
    torch.testing.assert_close(fine, coarse, atol=2e-3, rtol=0)
