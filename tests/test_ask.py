"""`suggest`: purity, batches, tables, other acquisition functions, bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    qKnowledgeGradient,
    qLogNoisyExpectedImprovement,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from scaml import MetaData, SettingError, SpaceError, Task, TaskDataError, suggest
from scaml.methods import GPBO
from scaml.model.normalization import NormalizationName
from tests.cases import ONE_MODEL, meta_data, task_of

META = meta_data((10, 14, 8), 2)
PRIOR = ONE_MODEL.meta_fit(META)
TASK = task_of(5, 2)
TABLE = torch.rand(12, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize("n_t", [0, 1, 5])
def test_same_arguments_same_answer(n_t: int) -> None:
    task = Task(TASK.X[:n_t], TASK.y[:n_t])
    torch.manual_seed(1)
    first = suggest(PRIOR, task, q=2, seed=4)
    torch.manual_seed(2)
    assert torch.equal(first, suggest(PRIOR, task, q=2, seed=4))
    assert first.shape == (2, 2)
    assert first.dtype == torch.float64
    assert ((first >= 0) & (first <= 1)).all()


def test_nothing_is_left_behind() -> None:
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    suggest(PRIOR, TASK, seed=4)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_num_threads() == threads


def test_jobs_do_not_change_the_answer() -> None:
    answers = [suggest(ONE_MODEL.meta_fit(META, seed=2, n_jobs=n), TASK, seed=2) for n in (1, 2)]
    assert torch.equal(*answers)


def test_order_of_past_tasks_does_not_change_the_answer() -> None:
    backwards = ONE_MODEL.meta_fit(MetaData(list(META)[::-1]))
    a, b = PRIOR.condition(TASK), backwards.condition(TASK)
    torch.testing.assert_close(b.weights.flip(0), a.weights, rtol=0, atol=1e-4)
    X = TABLE
    torch.testing.assert_close(b.posterior(X).mean, a.posterior(X).mean, rtol=1e-4, atol=1e-4)


@given(
    a=st.floats(1e-3, 1e3),
    b=st.floats(-10.0, 10.0),
    n_t=st.sampled_from([0, 1, 4]),
    normalization=st.sampled_from(["pooled", "union"]),
)
@settings(max_examples=12, deadline=None)
def test_affine_change_of_all_y_carries_over(
    a: float, b: float, n_t: int, normalization: NormalizationName
) -> None:
    task = Task(TASK.X[:n_t], TASK.y[:n_t])
    changed = Task(task.X, a * (task.y + b))
    method = replace(ONE_MODEL, normalization=normalization)
    prior = method.meta_fit(META)
    other = method.meta_fit(MetaData([Task(t.X, a * (t.y + b), name=t.name) for t in META]))
    before, after = prior.condition(task).posterior(TABLE), other.condition(changed).posterior(TABLE)
    torch.testing.assert_close(after.mean / a - b, before.mean, rtol=0, atol=1e-6)
    torch.testing.assert_close(after.variance / a**2, before.variance, rtol=1e-6, atol=1e-6)
    x, moved = suggest(prior, task, seed=1), suggest(other, changed, seed=1)
    torch.testing.assert_close(moved, x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_t", [0, 5])
def test_points_of_a_batch_are_distinct_and_account_for_each_other(n_t: int) -> None:
    task = Task(TASK.X[:n_t], TASK.y[:n_t])
    batch = suggest(PRIOR, task, q=4, seed=0)
    distance = torch.cdist(batch, batch) + torch.eye(4)
    assert distance.min() > 1e-4
    torch.testing.assert_close(batch[:1], suggest(PRIOR, task, q=1, seed=0))
    # Each next point is where the model is still unsure once the ones before it are believed.
    model = PRIOR.condition(task)
    believed = model.condition_on_observations(batch[:1], model.posterior(batch[:1]).mean)
    second = suggest(PRIOR, task, q=2, seed=0)[1:]
    ucb = PRIOR.acquisition(believed)
    assert ucb(second.unsqueeze(-2)) >= ucb(batch[:1].unsqueeze(-2)) - 1e-9


def test_table_rows_are_the_best_rows() -> None:
    row = suggest(PRIOR, TASK, candidates=TABLE, seed=0)
    values = PRIOR.acquisition(PRIOR.condition(TASK))(TABLE.unsqueeze(-2))
    assert torch.equal(row[0], TABLE[values.argmax()])


def test_no_row_twice_until_all_are_used() -> None:
    task = Task.empty(d=2)
    for _ in range(4):
        x = suggest(PRIOR, task, q=3, candidates=TABLE.numpy(), seed=0)
        task = task.append(x, np.zeros(3))
    assert len({tuple(row.tolist()) for row in task.X}) == len(TABLE)
    again = suggest(PRIOR, task, q=2, candidates=TABLE, seed=0)
    assert len({tuple(row.tolist()) for row in again}) == 2


def test_a_model_that_knows_nothing_takes_any_row_by_the_seed() -> None:
    prior = GPBO().meta_fit(meta_data((5,), 2))
    rows = [suggest(prior, Task.empty(d=2), candidates=TABLE, seed=s) for s in range(20)]
    assert len(torch.cat(rows).unique(dim=0)) > 3
    assert torch.equal(rows[3], suggest(prior, Task.empty(d=2), candidates=TABLE, seed=3))


def test_more_points_than_rows() -> None:
    x = suggest(PRIOR, Task.empty(d=2), q=5, candidates=TABLE[:2], seed=0)
    assert len({tuple(row.tolist()) for row in x[:2]}) == 2
    assert x.shape == (5, 2)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("candidates", [None, TABLE])
@pytest.mark.parametrize("name", ["log-ei", "log-nei", "kg"])
def test_any_botorch_acquisition_function(name: str, candidates: Any, q: int) -> None:
    make = {
        "log-ei": lambda m: LogExpectedImprovement(m, best_f=TASK.y.max()),
        "log-nei": lambda m: qLogNoisyExpectedImprovement(m, X_baseline=TASK.X),
        "kg": lambda m: qKnowledgeGradient(m, num_fantasies=2),
    }[name]
    if name == "kg" and candidates is not None:
        with pytest.raises(SettingError, match="one-shot"):
            suggest(PRIOR, TASK, q=q, candidates=candidates, acquisition=make)
        return
    x = suggest(PRIOR, TASK, q=q, candidates=candidates, seed=0, acquisition=make)
    assert torch.equal(x, suggest(PRIOR, TASK, q=q, candidates=candidates, seed=0, acquisition=make))
    assert x.shape == (q, 2)
    assert len({tuple(row.tolist()) for row in x}) == q


def test_plain_gp_starts_at_a_seeded_random_point() -> None:
    prior = GPBO().meta_fit(META)
    first, again, other = (suggest(prior, Task.empty(d=2), seed=s) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"prior": ONE_MODEL}, SettingError, "The prior is a ScaML; give what meta_fit returns"),
        ({"q": 0}, SettingError, "q is 0"),
        ({"q": 1.5}, SettingError, "q is 1.5"),
        ({"seed": -1}, SettingError, "seed is -1"),
        ({"candidates": np.zeros((3, 4))}, SpaceError, "4 columns but the space has 2"),
        ({"candidates": np.zeros((0, 2))}, SpaceError, "no row"),
        ({"candidates": np.full((3, 2), np.nan)}, TaskDataError, "rows 0, 1, 2"),
        ({"candidates": np.full((3, 2), 50.0)}, TaskDataError, "far outside the unit cube"),
        ({"task": Task.empty(d=3)}, SpaceError, "3 parameters but the past tasks have 2"),
        ({"task": "new"}, TaskDataError, "is a str"),
    ],
)
def test_bad_input(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        suggest(**{"prior": PRIOR, "task": TASK, **arguments})


def test_pending_points_are_taken_for_observed_as_expected() -> None:
    """The first point is chosen as if the pending ones had come out as the model expects."""
    prior, task = ONE_MODEL.meta_fit(meta_data((8, 9), 2)), task_of(4, 2)
    (first,) = suggest(prior, task, seed=3)
    (second,) = suggest(prior, task, pending=first[None], seed=3)
    assert (second - first).abs().max() > 0.01
    model = prior.condition(task, seed=3)
    expected = model.condition_on_observations(first[None], model.posterior(first[None]).mean)
    with torch.no_grad():
        values = prior.acquisition(expected)(torch.stack([first, second]).unsqueeze(-2))
    assert values[1] > values[0]
