"""Validates arrays from the user and converts them to float64 tensors; no other module does so."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from scaml.common.wording import counted
from scaml.errors import SpaceError, TaskDataError

__all__ = ["COORDINATES", "LARGEST_Y", "as_numbers", "check_finite", "check_points", "check_values"]

# Points may lie a little outside the unit cube: the ranges of a past task may have been wider. Values
# in raw units lie further out, so that they are refused.
COORDINATES = (-1.0, 2.0)
# Squares of larger values, and of smaller spreads, leave the range of float64.
LARGEST_Y = 1e100
_SMALLEST_SPREAD = 1e-100
_ROWS_SHOWN = 5


def check_points(X: Any, what: str, *, d: int | None = None) -> Tensor:
    """A copy of X as an `n x d` float64 tensor.

    Args:
        X: Array-like.
        what: Name of X in error messages.
        d: The number of columns that X must have; None for any.

    Raises:
        TaskDataError: X is not an `n x d` array of finite numbers in or near the unit cube.
        SpaceError: X has another number of columns than d.
    """
    points = as_numbers(X, what)
    if points.ndim != 2 or points.shape[1] < 1:
        raise TaskDataError(f"{what} has shape {tuple(points.shape)}; give an n x d array.")
    if d is not None and points.shape[1] != d:
        raise SpaceError(
            f"{what} has {counted(points.shape[1], 'column')} but the space has "
            f"{counted(d, 'parameter')}; give one column per parameter."
        )
    check_finite(points, what)
    outside = ((points < COORDINATES[0]) | (points > COORDINATES[1])).any(-1)
    if outside.any():
        row = int(outside.nonzero()[0])
        worst = points[row][(points[row] - 0.5).abs().argmax()].item()
        raise TaskDataError(
            f"{what} lies far outside the unit cube in {_in_rows(outside)} ({worst:g} in row "
            f"{row}); rescale every parameter to [0, 1]."
        )
    return points


def as_numbers(values: Any, what: str) -> Tensor:
    """A detached float64 copy of any array-like of real numbers."""
    try:
        if isinstance(values, list | tuple):  # NumPy refuses tensors that require a gradient
            values = [v.detach() if isinstance(v, Tensor) else v for v in values]
        elif isinstance(values, Tensor) and not values.is_complex():
            values = values.detach().cpu().double().numpy()
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise TaskDataError(
            f"{what} is not a rectangular array of numbers; give rows of equal length, or one tensor."
        ) from error
    if array.dtype.kind not in "biuf":
        raise TaskDataError(
            f"{what} holds {array.dtype} values; give real numbers, for example by "
            "np.asarray(values, dtype=float)."
        )
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def check_finite(values: Tensor, what: str) -> None:
    """Refuse NaN and infinite values."""
    bad = ~values.isfinite()
    bad = bad.any(-1) if bad.ndim == 2 else bad
    if bad.any():
        raise TaskDataError(
            f"{what} has NaN or infinite values in {_in_rows(bad)}; drop or correct these rows."
        )


def check_values(y: Tensor, what: str) -> None:
    """Refuse values of y so large, or a spread of y so small, that float64 cannot square them."""
    check_finite(y, what)
    if not len(y):
        return
    huge = y.abs() > LARGEST_Y
    if huge.any():
        raise TaskDataError(
            f"{what} exceeds {LARGEST_Y:g} in magnitude in {_in_rows(huge)}; rescale y to another unit."
        )
    spread = float(y.max() - y.min())
    if 0.0 < spread < _SMALLEST_SPREAD:
        raise TaskDataError(
            f"{what} varies by only {spread:g}, too little for float64; rescale y to another unit."
        )


def _in_rows(bad: Tensor) -> str:
    rows = bad.nonzero().flatten().tolist()
    shown = ", ".join(map(str, rows[:_ROWS_SHOWN]))
    more = f" and {len(rows) - _ROWS_SHOWN} more" if len(rows) > _ROWS_SHOWN else ""
    return f"row{'' if len(rows) == 1 else 's'} {shown}{more}"
