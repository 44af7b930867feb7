"""What a search asks of an acquisition function: ours have it, BoTorch's work without."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import AcquisitionFunction, LogExpectedImprovement
from botorch.acquisition import UpperConfidenceBound as BoTorchUCB

from scaml import suggest
from scaml.ask import choose_new
from scaml.search.log_nei import NoisyExpectedImprovement
from scaml.search.protocols import Explores, HasBestPoints, OfMoments, Sloped
from scaml.search.ucb import UpperConfidenceBound
from tests.cases import ONE_MODEL, meta_data, pair, query, task_of

PROTOCOLS = (OfMoments, Explores, HasBestPoints, Sloped)
MODEL = pair("se", (6, 9), 4, d=2, seed=1).model


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (UpperConfidenceBound(MODEL), {OfMoments, Explores, Sloped}),
        (NoisyExpectedImprovement(MODEL), {OfMoments, Explores, HasBestPoints, Sloped}),
        (BoTorchUCB(MODEL, beta=9.0), set()),
    ],
    ids=["UCB", "log-NEI", "BoTorch's UCB"],
)
def test_who_has_what(function: AcquisitionFunction, expected: set[type]) -> None:
    assert {p for p in PROTOCOLS if isinstance(function, p)} == expected


def test_a_foreign_function_is_maximized_on_a_table_as_well() -> None:
    prior, task, table = ONE_MODEL.meta_fit(meta_data((8, 9), 2)), task_of(4, 2), query(30, 2)
    best = float(task.y.max())
    x = suggest(
        prior, task, candidates=table, acquisition=lambda model: LogExpectedImprovement(model, best)
    )
    with torch.no_grad():
        values = LogExpectedImprovement(prior.condition(task), best)(table.unsqueeze(-2))
    assert torch.equal(x[0], table[values.argmax()])


def test_a_repeated_point_makes_ours_bolder() -> None:
    """With √β = 0 the search returns to the best mean; the bolder UCB leaves it."""
    prior = replace(ONE_MODEL, acquisition="ucb", sqrt_beta=0.0).meta_fit(meta_data((12, 15), 2))
    task = task_of(6, 2)
    model = prior.condition(task)
    nothing = torch.empty(0, 2, dtype=torch.float64)
    x = choose_new(prior, model, task, 1, nothing, 0)
    # The best value, observed twice, leaves nothing to gain beside it.
    again = task.append(torch.cat([x, x]), model.posterior(x).mean.expand(2, 1).flatten())
    other = choose_new(prior, prior.condition(again), again, 1, nothing, 0)
    assert (other - again.X).abs().amax(-1).min() >= 1e-3
