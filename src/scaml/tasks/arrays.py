"""Arrays from outside as float64 tensors: the only place that validates them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from scaml.common.wording import counted
from scaml.errors import SpaceError, TaskDataError

__all__ = ["COORDINATES", "LARGEST_Y", "as_numbers", "check_finite", "check_points", "check_values"]

# Points may leave the cube a little (past ranges that were wider); raw units never fit in here.
COORDINATES = (-1.0, 2.0)
# Beyond these, squares of y leave the range of float64.
LARGEST_Y = 1e100
_SMALLEST_SPREAD = 1e-100
_ROWS_SHOWN = 5


def check_points(X: Any, what: str, *, d: int | None = None) -> Tensor:
    """X as an `n x d` float64 tensor of its own, or a sentence of what is wrong with it.

    Args:
        X: Array-like.
        what: How to call X in the sentence.
        d: The dimension that X must have; None for any.
    """
    points = as_numbers(X, what)
    if points.ndim != 2 or points.shape[1] < 1:
        raise TaskDataError(f"{what} has shape {tuple(points.shape)}; give an n x d array.")
    if d is not None and points.shape[1] != d:
        raise SpaceError(
            f"{what} has {counted(points.shape[1], 'column')} but the space has "
            f"{counted(d, 'parameter')}; give one column for each parameter."
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
    """A detached float64 copy of anything that holds real numbers."""
    try:
        if isinstance(values, list | tuple):  # of tensors, perhaps: NumPy refuses those with a gradient
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
            f"{what} has NaN or infinite values in {_in_rows(bad)}; drop or mend these rows."
        )


def check_values(y: Tensor, what: str) -> None:
    """Refuse y that float64 cannot square, or whose spread it cannot."""
    check_finite(y, what)
    if not len(y):
        return
    huge = y.abs() > LARGEST_Y
    if huge.any():
        raise TaskDataError(
            f"{what} is beyond {LARGEST_Y:g} in {_in_rows(huge)}; rescale y, its unit does not matter."
        )
    spread = float(y.max() - y.min())
    if 0.0 < spread < _SMALLEST_SPREAD:
        raise TaskDataError(
            f"{what} varies by only {spread:g}, too little for float64; rescale y, its unit "
            "does not matter."
        )


def _in_rows(bad: Tensor) -> str:
    rows = bad.nonzero().flatten().tolist()
    shown = ", ".join(map(str, rows[:_ROWS_SHOWN]))
    more = f" and {len(rows) - _ROWS_SHOWN} more" if len(rows) > _ROWS_SHOWN else ""
    return f"row{'' if len(rows) == 1 else 's'} {shown}{more}"
