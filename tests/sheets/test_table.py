"""Header and rows: what a spreadsheet leaves around a table, and what is refused by its place."""

from __future__ import annotations

import pytest

from scaml.errors import TaskDataError
from scaml.sheets.table import tabulate
from tests.sheets.cases import RUNS, Reader, Refuser, noted


def test_blank_rows_and_columns_are_no_part_of_a_table_and_rows_keep_their_numbers() -> None:
    rows = [
        [],
        ["", " "],
        ["x", "", "y", ""],
        ["1", "", "2", " "],
        [" ", ""],
        ["3", "", "4", "", "", ""],
    ]
    table = tabulate("t", rows)
    assert table.columns == {"x": ("1", "3"), "y": ("2", "4")}
    assert table.numbers == [4, 6]
    assert table.notes == ()


def test_spaces_around_names_and_tasks_are_removed_and_noted(sheet: Reader) -> None:
    read = sheet(RUNS.replace("temperature", " temperature ").replace("a,20", "a ,20"))
    assert read.columns == ("task", "temperature", "alloy", "yield")
    assert [task.name for task in read.past] == ["a", "b"]
    assert noted(read, "header", "'temperature '")
    assert noted(read, "names of tasks")
    assert not any("Spaces" in note for note in sheet(RUNS).notes)


def test_names_may_have_quotes_separators_and_line_breaks(sheet: Reader) -> None:
    read = sheet('task,"max, ""hot""\n(°C)",yield\n"a, b",1,2\n"a, b",2,3\n')
    assert read.columns == ("task", 'max, "hot"\n(°C)', "yield")
    assert read.past[0].name == "a, b"


@pytest.mark.parametrize("first", [0, 1])
def test_an_index_without_a_name_is_left_out(sheet: Reader, first: int) -> None:
    header, *rows = RUNS.splitlines()
    text = "\n".join([f",{header}", *(f"{i},{row}" for i, row in enumerate(rows, first))])
    read = sheet(text)
    assert read.space == sheet(RUNS).space
    assert noted(read, "Column A has no name")


def test_other_columns_without_a_name_are_refused(refused: Refuser) -> None:
    message = refused(TaskDataError, RUNS.replace("temperature", ""))
    assert message == "Column B has no name in row 1; name it or delete it."


@pytest.mark.parametrize("name", ["alloy", " alloy "])
def test_a_name_twice_is_refused(refused: Refuser, name: str) -> None:
    message = refused(TaskDataError, RUNS.replace("temperature", name))
    assert "Columns B and C are both called 'alloy'" in message


def test_columns_beyond_z_are_called_as_a_spreadsheet_does() -> None:
    names = [f"c{i}" for i in range(30)]
    with pytest.raises(TaskDataError, match="Columns B and AD are both"):
        tabulate("t", [[*names[:-1], "c1"], ["0"] * 30])


@pytest.mark.parametrize(
    ("row", "cells", "advice"),
    [("b,1,x", 3, "missing"), ("b,1,5,x,3", 5, "quotation marks"), ("b", 1, "")],
)
def test_ragged_rows_are_refused_by_number(refused: Refuser, row: str, cells: int, advice: str) -> None:
    message = refused(TaskDataError, f"{RUNS}{row}\n{RUNS.splitlines()[1]}\n")
    assert message.startswith(f"Row 6 has {cells} cells, but the header has 4;")
    assert advice in message


@pytest.mark.parametrize("cell", ["=1+1", "=cmd|' /C calc'!A0", " =SUM(A1:A2)"])
@pytest.mark.parametrize(("old", "place"), [("30.5", "Row 3, column 'temperature'"), ("b,90", "Row 5")])
def test_formulas_are_refused_by_row_and_column(
    refused: Refuser, cell: str, old: str, place: str
) -> None:
    message = refused(TaskDataError, RUNS.replace(old, old.replace("30.5", cell).replace("b", cell)))
    assert message.startswith(place)
    assert "save values, not formulas" in message


def test_what_was_marked_as_text_is_no_formula_and_loses_the_mark(sheet: Reader) -> None:
    read = sheet(RUNS.replace(",x,", ",'@x,").replace("a,", "'=1+1,").replace("20", "'-20"))
    assert read.past[0].name == "=1+1"
    assert read.past[0].params[0] == {"temperature": -20.0, "alloy": "@x"}


def test_a_formula_in_the_header_is_refused(refused: Refuser) -> None:
    assert refused(TaskDataError, RUNS.replace("alloy", "=A1")).startswith("Row 1, column '=A1'")


def test_a_cell_of_two_lines_is_no_formula(sheet: Reader) -> None:
    read = sheet(RUNS.replace(",x,", ',"x\n=1",'))
    assert read.space.distributions["alloy"].choices == ("x\n=1", "y")  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"])
def test_an_empty_file_is_refused(refused: Refuser, text: str) -> None:
    assert "is empty" in refused(TaskDataError, text)


def test_a_header_alone_is_refused(refused: Refuser) -> None:
    assert "no rows" in refused(TaskDataError, RUNS.splitlines()[0])
