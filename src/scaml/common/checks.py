"""Checks of arguments that are not data: whole numbers and seeds."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from scaml.errors import SettingError

__all__ = ["check_integer", "check_seed"]


def check_integer(value: Any, what: str, *, least: int) -> int:
    """The value as Python's int.

    Args:
        value: Must be an integer, but not a bool.
        what: Name of the value in the error message.
        least: The smallest allowed value.

    Raises:
        SettingError: The value is not an integer, or it is below `least`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise SettingError(f"{what} is {value!r}; give an integer of at least {least}.")
    return int(value)


def check_seed(seed: int) -> int:
    """The seed as Python's int.

    Raises:
        SettingError: The seed is not an integer from 0 to 2**62 - 1.
    """
    seed = check_integer(seed, "The seed", least=0)
    if seed >= 2**62:  # torch's generators take a little more; callers may add small numbers to a seed
        raise SettingError(f"The seed is {seed}; give an integer below 2**62.")
    return seed
