"""Data and assertions that the tests of tasks share."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
from torch import Tensor

X = [[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]]
Y = [1.0, -2.0, 3.5]
NAN, INF = float("nan"), float("inf")


def equal(tensor: Tensor, expected: Any) -> bool:
    """Same type, shape and bits as the float64 array that was expected."""
    array = np.asarray(expected, dtype=np.float64)
    return tensor.dtype == torch.float64 and np.array_equal(tensor.numpy(), array)


def assert_one_sentence(message: str) -> None:
    """The message says what was wrong and what was got; what to do."""
    assert message.endswith(".")
    assert "\n" not in message
    assert not re.search(r"[.!?]\s", message), f"more than one sentence: {message}"
    found, semicolon, remedy = message.partition("; ")
    assert found
    assert semicolon
    assert len(remedy.split()) > 1, f"does not say what to do: {message}"


def assert_says(message: str, fragments: list[str]) -> None:
    """The message is one sentence that has all fragments."""
    assert_one_sentence(message)
    missing = [part for part in fragments if part not in message]
    assert not missing, f"{missing} not in: {message}"
