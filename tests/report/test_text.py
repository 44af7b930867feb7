from __future__ import annotations

import pytest

from scaml.report.text import listed, number, percent, plain, setting, short, signed, with_spread


def test_plain_text_can_be_encoded_and_does_not_reorder_the_line() -> None:
    assert plain("a\nb\t\x00\u202ec\ud800") == "a b   c?"
    plain("\ud800").encode()


@pytest.mark.parametrize("longest", [5, 6, 25])
def test_a_long_name_keeps_both_ends(longest: int) -> None:
    name = "".join(map(chr, range(65, 65 + 50)))
    assert len(short(name, longest)) == longest
    assert name.startswith(short(name, longest).split("…")[0])
    assert name.endswith(short(name, longest).split("…")[1])
    assert short("abcde", longest) == "abcde"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"),
        (-0.5, "−0.5"),
        (123456.7, "123457"),
        (1e6, "1e6"),
        (1.25e-7, "1.25e-7"),
        (9.99999, "10"),
        (float("nan"), "nan"),
        (1e300, "1e300"),
    ],
)
def test_numbers(value: float, words: str) -> None:
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "spread", "words"),
    [
        (-1.23456, 0.0456, "−1.235 ± 0.046"),
        (0.001, 50.0, "0 ± 50"),
        (3.0, 1e-12, "3 ± 1e-12"),
        (2e9, 3e8, "2e9 ± 3e8"),
    ],
)
def test_a_value_has_the_digits_that_its_uncertainty_leaves_it(
    value: float, spread: float, words: str
) -> None:
    assert with_spread(value, spread) == words


def test_shares_and_lists() -> None:
    assert [percent(share) for share in (0.0, 1e-9, 0.0051, 1.0)] == ["0 %", "< 1 %", "1 %", "100 %"]
    assert [listed(words) for words in (["a"], ["a", "b"])] == ["a", "a and b"]


def test_signs_and_settings() -> None:
    assert [signed(value) for value in (0.0, 1.5, -1.5)] == ["0", "+1.5", "−1.5"]
    assert [setting(value) for value in (1e-7, 3, None, "a\nb")] == ["1e-7", "3", "None", "a b"]
