"""Words for messages: counts with their noun, and the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["counted", "nearest"]


def counted(n: int, noun: str) -> str:
    """The number with its noun: "1 point", "2 points"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def nearest(name: str, names: Iterable[str]) -> str:
    """The most similar of the names, for a message about a name that does not exist."""
    return get_close_matches(str(name), list(names), n=1, cutoff=0.0)[0]
