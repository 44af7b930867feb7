"""Counts and similar names in messages."""

from __future__ import annotations

import pytest

from scaml.common.wording import counted, nearest


@pytest.mark.parametrize(
    ("n", "words"), [(0, "0 points"), (1, "1 point"), (2, "2 points"), (-1, "-1 points")]
)
def test_the_noun_agrees_with_the_number(n: int, words: str) -> None:
    assert counted(n, "point") == words


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lo", "low"), ("high", "high"), ("hgih", "high"), ("stp", "step"), ("typ", "type")],
)
def test_the_most_similar_name_is_found(name: str, expected: str) -> None:
    assert nearest(name, iter(["type", "low", "high", "log", "step"])) == expected


def test_there_is_always_a_name() -> None:
    assert nearest("zzz", ["alpha"]) == "alpha"
    assert nearest("", ["alpha"]) == "alpha"
    assert nearest(5, ["15", "alpha"]) == "15"  # type: ignore[arg-type]
