"""Ranges and scales that are inferred, and rows beyond a given space."""

from __future__ import annotations

import numpy as np
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from scaml.errors import SpaceError
from scaml.spaces.matching import match
from scaml.spaces.space import Space
from tests.sheets.cases import RUNS, Reader, Refuser, noted


def one(values: list[object]) -> str:
    return "task,x,y\n" + "".join(f"a,{value},{i}\n" for i, value in enumerate(values))


@pytest.mark.parametrize(
    ("values", "expected", "words"),
    [
        ([20, 90, 30.5], FloatDistribution(20, 90), "a number from 20 to 90."),
        ([3, "5.0", -1], IntDistribution(-1, 5), "a whole number from -1 to 5."),
        (
            ["1e-3", 1, 0.5],
            FloatDistribution(1e-3, 1, log=True),
            "from 0.001 to 1, on a logarithmic scale",
        ),
        (["1e-3", 0.9999, 0.5], FloatDistribution(1e-3, 0.9999), "a number from 0.001 to 0.9999."),
        ([1, 10, 1000], IntDistribution(1, 1000, log=True), "a whole number from 1 to 1000, on a log"),
        ([0, 10, 1000], IntDistribution(0, 1000), "a whole number from 0 to 1000."),
        ([-1, 1e-9, 0.5], FloatDistribution(-1, 0.5), "a number from -1 to 0.5."),
        (["1e300", "1", "1e200"], FloatDistribution(1, 1e300, log=True), "from 1 to 1e+300"),
        (["5e-324", "1e308"], FloatDistribution(5e-324, 1e308, log=True), "logarithmic"),
    ],
)
def test_ranges_and_scales(
    sheet: Reader, values: list[object], expected: BaseDistribution, words: str
) -> None:
    read = sheet(one(values))
    assert read.space.distributions["x"] == expected
    assert noted(read, "'x' is", words)
    kind = int if isinstance(expected, IntDistribution) else float
    assert all(type(params["x"]) is kind for params in read.past[0].params)


def test_the_scale_follows_how_numbers_were_drawn(sheet: Reader) -> None:
    rng = np.random.default_rng(0)
    even = rng.random(20_000)
    assert even.max() / even.min() > 1000
    assert sheet(one(even.tolist())).space.distributions["x"].log is False  # type: ignore[attr-defined]
    factors = 10 ** (-4 * rng.random(50))
    assert sheet(one(factors.tolist())).space.distributions["x"].log is True  # type: ignore[attr-defined]


def test_a_range_that_cannot_be_scaled_is_refused(refused: Refuser) -> None:
    assert "'x'" in refused(SpaceError, one(["-1e308", "1e308", "0.5"]))


def test_a_column_with_one_value_in_the_rows_used_is_left_out(sheet: Reader) -> None:
    read = sheet(RUNS.replace("30.5", "20").replace("90,y,4", "90,y,") + "b,40,y,1\n")
    assert read.space.distributions["temperature"] == IntDistribution(20, 40)
    read = sheet("task,x,z,y\na,1,5,1\na,2,5,2\na,3,6,\nb,1,,1\nb,2,,2\n")
    assert read.space.names == ("x",)
    assert read.past[0].params == [{"x": 1}, {"x": 2}]
    assert noted(read, "'z' has one value in the rows used")
    assert not noted(read, "lack it")


# Beyond a given space.

SPACE = Space({"temperature": FloatDistribution(25, 45), "alloy": CategoricalDistribution(["y", "z"])})


def test_past_rows_may_lie_outside_a_given_space(sheet: Reader) -> None:
    read = sheet(RUNS, space=SPACE)
    assert [params["temperature"] for task in read.past for params in task.params] == [20, 30.5, 40, 90]
    assert read.past[0].distributions["alloy"] == CategoricalDistribution(["y", "z", "x"])
    assert noted(read, "'alloy' has 'x'", "does not offer", ": 2, 4.")
    tasks, matching = match(read.past, SPACE)
    assert [task.name for task in tasks] == ["a"]  # of b the row at 90 is too far away
    assert tasks[0].extra.shape == (2, 1)
    assert "1 row" in matching.matches[1].ignored


def test_far_too_many_foreign_texts_are_refused(refused: Refuser) -> None:
    text = "task,x,alloy,y\n" + "".join(f"a,{i},n{i},1\n" for i in range(30))
    message = refused(SpaceError, text, space=Space({"alloy": CategoricalDistribution(["n0", "n1"])}))
    assert message.startswith("Row 4, column 'alloy' is the first of 28 different texts")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("c,70,y,1", "column 'temperature' is 70.0 in the new task, outside its range from 25 to 45"),
        ("c,70,y,", "column 'temperature'"),
        ("c,30,x,1", "column 'alloy' is 'x' in the new task, outside its choices 'y', 'z'"),
    ],
)
def test_new_rows_far_outside_are_refused(refused: Refuser, row: str, words: str) -> None:
    message = refused(SpaceError, f"{RUNS}{row}\n", space=SPACE, new_task="c")
    assert message.startswith("Row 6, ")
    assert words in message


def test_new_rows_a_little_outside_are_fine(sheet: Reader) -> None:
    assert sheet(RUNS + "c,60,y,1\n", space=SPACE, new_task="c").task.params[0]["temperature"] == 60.0


def test_new_rows_that_a_logarithmic_scale_cannot_have_are_refused(refused: Refuser) -> None:
    space = Space({"temperature": FloatDistribution(1, 100, log=True)})
    message = refused(SpaceError, RUNS + "c,0,y,1\n", space=space, new_task="c")
    assert message.startswith("Row 6, column 'temperature' is 0.0")


def test_a_parameter_that_the_space_holds_is_one_of_the_past(sheet: Reader, refused: Refuser) -> None:
    space = Space(
        {"temperature": IntDistribution(30, 30), "alloy": CategoricalDistribution(["x", "y"])}
    )
    read = sheet(RUNS + "c,30,y,1\nc,,x,2\n", space=space, new_task="c")
    assert read.task.params == ({"temperature": 30, "alloy": "y"}, {"temperature": 30, "alloy": "x"})
    assert read.past[0].distributions["temperature"] == FloatDistribution(20, 90)
    tasks, _ = match(read.past, space)
    assert tasks[0].extra.shape == (2, 1)
    message = refused(SpaceError, RUNS + "c,31,y,1\n", space=space, new_task="c")
    assert message.startswith("Row 6, column 'temperature' is 31.0")
