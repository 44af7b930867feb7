"""The terms of the past tasks: those of weight 0 are skipped, chunks change nothing."""

from __future__ import annotations

import pytest
import torch

from scaml import ScaMLGP, Task
from scaml.gp.units import Units
from scaml.methods import GPBO, SGPT
from tests.cases import meta_data, pair, query, task_of


def test_a_task_of_weight_0_has_no_part() -> None:
    model = pair("se", (6, 9, 5), 4, 2, seed=3).model
    theta = model.hyperparameters
    theta.weights[1] = 0.0
    units = Units(model.y_offset, model.y_scale)
    parts = ScaMLGP(model.task_gps, Task.empty(d=2), units, theta).past_parts()
    assert parts is not None
    X = query(10, 2)
    assert (parts.means(X)[1] == 0).all()
    assert (parts.variances(X)[1] == 0).all()
    assert (parts.means(X)[[0, 2]] != 0).any()


def test_chunks_of_points_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = pair("se", (6, 9, 5), 4, 2, seed=3).model, query(10, 2)
    parts = model.past_parts()
    assert parts is not None
    whole = parts.means(X), parts.variances(X)
    monkeypatch.setattr("scaml.model.past_parts._CHUNK", 3)
    torch.testing.assert_close(parts.means(X), whole[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.variances(X), whole[1], rtol=1e-12, atol=1e-12)


def test_without_a_past_there_are_no_parts() -> None:
    assert GPBO().meta_fit(meta_data((8, 9), 2)).condition(task_of(5, 2)).past_parts() is None


def test_means_alone() -> None:
    """SGPT takes the variance of the new data's GP alone."""
    model = SGPT().meta_fit(meta_data((8, 9), 2)).condition(task_of(5, 2))
    parts, X = model.past_parts(), query(6, 2)
    assert not parts.of_prior
    assert (parts.variances(X)[:-1] == 0).all()
    torch.testing.assert_close(
        parts.variances(X)[-1], model.posterior(X.unsqueeze(-2)).variance.flatten()
    )
