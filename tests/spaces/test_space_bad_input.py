"""What `Space` refuses: values, points, ranges and texts that it cannot use."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from scaml.errors import SpaceError
from scaml.spaces.space import Space
from tests.cases import MIXED


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rate": 0.1}, "'kind' has no value"),
        ({"rate": 0.1, "kind": "c"}, r"'kind' is 'c'; give one of its choices"),
        ({"rate": math.nan}, "'rate' is nan; give a finite number"),
        ({"rate": math.inf}, "'rate' is inf; give a finite number"),
        ({"rate": "0.1"}, "'rate' is '0.1'; give a finite number"),
        ({"rate": None}, "'rate' is None; give a finite number"),
        ({"rate": 0.0}, "'rate' is 0.0 on a logarithmic scale; give a positive number"),
        ({"rate": -1}, "'rate' is -1 on a logarithmic scale; give a positive number"),
        ({"rate": 0.1, "kind": "a", "once": math.nan}, "'once' is nan"),
        (
            {"rate": 0.1, "kind": "a", "once": 3.0, "depth": 2, "only": "y"},
            "'only' is 'y'; give one of its choices",
        ),
    ],
)
def test_what_encode_refuses(params: dict[str, Any], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        MIXED.encode(params)


def test_an_integer_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(SpaceError, match="finite number"):
        Space({"n": IntDistribution(1, 9)}).encode({"n": 10**400})


@pytest.mark.parametrize("length", [0, 5, 7])
def test_a_point_of_the_wrong_length_is_refused(length: int) -> None:
    with pytest.raises(SpaceError, match=rf"has {length} coordinates but the space has 6 columns"):
        MIXED.decode([0.5] * length)


@pytest.mark.parametrize("place", [0, 4, 5])
def test_a_point_that_is_not_a_number_is_refused(place: int) -> None:
    point = [0.5] * 6
    point[place] = math.nan
    with pytest.raises(SpaceError):
        MIXED.decode(point)


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(1e10, math.nextafter(1e10, math.inf), log=True),
        FloatDistribution(-1.5e308, 1.5e308),
    ],
    ids=["its logarithms are equal", "its width is infinite"],
)
def test_a_range_that_float64_cannot_scale_is_used_or_refused(distribution: FloatDistribution) -> None:
    try:
        space = Space({"x": distribution})
    except SpaceError:
        return
    for end, value in ((0.0, distribution.low), (1.0, distribution.high)):
        assert space.encode({"x": value}).item() == pytest.approx(end)


@pytest.mark.parametrize(
    ("distributions", "message"),
    [
        ({}, "nothing to choose"),
        ({"a": FloatDistribution(1.0, 1.0), "b": CategoricalDistribution(["x"])}, "nothing to choose"),
        ({"a": (0.0, 1.0)}, r"'a' of the space is \(0.0, 1.0\)"),
        ({1: FloatDistribution(0.0, 1.0)}, "Parameter 1 of the space"),
        ([FloatDistribution(0.0, 1.0)], "The space is a list"),
        (None, "The space is a NoneType"),
    ],
)
def test_what_is_no_space_is_refused(distributions: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space(distributions)


def attributes(**values: Any) -> str:
    """A space of one parameter whose JSON says anything."""
    loaded = json.loads(distribution_to_json(IntDistribution(1, 2)))
    loaded["attributes"] |= values
    return json.dumps({"n": json.dumps(loaded)})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "5",
        "null",
        "{}",
        '{"a": 5}',
        '{"a": "[]"}',
        '{"a": "{}"}',
        json.dumps({"a": json.dumps({"name": "Evil", "attributes": {}})}),
        "[" * 100_000,
        attributes(low=5),
        attributes(high="many"),
        attributes(step=0),
        attributes(wings=2),
        attributes(high=math.inf),
        attributes(low=math.nan),
    ],
)
def test_text_that_is_no_space_is_refused(text: str) -> None:
    with pytest.raises(SpaceError, match="does not describe a space"):
        Space.from_json(text)


def test_text_of_a_range_without_ends_is_refused() -> None:
    text = {"name": "FloatDistribution", "attributes": {"low": math.nan, "high": math.inf}}
    with pytest.raises(SpaceError):
        Space.from_json(json.dumps({"x": json.dumps(text)}))
