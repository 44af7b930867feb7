"""A space as a TOML file: there and back, and one sentence for whatever is wrong with an edit."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from scaml.errors import SavedFileError, SpaceError
from scaml.spaces import space_file
from scaml.spaces.space import Space
from tests.spaces.test_space import (
    CHOICES,
    FLOATS,
    INTS,
    LOG_FLOATS,
    LOG_INTS,
    SINGLES,
    steps_of_a_float,
)

ANY_CHOICES = st.lists(
    st.one_of(
        st.text(),
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
    ),
    min_size=2,
    max_size=6,
    unique_by=lambda value: (type(value), value),
).map(CategoricalDistribution)
ANY = st.one_of(FLOATS, LOG_FLOATS, steps_of_a_float(), INTS, LOG_INTS, CHOICES, ANY_CHOICES, SINGLES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "space.toml"


# There and back.


@given(st.dictionaries(st.text(), ANY, min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_space_comes_back_as_it_was(path: Path, distributions: dict[str, BaseDistribution]) -> None:
    space = Space({**distributions, "varies": FloatDistribution(0.0, 1.0)})
    space_file.write(space, path)
    back = space_file.read(path)
    assert list(back.distributions.items()) == list(space.distributions.items())
    for name, distribution in space.distributions.items():  # 1 == 1.0 == True, so types as well
        assert repr(back.distributions[name]) == repr(distribution)


def test_what_is_written_is_short_and_explained(path: Path) -> None:
    space_file.write(
        Space(
            {
                "temperature": FloatDistribution(20, 90),
                "max. speed": IntDistribution(2, 10, step=2),
                "alloy": CategoricalDistribution(["a", 'b"', None, True, 3, 0.5]),
            }
        ),
        path,
    )
    text = path.read_text(encoding="utf-8")
    comments, tables = text.split("\n\n", 1)
    assert all(line.startswith("#") for line in comments.splitlines())
    assert tables == (
        '[temperature]\ntype = "float"\nlow = 20.0\nhigh = 90.0\nlog = false\n\n'
        '["max. speed"]\ntype = "int"\nlow = 2\nhigh = 10\nlog = false\nstep = 2\n\n'
        '[alloy]\ntype = "choice"\nvalues = ["a", "b\\"", {}, true, 3, 0.5]\n'
    )
    assert list(tomllib.loads(text)) == ["temperature", "max. speed", "alloy"]


def test_numpy_numbers_are_written_as_numbers(path: Path) -> None:
    space = Space({"x": CategoricalDistribution([np.float64(0.5), 1.5])})
    space_file.write(space, path)
    assert space_file.read(path) == space


def test_an_edit_by_hand_needs_little(path: Path) -> None:
    path.write_bytes(
        b'\xef\xbb\xbfx = {type = "float", low = 1, high = 3}\r\n[y]\r\ntype="int"\r\nlow=1\r\nhigh=2'
    )
    assert space_file.read(path).distributions == {
        "x": FloatDistribution(1.0, 3.0),
        "y": IntDistribution(1, 2),
    }
    assert isinstance(space_file.read(path).distributions["x"].low, float)  # type: ignore[attr-defined]


def test_an_older_file_is_replaced_and_nothing_else_is_left(path: Path) -> None:
    path.write_text("old")
    space_file.write(Space({"x": FloatDistribution(0, 1)}), path)
    assert space_file.read(path).names == ("x",)
    assert list(path.parent.iterdir()) == [path]


# Refused.


def refused(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpaceError) as error:
        space_file.read(path)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("low = 1", ("'x'", "'type'")),
        ('tpye = "int"', ("'x'", "'type'", "rename 'tpye'")),
        ('type = "flaot"', ("'x'", "type", "'flaot'", 'perhaps "float"')),
        ("type = 3", ("'x'", "type is 3")),
        ('type = "float"\nlo = 1\nhigh = 2', ("'x'", "'lo'", "'low'")),
        ('type = "choice"\nvalue = [1]', ("'x'", "'value'", "'values'")),
        ('type = "choice"\nlow = 1', ("'x'", "'low'")),
        ('type = "choice"', ("'x'", "'values'")),
        ('type = "float"\nlow = 1', ("'x'", "'high'")),
        ('type = "float"\nlow = "1"\nhigh = 2', ("'x'", "low is '1'")),
        ('type = "float"\nlow = true\nhigh = 2', ("'x'", "low is True")),
        ('type = "float"\nlow = nan\nhigh = 2', ("'x'", "low is nan")),
        ('type = "float"\nlow = 0\nhigh = inf', ("'x'", "high is inf")),
        (f'type = "int"\nlow = 0\nhigh = 1{"0" * 400}', ("'x'", "high", "finite")),
        ('type = "int"\nlow = 1.5\nhigh = 2', ("'x'", "low is 1.5", "whole")),
        ('type = "int"\nlow = 3\nhigh = 2', ("'x'", "low is 3", "high")),
        ('type = "float"\nlow = 1\nhigh = 2\nlog = 1', ("'x'", "log is 1")),
        ('type = "float"\nlow = 0\nhigh = 2\nlog = true', ("'x'", "low is 0.0", "log")),
        ('type = "int"\nlow = 0\nhigh = 2\nlog = true', ("'x'", "low is 0", "log")),
        ('type = "float"\nlow = 1\nhigh = 2\nstep = 0', ("'x'", "step is 0")),
        ('type = "int"\nlow = 1\nhigh = 2\nstep = 0.5', ("'x'", "step is 0.5", "whole")),
        ('type = "float"\nlow = 1\nhigh = 2\nlog = true\nstep = 1', ("'x'", "step is 1", "log")),
        ('type = "int"\nlow = 1\nhigh = 9\nlog = true\nstep = 2', ("'x'", "step is 2", "log")),
        ('type = "float"\nlow = 0\nhigh = 1\nstep = 0.3', ("'x'", "high is 1.0", "0.3")),
        ('type = "int"\nlow = 0\nhigh = 10\nstep = 3', ("'x'", "high is 10", "3")),
        ('type = "choice"\nvalues = "a"', ("'x'", "values is 'a'")),
        ('type = "choice"\nvalues = []', ("'x'", "values is []")),
        ('type = "choice"\nvalues = ["a", "a"]', ("'x'", "'a' twice")),
        ('type = "choice"\nvalues = [[1], 2]', ("'x'", "[1]")),
        ('type = "choice"\nvalues = [2024-01-01, 2]', ("'x'", "2024")),
        ('type = "choice"\nvalues = [{a = 1}, 2]', ("'x'", "{'a': 1}")),
        ('type = "float"\nlow = -1e308\nhigh = 1e308', ("'x'", "range")),
    ],
)
def test_a_mistake_is_named_by_parameter_and_key(
    path: Path, table: str, words: tuple[str, ...]
) -> None:
    message = refused(path, f"[x]\n{table}\n")
    assert all(word in message for word in words), message


def test_what_is_no_table_of_parameters_is_refused(path: Path) -> None:
    assert "no parameter" in refused(path, "# nothing\n")
    assert "[temperature]" in refused(path, "temperature = 5\n")
    assert '["max.speed"]' in refused(path, '[max.speed]\ntype = "int"\nlow = 1\nhigh = 2\n')
    assert "line 2" in refused(path, "[x]\ntype = float\n")
    assert "twice" in refused(path, '[x]\ntype = "int"\n[x]\n')
    assert "TOML" in refused(path, "x = " + "[" * 5000)
    assert "two values" in refused(path, '[x]\ntype = "int"\nlow = 1\nhigh = 1\n')
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpaceError, match="TOML"):
        space_file.read(path)


def test_files_that_cannot_be_opened_are_refused(path: Path) -> None:
    space = Space({"x": FloatDistribution(0, 1)})
    with pytest.raises(SavedFileError, match="No such file"):
        space_file.read(path)
    with pytest.raises(SavedFileError, match="directory"):
        space_file.read(path.parent)
    with pytest.raises(SavedFileError, match="No such file"):
        space_file.write(space, path / "deeper")
    path.mkdir()
    with pytest.raises(SavedFileError, match="directory"):
        space_file.write(space, path)
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(SavedFileError, match="null"):
        space_file.write(space, "a\0b")


@pytest.mark.parametrize("choice", [(1, 2), "\ud800"])
@pytest.mark.filterwarnings("ignore:Choices for a categorical")
def test_what_toml_cannot_hold_is_not_written(path: Path, choice: object) -> None:
    space = Space({"x": CategoricalDistribution(["a", choice])})  # type: ignore[list-item]
    with pytest.raises(SpaceError, match="'x'"):
        space_file.write(space, path)
    assert not path.exists()
