"""The plain GP with expected improvement that the page on the defaults compares with."""

from __future__ import annotations

import torch

from benchmarks.gpbo_logei import LogEI
from scaml.bench import FAMILIES
from scaml.data import Task
from scaml.loop import suggest
from scaml.methods import GPBO

BRANIN = FAMILIES["branin"]
META = BRANIN.meta_data(2, 8, seed=0)


def points(n: int, seed: int) -> torch.Tensor:
    return torch.rand(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_chooses_the_row_of_most_expected_improvement() -> None:
    X, table = points(6, seed=1), points(200, seed=2)
    task = Task(X, BRANIN.draw(0)(X))
    prior = LogEI().meta_fit(META)
    there = prior.condition(task).posterior(table[:, None])
    best = prior.condition(task).posterior(X).mean.max()
    mean, deviation = there.mean.flatten(), there.variance.flatten().sqrt()
    normal, u = torch.distributions.Normal(0.0, 1.0), (mean - best) / deviation
    improvement = deviation * (normal.log_prob(u).exp() + u * normal.cdf(u))
    assert torch.equal(suggest(prior, task, candidates=table)[0], table[improvement.argmax()])


def test_is_gpbo_before_there_are_data() -> None:
    nothing = Task.empty(2)
    ours = suggest(LogEI().meta_fit(META), nothing, seed=3)
    assert torch.equal(ours, suggest(GPBO().meta_fit(META), nothing, seed=3))
