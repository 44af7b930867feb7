"""Rows: past, new, pending and left out, and which of a long task are kept."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

from scaml.errors import SpaceError, TaskDataError
from scaml.integrations.optuna.past_studies import read_studies
from scaml.spaces.space import Space
from tests.sheets.cases import RUNS, Reader, Refuser, noted

SPACE = Space({"temperature": FloatDistribution(0, 100), "alloy": CategoricalDistribution(["x", "y"])})
LONG = "task,temperature,alloy,yield\n" + "".join(
    f"{task},{i},{'xy'[i % 2]},{i}\n" for task in "ab" for i in range(4)
)


def test_rows_of_tasks_may_lie_mixed(sheet: Reader) -> None:
    header, *rows = RUNS.splitlines()
    assert sheet("\n".join([header, rows[0], rows[2], rows[1], rows[3]])).past == sheet(RUNS).past


@pytest.mark.parametrize("cell", ["", "n/a", "nan", "inf", "-1e101", "1e999"])
def test_past_rows_without_a_value_are_left_out(sheet: Reader, cell: str) -> None:
    read = sheet(LONG.replace("a,3,y,3", f"a,3,y,{cell}"))
    assert read.past[0].y == [0.0, 1.0, 2.0]
    assert noted(read, "'yield'", "left out: 5")


@pytest.mark.parametrize("cell", ["", "n/a", "nan", "inf"])
def test_past_rows_without_a_parameter_are_left_out(sheet: Reader, cell: str) -> None:
    read = sheet(LONG.replace("b,3,y", f"b,{cell},y").replace("a,1,y", "a,1,"))
    assert [task.y for task in read.past] == [[0.0, 2.0, 3.0], [0.0, 1.0, 2.0]]
    assert noted(read, "without all parameters", "left out: 3, 9")


def test_ranges_are_those_of_the_rows_used(sheet: Reader) -> None:
    read = sheet(LONG.replace("a,3,y,3", "a,-999,y,").replace("b,3,y,3", "b,7,,3"))
    assert read.space.distributions["temperature"] == IntDistribution(0, 3 - 1)


def test_tasks_of_fewer_than_two_rows_are_left_out(sheet: Reader) -> None:
    read = sheet(RUNS + "c,50,x,1\nd,60,x,\nd,50,x,2\n")
    assert [task.name for task in read.past] == ["a", "b"]
    assert noted(read, "fewer than two rows", "'c', 'd'")


def test_nothing_that_can_be_used_is_refused(refused: Refuser) -> None:
    message = refused(TaskDataError, "task,x,y\na,1,2\nb,2,3\nc,3,\n")
    assert message.startswith("No task")
    assert "'y'" in message


def test_a_row_without_a_task_is_refused(refused: Refuser) -> None:
    assert refused(TaskDataError, RUNS.replace("b,90", ",90")).startswith(
        "Row 5, column 'task' is empty"
    )


def test_task_names_stay_text(sheet: Reader) -> None:
    rows = "".join(f"{name},{x},{x}\n" for name in ("1", "1.0", "001", "TRUE") for x in (1, 2))
    read = sheet("task,x,y\n" + rows)
    assert [task.name for task in read.past] == ["1", "1.0", "001", "TRUE"]
    assert sheet("task,x,y\n" + rows, new_task="1").task.y == (1.0, 2.0)


def test_task_names_that_look_alike_are_noted(sheet: Reader) -> None:
    read = sheet(RUNS.replace("\nb,", "\nA,"))
    assert [task.name for task in read.past] == ["a", "A"]
    assert noted(read, "'a', 'A'", "letter case")


# The new task.


def test_rows_of_the_new_task_are_observed_or_pending(sheet: Reader) -> None:
    read = sheet(RUNS + "c,50,x,\nc,60,y,-1.5\nc,100,x, \n", new_task=" c ")
    assert read.task.name == "c"
    assert read.task.params == ({"temperature": 60.0, "alloy": "y"},)
    assert read.task.y == (-1.5,)
    assert read.pending == ({"temperature": 50.0, "alloy": "x"}, {"temperature": 100.0, "alloy": "x"})
    assert [task.name for task in read.past] == ["a", "b"]
    assert read.space.distributions["temperature"] == FloatDistribution(20, 100)  # plans count


def test_a_task_that_nobody_knows_has_no_rows_yet(sheet: Reader) -> None:
    read = sheet(RUNS.replace("\nb,", "\nsteel,"), new_task="stel")
    assert (read.task.params, read.task.y, read.pending) == ((), (), ())
    assert len(read.past) == 2
    assert noted(read, "'stel' has no rows yet", "'steel'")
    assert "Task 'zinc' has no rows yet." in sheet(RUNS, new_task="zinc").notes


@pytest.mark.parametrize("space", [None, SPACE])
def test_a_new_task_alone_has_no_past(sheet: Reader, space: Space | None) -> None:
    read = sheet(RUNS.replace("\nb,", "\na,"), new_task="a", space=space)
    assert read.past == ()
    assert read.task.y == (1.0, 2.0, 3.0, 4.0)
    assert noted(read, "'a'", "no past")


def test_one_task_is_the_only_past(sheet: Reader) -> None:
    read = sheet(RUNS.replace("\nb,", "\na,"), new_task="b")
    assert [task.name for task in read.past] == ["a"]
    assert read.task.y == ()


def test_one_row_of_the_new_task_is_enough(sheet: Reader) -> None:
    assert sheet(RUNS + "c,50,x,7\n", new_task="c").task.y == (7.0,)


@pytest.mark.parametrize("space", [None, SPACE])
def test_an_observed_row_that_lacks_a_parameter_is_refused(
    refused: Refuser, space: Space | None
) -> None:
    message = refused(TaskDataError, RUNS + "c,50,x,5\nc,,x,6\n", new_task="c", space=space)
    assert message.startswith("Row 7, column 'temperature' is empty in the new task")


@pytest.mark.parametrize("space", [None, SPACE])
@pytest.mark.parametrize("row", ["c,50,,", "c,,,"])
def test_an_unfinished_plan_is_left_out(sheet: Reader, row: str, space: Space | None) -> None:
    read = sheet(f"{RUNS}{row}\n", new_task="c", space=space)
    assert read.pending == ()
    assert read.space.names == ("temperature", "alloy")
    assert noted(read, "new task", "left out: 6")


def test_a_form_to_fill_in_takes_no_parameter_away(sheet: Reader) -> None:
    read = sheet(RUNS + "c,50,x,7\n" + "c,,,\n" * 50, new_task="c")
    assert read.space.names == ("temperature", "alloy")
    assert read.task.y == (7.0,)


@pytest.mark.parametrize("cell", ["nan", "inf", "n/a", "1e200", "-"])
def test_an_observed_row_without_a_finite_value_is_refused(refused: Refuser, cell: str) -> None:
    message = refused(TaskDataError, f"{RUNS}c,50,x,{cell}\n", new_task="c")
    assert message.startswith(f"Row 6, column 'yield' is {cell!r}")
    assert "leave it empty" in message


def test_text_in_the_objective_is_refused(refused: Refuser) -> None:
    assert refused(TaskDataError, f"{RUNS}c,50,x,failed\n").startswith(
        "Row 6, column 'yield' is 'failed' where a number belongs"
    )


# Parameters that not all tasks have.


def test_a_past_task_may_lack_a_parameter(sheet: Reader) -> None:
    read = sheet(RUNS + "c,50,,1\nc,60,,2\n")
    assert set(read.past[2].distributions) == {"temperature"}
    assert read.past[2].params == [{"temperature": 50.0}, {"temperature": 60.0}]
    assert noted(read, "'alloy' is empty", "'c'")


def test_the_new_task_may_lack_a_parameter(sheet: Reader) -> None:
    read = sheet(RUNS + "c,50,,1\nc,60,,\nc,70,,\n", new_task="c")
    assert read.space.names == ("temperature",)
    assert read.task.params == ({"temperature": 50.0},)
    assert read.pending == ({"temperature": 60.0}, {"temperature": 70.0})
    assert set(read.past[0].distributions) == {"temperature", "alloy"}
    assert noted(read, "new task", "'alloy'")


def test_rows_of_the_new_task_need_the_parameters_of_a_given_space(
    sheet: Reader, refused: Refuser
) -> None:
    space = Space({**SPACE.distributions, "speed": FloatDistribution(0, 1)})
    message = refused(SpaceError, RUNS + "c,50,x,1\n", space=space, new_task="c")
    assert message.startswith("Row 6")
    assert "no column 'speed'" in message
    assert sheet(RUNS + "c,50,x,\n", space=space, new_task="c").pending == ()


def test_a_parameter_that_the_space_holds_needs_no_column(sheet: Reader) -> None:
    space = Space({**SPACE.distributions, "speed": IntDistribution(3, 3)})
    read = sheet(RUNS + "c,50,x,1\nc,60,x,\n", space=space, new_task="c")
    assert read.task.params == ({"temperature": 50.0, "alloy": "x", "speed": 3},)
    assert read.pending[0]["speed"] == 3
    assert not noted(read, "'speed'")


# Long tasks.


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("n", [300, 301, 1000])
def test_a_long_task_keeps_the_rows_that_a_long_study_keeps(
    sheet: Reader, n: int, minimize: bool
) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.random(n).round(9).tolist(), rng.integers(0, 50, n).tolist()
    distributions = {"x": FloatDistribution(0, 1)}
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="minimize" if minimize else "maximize")
    study.add_trials(
        create_trial(params={"x": a}, distributions=distributions, value=b)  # type: ignore[arg-type]
        for a, b in zip(x, y, strict=True)
    )
    expected = read_studies([study]).tasks[0]
    text = "task,x,y\n" + "".join(f"a,{a!r},{b}\n" for a, b in zip(x, y, strict=True))
    read = sheet(text, minimize=minimize)
    assert list(read.past[0].params) == list(expected.params)
    assert list(read.past[0].y) == list(expected.y)
    assert read.maximize is not minimize
    assert noted(read, "more than 300 rows", "best 150", "'a'") is (n > 300)
    assert math.isclose(read.space.distributions["x"].high, max(x))  # type: ignore[attr-defined]


def test_the_new_task_keeps_all_its_rows(sheet: Reader) -> None:
    rows = "".join(f"c,{i},x,{i}\n" for i in range(500))
    assert len(sheet(RUNS + rows, new_task="c").task.y) == 500


@pytest.mark.parametrize("minimize", [False, True])
def test_a_new_task_of_thousands_of_rows_keeps_its_best_and_some_others(
    sheet: Reader, minimize: bool
) -> None:
    sign = -1 if minimize else 1
    y = sign * np.random.default_rng(0).permutation(1500)
    text = RUNS + "".join(f"c,{20 + i / 100},x,{value}\n" for i, value in enumerate(y))
    read = sheet(text, new_task="c", minimize=minimize)
    assert len(read.task.y) == len(read.task.params) == 1000
    assert set(range(1000, 1500)) <= set(read.task.y)
    assert [20 + list(y).index(sign * value) / 100 for value in read.task.y] == [
        row["temperature"] for row in read.task.params
    ]
    assert noted(read, "Of the new task's 1500 rows the best 500 and a random choice of 500 others")
    short = sheet("\n".join(text.splitlines()[:1005]), new_task="c")
    assert len(short.task.y) == 1000
    assert not noted(short, "are kept")


def test_a_list_of_what_could_be_done_is_not_taken_for_running_experiments(
    sheet: Reader, refused: Refuser
) -> None:
    plan = [f"c,{20 + i / 100},x,\n" for i in range(1001)]
    assert len(sheet(RUNS + "".join(plan[:1000]), new_task="c").pending) == 1000
    message = refused(TaskDataError, RUNS + "".join(plan), new_task="c")
    assert message.startswith("Row 6, column 'yield' is the first of 1001 empty cells of the new task")
