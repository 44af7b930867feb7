"""Single cells: numbers, dates, and how a sentence shows them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaml.sheets.cells import flag, is_date, listed, marked, number, numbers, shown, unmarked


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_as_programs_write_them(value: float) -> None:
    assert number(repr(value)) == value
    assert number(repr(value).replace(".", ","), comma=True) == value


@pytest.mark.parametrize(
    "cell", ["12 °C", "1,5", "1,234.5", "1.234,5", "1 000", "1'000", "1_000", "5%", "abc", "0x1f", "²"]
)
def test_text_is_no_number(cell: str) -> None:
    assert number(cell) is None


@pytest.mark.parametrize("cell", ["1.234,5", "1,234,567", "1,5 m", ",", "a,b", "1_0,5"])
def test_text_is_no_number_with_a_decimal_comma(cell: str) -> None:
    assert number(cell, comma=True) is None


@pytest.mark.parametrize("cell", ["", "n/a", "N/A", "NaN", "-", "inf", "-Infinity", "1e999", "#DIV/0!"])
def test_nothing_is_not_a_number(cell: str) -> None:
    value = number(cell)
    assert value is not None
    assert math.isnan(value)


@given(
    st.lists(st.sampled_from(["1", "-2.5", "1e3", "1_0", "", "n/a", "inf", "x", "1,5", "0"])),
    st.booleans(),
)
def test_a_column_is_its_cells(cells: list[str], comma: bool) -> None:
    expected = [number(cell, comma=comma) for cell in cells]
    assert repr(numbers(cells, comma=comma)) == repr(expected)  # NaN equals nothing


@pytest.mark.parametrize(
    "cell",
    ["2024-01-31", "2024-01-31 12:00:00", "31.1.2024", "1/31/24", "2024/1/2", "12:30", "9:05:10"],
)
def test_dates(cell: str) -> None:
    assert is_date(cell)
    assert number(cell) is None


@pytest.mark.parametrize("cell", ["20240131", "1.5", "1-2", "a-b-c", "12:3", ""])
def test_no_dates(cell: str) -> None:
    assert not is_date(cell)


def test_flags() -> None:
    assert [flag(cell) for cell in ("TRUE", "false", "yes", "1", "")] == [True, False, None, None, None]


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-a", "@home", " =1", "'=1", "'", "a", "", "'a'"])
def test_what_looks_like_a_formula_is_marked_and_comes_back(cell: str) -> None:
    assert not marked(cell).lstrip().startswith(("=", "+", "-", "@"))
    assert unmarked(marked(cell)) == (cell if cell != "'=1" else "=1")  # which was marked before
    assert (marked(cell) == cell) is (cell in ("'=1", "'", "a", "", "'a'"))


def test_long_cells_are_cut() -> None:
    assert shown("abc") == "'abc'"
    assert shown("x" * 1000) == f"'{'x' * 35}...'"
    assert len(shown("it's " * 1000)) == 40


def test_long_lists_are_cut() -> None:
    assert listed([2, 3]) == "2, 3"
    assert listed(range(2, 12)) == "2, 3, 4, 5, 6 and 5 more"
    assert listed(["a"]) == "'a'"
