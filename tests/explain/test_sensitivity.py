from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from scaml.explain.parameters import parameters_of, sample
from scaml.explain.sensitivity import sensitivities
from tests.cases import MIXED
from tests.run_cases import Known


def of(function: Callable[[Tensor], Tensor], d: int = 3) -> list[float]:
    parameters = parameters_of(None, d)
    X = sample(parameters, 256, seed=0)
    return sensitivities(Known(function), parameters, X).tolist()


def test_a_sum_of_lines_is_divided_by_their_squared_slopes() -> None:
    found = of(lambda X: 5.0 + 3.0 * X[..., 0] - 1.0 * X[..., 2])
    assert found == pytest.approx([0.9, 0.0, 0.1], abs=0.02)
    assert found[1] == 0.0


def test_what_parameters_do_only_together_belongs_to_none() -> None:
    found = of(lambda X: (X[..., 0] - 0.5) * (X[..., 1] - 0.5))
    assert max(found) < 0.01


def test_a_flat_mean_has_no_sensitivities() -> None:
    assert of(lambda X: 1e6 + 1e-12 * X[..., 0]) == [0.0, 0.0, 0.0]


def test_choices_and_steps_count_alike() -> None:
    parameters = parameters_of(MIXED, MIXED.d)
    X = sample(parameters, 256, seed=0)
    kind = torch.tensor([0.0, 1.0, 5.0], dtype=torch.float64) / 0.5**1.5
    found = sensitivities(
        Known(lambda X: X[..., 1:4] @ kind + 2.0 * X[..., 4]), parameters, X
    )  # rate, kind, depth, share
    by_kind, by_depth = 14.0 / 3.0, 4.0 / 6.0  # variances of (0, 1, 5) and of (0, 1, 2)
    total = by_kind + by_depth
    assert found.tolist() == pytest.approx([0.0, by_kind / total, by_depth / total, 0.0], abs=0.03)
