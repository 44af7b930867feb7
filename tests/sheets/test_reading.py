"""`read`: the whole of it, and the columns that have a role."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution

from scaml.errors import ScaMLError, SettingError
from scaml.sheets import NewTask, Sheet, read
from scaml.spaces.matching import match
from scaml.spaces.space import Space
from scaml.tasks.meta_data import MetaData
from tests.sheets.cases import RUNS, Reader, Refuser, noted

SPACE = Space({"temperature": FloatDistribution(20, 90), "alloy": CategoricalDistribution(["x", "y"])})


def test_a_table_is_read_whole(sheet: Reader) -> None:
    read = sheet(RUNS, new_task="c")
    assert read.space == SPACE
    assert [task.name for task in read.past] == ["a", "b"]
    assert [task.y for task in read.past] == [[1.0, 2.0], [3.0, 4.0]]
    assert read.past[0].params == [
        {"temperature": 20.0, "alloy": "x"},
        {"temperature": 30.5, "alloy": "y"},
    ]
    assert read.task == NewTask("c")
    assert read.pending == ()
    assert read.objective == "yield"
    assert read.columns == ("task", "temperature", "alloy", "yield")
    assert read.notes == (
        "The last column, 'yield', is taken as the objective.",
        "Task 'c' has no rows yet.",
        "Column 'temperature' is a number from 20 to 90.",
        "Column 'alloy' is a choice of 'x', 'y'.",
    )


def test_what_is_read_can_be_matched(sheet: Reader) -> None:
    read = sheet(RUNS + "c,50,,1\nc,60,,2\nnew,70,x,\n", new_task="new")
    tasks, matching = match(read.past, read.space)
    meta = MetaData(tasks)
    assert meta.names == ("a", "b", "c")
    assert matching.matches[2].lacking == ("alloy",)
    assert tasks[0].X.tolist()[0][0] == 0.0
    assert read.space.encode(read.pending[0])[0].item() == pytest.approx(50 / 70)


def test_columns_may_stand_in_any_order(sheet: Reader) -> None:
    table = [line.split(",") for line in RUNS.splitlines()]
    text = "\n".join(",".join([row[3], row[1], row[0], row[2]]) for row in table)
    read = sheet(text, objective="yield", new_task="c")
    assert (read.space, read.past) == (SPACE, sheet(RUNS).past)
    assert not noted(read, "objective")


def test_a_given_space_is_kept_and_the_last_other_column_measured(sheet: Reader) -> None:
    table = [line.split(",") for line in RUNS.splitlines()]
    text = "\n".join(",".join([row[0], row[3], row[1], row[2]]) for row in table)
    read = sheet(text, space=SPACE)
    assert read.objective == "yield"
    assert [list(task.y) for task in read.past] == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("name", ["campaign", " campaign "])
def test_the_column_of_tasks_may_have_another_name(sheet: Reader, name: str) -> None:
    assert sheet(RUNS.replace("task", "campaign"), task_column=name).past == sheet(RUNS).past


def test_a_missing_column_of_tasks_is_refused_with_the_nearest(refused: Refuser) -> None:
    message = refused(SettingError, RUNS.replace("task", "Task "))
    assert "no column 'task' but 'Task', 'temperature', 'alloy', 'yield'" in message
    assert "--task-column 'Task'" in message


def test_a_missing_objective_is_refused_with_the_nearest(refused: Refuser) -> None:
    message = refused(SettingError, RUNS, objective="yeild")
    assert "no column 'yeild'" in message
    assert "perhaps 'yield'" in message


@pytest.mark.parametrize("space", [None, SPACE])
def test_the_objective_cannot_be_something_else_too(refused: Refuser, space: Space | None) -> None:
    message = refused(SettingError, RUNS, objective="task", space=space)
    assert "'task' is the column of tasks" in message
    if space:
        assert "a parameter" in refused(SettingError, RUNS, objective="alloy", space=space)
        assert "a parameter" in refused(SettingError, RUNS, task_column="alloy", space=space)


@pytest.mark.parametrize("cells", ["ok", "", "2024-01-01"])
def test_a_last_column_without_numbers_is_no_objective(refused: Refuser, cells: str) -> None:
    header, *rows = RUNS.splitlines()
    text = "\n".join([f"{header},remark", *(f"{row},{cells}" for row in rows)])
    message = refused(SettingError, text)
    assert message.startswith("The last column, 'remark', does not hold numbers")
    assert "--objective" in message


def test_a_table_without_an_objective_is_refused(refused: Refuser) -> None:
    text = "\n".join(line.rsplit(",", 1)[0] for line in RUNS.splitlines())
    assert "add the objective" in refused(SettingError, text, space=SPACE)


def test_an_empty_name_of_the_new_task_is_refused(refused: Refuser) -> None:
    assert "name" in refused(SettingError, RUNS, new_task=" ")


def message_or_sheet(path: Path, **settings: Any) -> str | Sheet:
    try:
        return read(path, **settings)
    except ScaMLError as error:
        return str(error)


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "runs.csv"
    for start in (b"", b"task,x,y\n", b"task;x;y\na;1;2\na;2;3\n"):
        path.write_bytes(start + data)
        result = message_or_sheet(path, new_task="a")
        assert isinstance(result, Sheet) or "\n" not in result


NARROW = Space({"temperature": FloatDistribution(1, 3, log=True)})
GOOD = [[f"{'abc'[i % 3]}", f"{i * 1.5}", "xy"[i % 2], f"{i}"] for i in range(12)]
ODD = [
    "",
    " ",
    "a",
    "b",
    "1",
    "1.0",
    "-3.5",
    "1,5",
    "1.234,5",
    "n/a",
    "nan",
    "inf",
    "1e999",
    "true",
    "=1",
]
ODD += [
    "FALSE",
    "2024-01-01",
    "12 °C",
    "none",
    "0",
    "1e-9",
    "é",
    '"',
    "x" * 50,
    "1e308",
    "-1e308",
    "\n",
]


@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 3), st.sampled_from(ODD)), max_size=4),
    st.sampled_from([None, "a", "b", "new"]),
    st.sampled_from([None, SPACE, NARROW]),
    st.sampled_from(",;\t"),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_any_cells_are_read_or_refused(
    tmp_path: Path,
    changes: list[tuple[int, int, str]],
    new_task: str | None,
    space: Space | None,
    separator: str,
) -> None:
    rows = [["task", "temperature", "alloy", "yield"], *map(list, GOOD)]
    for i, j, cell in changes:
        rows[i + 1][j] = cell
    path = tmp_path / "runs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    sheet = message_or_sheet(path, new_task=new_task, space=space)
    if isinstance(sheet, str):
        assert changes or space is NARROW
        assert "\n" not in sheet
        return
    assert all(set(params) == set(sheet.space.names) for params in (*sheet.task.params, *sheet.pending))
    sheet.space.encode_all([*sheet.task.params, *sheet.pending])
    assert new_task not in [task.name for task in sheet.past]
    tasks, _ = match(sheet.past, sheet.space)
    changed = {i for i, _, _ in changes}
    whole = [row for i, row in enumerate(GOOD) if i not in changed and row[0] != new_task]
    kept = [(task.name, y) for task in sheet.past for y in task.y]
    short = {name for name in "abc" if sum(row[0] == name for row in whole) < 2}
    assert all((row[0], float(row[3])) in kept for row in whole if row[0] not in short)
    assert len(tasks) <= len(sheet.past)
