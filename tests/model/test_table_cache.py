"""What is kept of a table: the same moments as from the model, whatever was asked before."""

from __future__ import annotations

import pickle

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound as BoTorchUCB
from torch import Tensor

from scaml import MetaData, ScaML, Task, suggest
from scaml.bench import FAMILIES
from scaml.methods.scaml import ScaMLPrior
from scaml.model import table_cache as table_rows
from tests.cases import ONE_MODEL

FAMILY = FAMILIES["hartmann3"]


@pytest.fixture(scope="module")
def table() -> Tensor:
    return torch.rand(300, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture(
    params=[ScaML.paper(), ScaML("matern52", "learned", "shared", "ucb")],
    ids=str,
)
def prior(request: pytest.FixtureRequest) -> ScaMLPrior:
    method: ScaML = request.param
    return method.meta_fit(FAMILY.meta_data(4, 20, 0))


def task(table: Tensor, n: int) -> Task:
    return Task(table[:n], FAMILY.draw(0)(table[:n])) if n else Task.empty(3)


@pytest.mark.parametrize("n", [0, 1, 12])
def test_moments_are_those_of_the_posterior(prior: ScaMLPrior, table: Tensor, n: int) -> None:
    model = prior.condition(task(table, n))
    moments = prior.on_table(model, table)
    assert moments is not None
    posterior = model.posterior(table.unsqueeze(-2))
    scale = posterior.variance.max().sqrt().item()
    torch.testing.assert_close(moments[0], posterior.mean.flatten(), rtol=0, atol=1e-9 * scale)
    torch.testing.assert_close(moments[1], posterior.variance.flatten(), rtol=0, atol=1e-9 * scale**2)


def test_tasks_of_other_columns(table: Tensor) -> None:
    """A past task that lacks a parameter and has one of its own."""
    meta = FAMILY.meta_data(3, 20, 0)
    lacks = Task(
        meta[0].X, meta[0].y, known=[True, False, True], extra=meta[1].X[:, :1], name="lacks and has"
    )
    prior = ONE_MODEL.meta_fit(MetaData([lacks, meta[1], meta[2]]))
    model = prior.condition(task(table, 8))
    moments = prior.on_table(model, table)
    assert moments is not None
    posterior = model.posterior(table.unsqueeze(-2))
    torch.testing.assert_close(moments[0], posterior.mean.flatten(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(moments[1], posterior.variance.flatten(), rtol=1e-7, atol=1e-9)


def test_what_was_asked_before_does_not_change_a_bit(prior: ScaMLPrior, table: Tensor) -> None:
    fresh = pickle.loads(pickle.dumps(prior))
    other = FAMILY.draw(5)
    for n in (1, 2, 7):
        prior.on_table(prior.condition(task(table, n)), table)
    prior.on_table(prior.condition(Task(table[50:60], other(table[50:60]))), table)
    prior.on_table(prior.condition(task(table, 3)), table[:40])
    seen = [p.on_table(p.condition(task(table, 9)), table) for p in (prior, fresh)]
    assert seen[0] is not None
    assert seen[1] is not None
    assert torch.equal(seen[0][0], seen[1][0])
    assert torch.equal(seen[0][1], seen[1][1])


@pytest.mark.parametrize("n", [0, 6])
@pytest.mark.parametrize("q", [1, 3])
def test_suggestions_are_those_of_the_plain_search(
    prior: ScaMLPrior, table: Tensor, n: int, q: int
) -> None:
    ours = suggest(prior, task(table, n), q=q, candidates=table)
    plain = suggest(
        prior,
        task(table, n),
        q=q,
        candidates=table,
        acquisition=lambda model: BoTorchUCB(model, beta=9.0),
    )
    assert torch.equal(ours, plain)


def test_a_table_too_large_is_not_kept(
    prior: ScaMLPrior, table: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cache = suggest(prior, task(table, 5), candidates=table)
    monkeypatch.setattr(table_rows, "_MOST_NUMBERS", 4 * 20 * 300 - 1)
    fresh = pickle.loads(pickle.dumps(prior))
    assert fresh.on_table(fresh.condition(task(table, 5)), table) is None
    assert torch.equal(suggest(fresh, task(table, 5), candidates=table), with_cache)


def test_a_model_of_another_prior_gets_its_own_tasks(prior: ScaMLPrior, table: Tensor) -> None:
    prior.on_table(prior.condition(task(table, 4)), table)
    model = ONE_MODEL.meta_fit(FAMILY.meta_data(2, 10, 3)).condition(task(table, 4))
    moments = prior.on_table(model, table)
    assert moments is not None
    posterior = model.posterior(table.unsqueeze(-2))
    torch.testing.assert_close(moments[0], posterior.mean.flatten(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(moments[1], posterior.variance.flatten(), rtol=1e-7, atol=1e-9)


def test_a_pickled_prior_leaves_the_table_behind(prior: ScaMLPrior, table: Tensor) -> None:
    empty = len(pickle.dumps(prior))
    prior.on_table(prior.condition(task(table, 4)), table)
    assert len(pickle.dumps(prior)) == empty
