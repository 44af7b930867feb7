"""Integers and seeds: which are accepted, which are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scaml.common.checks import check_integer, check_seed
from scaml.errors import SettingError


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), 10**30])
def test_integers_of_any_type_become_ints(value: Any) -> None:
    found = check_integer(value, "q", least=3)
    assert type(found) is int
    assert found == value


@pytest.mark.parametrize("value", [2, -3, 3.0, np.float64(3), "3", None, True, np.bool_(True), [3]])
def test_other_values_are_refused_with_their_name(value: Any) -> None:
    with pytest.raises(SettingError) as caught:
        check_integer(value, "The size q", least=3)
    assert str(caught.value) == f"The size q is {value!r}; give an integer of at least 3."


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), 2**62 - 1])
def test_seeds_become_ints(seed: Any) -> None:
    assert type(check_seed(seed)) is int
    assert check_seed(seed) == seed


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "The seed is -1; give an integer of at least 0."),
        (0.5, "The seed is 0.5; give an integer of at least 0."),
        (True, "The seed is True; give an integer of at least 0."),
        (2**62, f"The seed is {2**62}; give an integer below 2**62."),
    ],
)
def test_other_seeds_are_refused(seed: Any, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        check_seed(seed)
    assert str(caught.value) == message
