"""Columns: which are parameters, what their cells mean, decimal commas."""

from __future__ import annotations

from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from scaml.errors import SpaceError, TaskDataError
from scaml.sheets import read
from scaml.spaces.space import Space
from tests.sheets.cases import RUNS, Reader, Refuser, noted


def with_column(name: str, cells: list[Any], per_task: int = 2) -> str:
    """A table of a parameter x, a further column and an objective; tasks of so many rows."""
    lines = [f"t{i // per_task},{i % per_task},{cell},{i}" for i, cell in enumerate(cells)]
    return "\n".join([f"task,x,{name},y", *lines])


# Which columns are parameters.


def test_true_and_false_are_flags(sheet: Reader) -> None:
    read = sheet(with_column("fan", ["True", "FALSE", "false", "true"]))
    assert read.space.distributions["fan"] == CategoricalDistribution([False, True])
    assert [params["fan"] for task in read.past for params in task.params] == [True, False, False, True]
    assert noted(read, "'fan' is true or false")


def test_texts_are_choices(sheet: Reader) -> None:
    read = sheet(with_column("kind", ["none", "b", "2", "none", "b", "none"]))
    assert read.space.distributions["kind"] == CategoricalDistribution(["2", "b", "none"])
    assert noted(read, "'kind' is a choice of '2', 'b', 'none'")


@pytest.mark.parametrize(("texts", "kept"), [(20, True), (21, False)])
def test_many_texts_are_remarks(sheet: Reader, texts: int, kept: bool) -> None:
    read = sheet(with_column("remark", [f"n{i % texts}" for i in range(42)]))
    assert ("remark" in read.space.names) is kept
    assert noted(read, "'remark' holds 21 different texts", "left out") is not kept


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["7", "7.0", "7", "7"], "has one value, 7.0"),
        (["7", "", "", ""], "has one value, 7.0"),
        (["", "", "", ""], "is empty"),
        (["n/a", "n/a", "n/a", "n/a"], "has one value, 'n/a'"),
        (["2024-01-01", "2024-01-02", "", "2024-01-02"], "holds dates"),
        (["31.12.2024", "1.1.2025", "", "1.1.2025"], "holds dates"),
        (["a", "a", "b", "b"], "has one value in every task, so it describes the tasks"),
        (["1", "1", "2", ""], "has one value in every task, so it describes the tasks"),
        (["good", "", "bad", ""], "is empty in 2 of 4 rows"),
        (["1", "", "2", ""], "is empty in 2 of 4 rows"),
        (["good", "", "", "", "", "", "hot", ""], "is empty in 3 of 5 rows"),
    ],
)
def test_columns_that_are_no_parameters_are_left_out(sheet: Reader, cells: list[str], why: str) -> None:
    read = sheet(with_column("c", cells, per_task=3 if len(cells) > 4 else 2))
    assert read.space.names == ("x",)
    assert noted(read, f"Column 'c' {why}", "left out")
    assert sum(len(task.y) for task in read.past) == len(cells)  # no row is lost for its sake


@pytest.mark.parametrize(("n", "kept"), [(9, True), (10, False)])
@pytest.mark.parametrize("first", [0, 1])
def test_a_count_of_rows_is_no_parameter(sheet: Reader, n: int, kept: bool, first: int) -> None:
    read = sheet(with_column("run", list(range(first, first + n)), per_task=3))
    assert ("run" in read.space.names) is kept
    assert noted(read, "'run' counts the rows") is not kept


def test_nothing_to_choose_is_refused(refused: Refuser) -> None:
    message = refused(SpaceError, "task,x,y\na,1,2\na,1,3\nb,2,1\nb,2,1\n")
    assert "nothing to choose" in message
    assert "nothing to choose" in refused(SpaceError, "task,y\na,2\na,3\n")


# Numbers.


@pytest.mark.parametrize("cell", ["12 °C", '"1,5"', '"1,234.5"', "1 000", "about 3", "1_000"])
def test_text_among_numbers_is_refused_by_row_and_column(refused: Refuser, cell: str) -> None:
    message = refused(TaskDataError, RUNS.replace("30.5", cell))
    assert message.startswith(f"Row 3, column 'temperature' is {cell.strip(chr(34))!r} where a number")


def test_rows_are_numbered_as_a_spreadsheet_does(refused: Refuser) -> None:
    text = '\ntask,x,y\n\n"a\nb",1,2\n,,\n"a\nb",2,3\n"a\nb",3,3\n"a\nb",much,3\n'
    assert refused(TaskDataError, text).startswith("Row 8, column 'x' is 'much'")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas(sheet: Reader, separator: str) -> None:
    text = (
        RUNS.replace(",", separator)
        .replace("30.5", "30,5")
        .replace(f"x{separator}1", f"x{separator}1,25")
    )
    read = sheet(text)
    assert [params["temperature"] for params in read.past[0].params] == [20.0, 30.5]
    assert read.past[0].y == [1.25, 2.0]
    assert noted(read, "decimal commas", "'1,25' is 1.25")


def test_points_in_a_file_of_semicolons_are_points(sheet: Reader) -> None:
    read = sheet(RUNS.replace(",", ";"))
    assert read.past == sheet(RUNS).past
    assert not noted(read, "decimal")


def test_two_decimal_marks_are_refused(refused: Refuser) -> None:
    text = RUNS.replace(",", ";").replace("a;20", "a;1.234").replace("30.5", "30,5")
    message = refused(TaskDataError, text)
    assert "Row 2, column 'temperature' is '1.234' but row 3, column 'temperature' is '30,5'" in message
    text = RUNS.replace(",", ";").replace("30.5", "30,5").replace("x;1", "x;1.5")
    assert "Row 2, column 'yield' is '1.5'" in refused(TaskDataError, text)
    text = RUNS.replace(",", ";").replace("30.5", "1.234,5")
    assert "Row 3, column 'temperature' is '1.234,5'" in refused(TaskDataError, text)


# A given space.

SPACE = Space({"temperature": FloatDistribution(0, 50), "alloy": CategoricalDistribution(["x", "y"])})


def test_a_given_space_reads_cells_as_it_says(sheet: Reader) -> None:
    space = Space(
        {
            "n": IntDistribution(0, 9),
            "code": CategoricalDistribution([1, 2.5, "3", True, None]),
            "size": FloatDistribution(0, 1),
        }
    )
    cells = ["1", "2.50", "3", "TRUE", "None", "1.0", "4"]
    text = "task,n,code,size,y\n" + "".join(f"a,{i},{cell},{i},{i}\n" for i, cell in enumerate(cells))
    read = sheet(text, space=space)
    assert read.space is space
    taken = [params["code"] for params in read.past[0].params]
    assert repr(taken) == repr([1, 2.5, "3", True, None, 1, "4"])
    assert repr([params["n"] for params in read.past[0].params]) == repr(list(range(7)))
    assert [params["size"] for params in read.past[0].params] == list(range(7))


def test_columns_that_the_space_lacks_are_left_out(sheet: Reader) -> None:
    read = sheet(RUNS, space=Space({"temperature": FloatDistribution(0, 50)}))
    assert [set(params) for task in read.past for params in task.params] == [{"temperature"}] * 4
    assert noted(read, "not in the space", "'alloy'")


def test_parameters_that_the_file_lacks_are_unknown_to_the_past(sheet: Reader) -> None:
    space = Space({**SPACE.distributions, "speed": FloatDistribution(0, 1)})
    read = sheet(RUNS, space=space)
    assert set(read.past[0].distributions) == {"temperature", "alloy"}
    assert noted(read, "'speed'", "no past task has it")


def test_a_space_that_shares_nothing_is_refused(refused: Refuser) -> None:
    message = refused(SpaceError, RUNS, space=Space({"Temp": FloatDistribution(0, 50)}))
    assert "'Temp'" in message
    assert "'temperature', 'alloy'" in message


def test_text_where_the_space_has_a_number_is_refused(refused: Refuser) -> None:
    message = refused(TaskDataError, RUNS, space=Space({"alloy": FloatDistribution(0, 50)}))
    assert message.startswith("Row 2, column 'alloy' is 'x'")


def test_numbers_may_be_choices(sheet: Reader) -> None:
    read = sheet(RUNS, space=Space({"temperature": CategoricalDistribution([20, 30.5, 40, 90])}))
    assert read.past[0].params == [{"temperature": 20}, {"temperature": 30.5}]


def test_reading_needs_no_string_path(tmp_path: Any) -> None:
    (tmp_path / "runs.csv").write_text(RUNS)
    assert read(str(tmp_path / "runs.csv")) == read(tmp_path / "runs.csv")
