"""Checks of arguments that are not data: whole numbers and seeds."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from scaml.errors import SettingError

__all__ = ["check_integer", "check_seed"]


def check_integer(value: Any, what: str, *, least: int) -> int:
    """A whole number of at least `least` as Python's int, or a sentence of what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise SettingError(f"{what} is {value!r}; give an integer of at least {least}.")
    return int(value)


def check_seed(seed: int) -> int:
    """The seed as Python's int, or a refusal."""
    seed = check_integer(seed, "The seed", least=0)
    if seed >= 2**62:  # what torch's generators take, and room to count on from there
        raise SettingError(f"The seed is {seed}; give an integer below 2**62.")
    return seed
