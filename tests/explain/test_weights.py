from __future__ import annotations

import pytest
import torch

from scaml import ScaML
from scaml.explain.run import Inapplicable
from scaml.explain.shares import Shares, past_parts_of
from scaml.explain.weights import weight_rows, weights_of
from scaml.methods import GPBO, RGPE, RMGPUCB, SGPT, StackGP
from tests.cases import meta_data, query, task_of
from tests.run_cases import explained_run, run_of, without_weights


def test_rows_come_by_weight_and_end_with_the_rest() -> None:
    run = run_of()
    rows = weight_rows(run.model, run.points, run.prior.names)
    weights = [row.weight for row in rows[:-1]]
    assert weights == sorted(weights, key=lambda w: -abs(w or 0.0))
    by_name = dict(zip(run.prior.names, run.model.weights.tolist(), strict=True))
    assert {row.name: row.weight for row in rows[:-1]} == by_name
    assert [row.is_rest for row in rows] == [False, False, False, True]
    assert (rows[-1].name, rows[-1].weight, rows[-1].mean) == (None, None, None)
    assert sum(row.variance or 0.0 for row in rows) == pytest.approx(1.0)


def test_every_row_has_the_shares_of_its_task() -> None:
    run = run_of()
    parts = past_parts_of(run.model)
    assert parts is not None
    shares = Shares.of(parts, run.points)
    for row in weight_rows(run.model, run.points, run.prior.names)[:-1]:
        m = run.prior.names.index(row.name or "")
        assert (row.mean, row.variance) == (float(shares.mean[m]), float(shares.variance[m]))


def test_where_all_weights_are_0_the_rest_has_all_of_the_variance() -> None:
    run = without_weights(run_of())
    rows = weight_rows(run.model, run.points, run.prior.names)
    assert [row.mean for row in rows[:-1]] == [0.0, 0.0, 0.0]
    assert [row.variance for row in rows] == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("method", [RGPE(samples=16), SGPT()], ids=["RGPE", "SGPT"])
def test_the_rest_of_an_ensemble_has_a_share_of_the_mean(method: RGPE | SGPT) -> None:
    model = method.meta_fit(meta_data((7, 8), 2)).condition(task_of(4, 2))
    rows = weight_rows(model, query(20, 2), ("t0", "t1"))
    assert rows[-1].is_rest
    assert rows[-1].mean is not None
    assert sum(row.mean or 0.0 for row in rows) == pytest.approx(1.0)


def test_weights_without_shares() -> None:
    model = RMGPUCB().meta_fit(meta_data((7, 8), 2)).condition(task_of(4, 2))
    rows = weight_rows(model, query(4, 2), ("t0", "t1"))
    assert {row.name for row in rows} == {"t0", "t1"}
    assert all(row.mean is None and row.variance is None for row in rows)


def test_models_without_weights() -> None:
    meta, task, Q = meta_data((7, 8), 2), task_of(4, 2), query(4, 2)
    for method in (GPBO(), StackGP()):
        model = method.meta_fit(meta).condition(task)
        assert weights_of(model, meta.names) is None
        with pytest.raises(Inapplicable, match="This model has no weights of the past tasks"):
            weight_rows(model, Q, meta.names)
        with pytest.raises(Inapplicable, match="no past task"):
            weight_rows(model, Q, ())


def test_weights_belong_to_the_names() -> None:
    model = run_of().model
    found = weights_of(model, ("a", "b", "c"))
    assert found is not None
    assert torch.equal(found, model.weights)
    assert weights_of(model, ("a", "b")) is None


def test_rows_have_the_probabilities_of_their_tasks() -> None:
    run = explained_run()
    told = run.verdict
    assert told is not None
    rows = weight_rows(run.model, run.points, run.prior.names)
    for row in rows[:-1]:
        assert row.matters == told.matters[row.name or ""]
        assert row.mirrored == told.mirrored[row.name or ""]
    assert (rows[-1].matters, rows[-1].mirrored) == (None, None)
    assert len({row.matters for row in rows[:-1]}) > 1
    renamed = weight_rows(run.model, run.points, ("x", "y", "z"))
    assert [row.matters for row in renamed] == [row.matters for row in rows]


def test_without_explanations_there_are_no_probabilities() -> None:
    meta, task = meta_data((7, 8), 2), task_of(4, 2)
    for method in (ScaML(weights="shared"), RMGPUCB()):
        rows = weight_rows(method.meta_fit(meta).condition(task), query(4, 2), meta.names)
        assert all(row.matters is None and row.mirrored is None for row in rows)
