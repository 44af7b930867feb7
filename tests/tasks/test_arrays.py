"""Arrays from the user: what is accepted, what is refused, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from scaml.errors import SpaceError, TaskDataError
from scaml.tasks.arrays import (
    COORDINATES,
    LARGEST_Y,
    as_numbers,
    check_finite,
    check_points,
    check_values,
)
from tests.tasks.cases import INF, NAN, X, assert_one_sentence, assert_says, equal

# Accepted.


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.uint8, np.bool_])
def test_narrow_types_are_widened_without_change(dtype: Any) -> None:
    assert equal(as_numbers(np.array([[0, 1], [1, 1]], dtype=dtype), "X"), [[0, 1], [1, 1]])


def test_float32_keeps_its_own_value() -> None:
    rounded = np.float64(np.float32(0.1))
    assert equal(as_numbers(np.array([[0.1]], dtype=np.float32), "X"), [[rounded]])
    assert equal(as_numbers(torch.tensor([0.1], dtype=torch.float32), "y"), [rounded])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_floating_tensor_is_accepted(dtype: torch.dtype) -> None:
    assert equal(as_numbers(torch.tensor([[0.5], [0.25]], dtype=dtype), "X"), [[0.5], [0.25]])


def test_tensors_that_require_grad_are_detached() -> None:
    points = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    found = as_numbers(points * 1.0, "X")
    assert not found.requires_grad
    assert equal(found, X)


def test_a_list_of_tensors_that_require_grad_is_accepted() -> None:
    values = [torch.tensor(y, dtype=torch.float64, requires_grad=True) for y in (1.0, 2.0)]
    assert equal(as_numbers(values, "y"), [1.0, 2.0])


def test_a_read_only_array_is_accepted() -> None:
    points = np.array(X)
    points.setflags(write=False)
    assert equal(check_points(points, "X"), X)


def test_points_of_the_right_dimension_come_back_as_a_copy() -> None:
    points = torch.tensor(X, dtype=torch.float64)
    checked = check_points(points, "candidates", d=2)
    points[0, 0] = 0.77
    assert equal(checked, X)


def test_points_may_lie_outside_the_cube_up_to_the_limits() -> None:
    low, high = COORDINATES
    assert equal(check_points([[low, high]], "X"), [[low, high]])
    for beyond in (np.nextafter(low, -INF), np.nextafter(high, INF)):
        with pytest.raises(TaskDataError, match="far outside the unit cube"):
            check_points([[0.5, beyond]], "X")


@pytest.mark.parametrize(
    "values",
    [[], [3.0], [0.0, 0.0], [1e-300, 1e-300], [LARGEST_Y, -LARGEST_Y], [1e-90, 2e-90]],
)
def test_values_that_float64_can_square_are_accepted(values: list[float]) -> None:
    check_values(torch.tensor(values, dtype=torch.float64), "y")


# Refused.

POINTS: dict[str, tuple[Any, list[str]]] = {
    "nan": ([[0.1], [NAN], [0.3], [NAN]], ["candidates", "NaN", "rows 1, 3;"]),
    "inf": ([[0.1, 0.2], [0.1, INF]], ["infinite", "row 1;"]),
    "many nan": ([[NAN]] * 9, ["rows 0, 1, 2, 3, 4 and 4 more"]),
    "vector": ([0.1, 0.2], ["(2,)", "n x d"]),
    "number": (0.1, ["()", "n x d"]),
    "three dimensions": (np.zeros((2, 3, 4)), ["(2, 3, 4)", "n x d"]),
    "no column": (np.zeros((2, 0)), ["(2, 0)", "n x d"]),
    "above": ([[0.5, 0.5], [0.2, 37.5]], ["row 1", "37.5", "[0, 1]"]),
    "below": ([[-40.0], [0.5]], ["row 0", "-40", "[0, 1]"]),
    "1e300": ([[1e300], [0.5]], ["row 0", "1e+300"]),
    "objects": (np.array([[0.1], [0.2]], dtype=object), ["object", "real numbers"]),
    "dictionary": ({"x": [0.1]}, ["object"]),
    "ragged": ([[0.1, 0.2], [0.3]], ["rectangular"]),
    "strings": ([["0.1"], ["0.2"]], ["real numbers"]),
    "dates": (np.array([["2024-01-01"]] * 3, dtype="M8[D]"), ["datetime64"]),
    "complex": ([[0.1 + 0j], [0.2]], ["complex128"]),
    "complex tensor": (torch.zeros(3, 1, dtype=torch.complex64), ["complex64"]),
}


@pytest.mark.parametrize(("points", "fragments"), POINTS.values(), ids=POINTS.keys())
def test_bad_points_are_refused_in_one_sentence(points: Any, fragments: list[str]) -> None:
    with pytest.raises(TaskDataError) as caught:
        check_points(points, "candidates")
    assert_says(str(caught.value), ["candidates", *fragments])


@pytest.mark.parametrize(
    ("values", "fragments"),
    [
        ([1.0, NAN], ["y", "NaN", "row 1;"]),
        ([1.0, 1e300, -1e300], ["y", "1e+100", "rows 1, 2", "rescale"]),
        ([1e300] * 3, ["rows 0, 1, 2", "rescale"]),
        ([1e-300, 3e-300], ["y", "2e-300", "rescale"]),
    ],
)
def test_bad_values_are_refused_in_one_sentence(values: list[float], fragments: list[str]) -> None:
    with pytest.raises(TaskDataError) as caught:
        check_values(torch.tensor(values, dtype=torch.float64), "y")
    assert_says(str(caught.value), fragments)


def test_a_vector_is_checked_entry_by_entry_and_a_matrix_row_by_row() -> None:
    bad = torch.tensor([[0.0, NAN], [0.0, 0.0], [INF, 0.0]], dtype=torch.float64)
    with pytest.raises(TaskDataError, match=r"in rows 0, 2;"):
        check_finite(bad, "X")
    with pytest.raises(TaskDataError, match=r"in row 1;"):
        check_finite(bad[0], "y")


def test_points_of_another_dimension_do_not_fit_the_space() -> None:
    with pytest.raises(SpaceError) as caught:
        check_points([[0.1, 0.2]], "candidates", d=3)
    message = str(caught.value)
    assert_one_sentence(message)
    assert "2 columns" in message
    assert "3 parameters" in message
