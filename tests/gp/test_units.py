"""Units of one task's values: offset, scale, and what counts as constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from scaml.gp.units import (
    SMALLEST_SCALE,
    Units,
    deviation_of,
    first_positive,
    rounded,
    standardize,
)

TASKS = [[1.0, 4.0, 2.5], [10.0, 12.0], [-3.0, 5.0, 0.5, 0.25, 7.0], [20.0, 26.0, 21.0, 24.5]]


def tensor(values: Sequence[float] | float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def assert_units(found: Units, offset: Any, scale: Any, rel: float = 1e-12) -> None:
    assert found.offset.dtype == found.scale.dtype == torch.float64
    assert found.offset.shape == found.scale.shape == ()
    assert found.offset.item() == pytest.approx(offset, rel=rel, abs=1e-300)
    assert found.scale.item() == pytest.approx(scale, rel=rel, abs=0.0)


@pytest.mark.parametrize("values", [*TASKS, [1e90, 2e90, -3e90], [1e-90, 2e-90]])
def test_a_task_is_standardized_by_mean_and_sample_deviation(values: list[float]) -> None:
    assert_units(standardize(tensor(values)), np.mean(values), np.std(values, ddof=1))


@pytest.mark.parametrize("value", [0.1, -0.3, 1 / 3, 7.7, 1e-3, 1e90, -1e-90])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 10])
def test_constant_values_keep_their_magnitude_as_scale(value: float, n: int) -> None:
    """Also where the mean of equal numbers is not that number in floating point."""
    assert_units(standardize(tensor([value] * n)), value, abs(value))


def test_zeros_have_unit_scale() -> None:
    assert_units(standardize(tensor([0.0, 0.0])), 0.0, 1.0)


def test_no_values_have_unit_scale() -> None:
    assert_units(standardize(tensor([])), 0.0, 1.0)


@pytest.mark.parametrize("values", TASKS)
def test_deviation_is_the_sample_standard_deviation(values: list[float]) -> None:
    assert deviation_of(tensor(values)).item() == pytest.approx(np.std(values, ddof=1), rel=1e-14)


@pytest.mark.parametrize("values", [[], [3.0], [0.0, 0.0], [0.1 + 0.2, 0.3, 0.3], [1e90] * 3])
def test_deviation_of_constant_values_is_exactly_zero(values: list[float]) -> None:
    found = deviation_of(tensor(values))
    assert found.dtype == torch.float64
    assert found.item() == 0.0


def test_a_deviation_is_rounding_error_relative_to_the_largest_value() -> None:
    assert rounded(tensor(1.1e-10), tensor(1e3)).item() == 1.1e-10
    assert rounded(tensor(0.9e-10), tensor(1e3)).item() == 0.0
    assert rounded(tensor(0.9e-10), tensor(1e2)).item() == 0.9e-10


def test_the_first_scale_that_float64_can_square_is_taken() -> None:
    assert first_positive(tensor(0.0), tensor(3.0), tensor(4.0)).item() == 3.0
    assert first_positive(tensor(SMALLEST_SCALE), tensor(2.0)).item() == 2.0
    assert first_positive(tensor(2.0 * SMALLEST_SCALE), tensor(2.0)).item() == 2.0 * SMALLEST_SCALE
    assert first_positive(tensor(0.0)).item() == first_positive().item() == 1.0


tenths = st.integers(-1000, 1000).map(lambda value: value / 10)


@settings(deadline=None, max_examples=60)
@given(st.lists(tenths, min_size=2, max_size=6), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_an_affine_change_of_a_task_leaves_its_standardized_values(
    values: list[float], a: float, b: float
) -> None:
    assume(np.ptp(values) > 0)
    y = tensor(values)
    z, changed = standardize(y), standardize(a * y + b)
    before, after = (y - z.offset) / z.scale, (a * y + b - changed.offset) / changed.scale
    # a * 0.1 is the least spread and 1e3 the largest offset: eight digits are always left.
    torch.testing.assert_close(after, before, rtol=1e-7, atol=1e-7)
