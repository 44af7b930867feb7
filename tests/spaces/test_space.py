"""Space: Optuna's parameters as columns of the unit cube, there and back."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from scaml.spaces.space import CHOSEN, Space
from tests.cases import MIXED

LOWS = st.floats(-100.0, 100.0)
WIDTHS = st.floats(1e-3, 1e3)


@st.composite
def steps_of_a_float(draw: st.DrawFn) -> FloatDistribution:
    # Round numbers, as people write them: Optuna warns of a range that is no multiple of the step.
    step = Decimal(draw(st.sampled_from(["0.001", "0.05", "0.1", "0.25", "0.5", "2"])))
    low = draw(st.integers(-20, 20)) * Decimal("0.5")
    high = low + step * draw(st.integers(1, 40))
    return FloatDistribution(float(low), float(high), step=float(step))


FLOATS = st.builds(lambda low, width: FloatDistribution(low, low + width), LOWS, WIDTHS)
LOG_FLOATS = st.builds(
    lambda low, factor: FloatDistribution(low, low * factor, log=True),
    st.floats(1e-6, 1e3),
    st.floats(1.01, 1e6),
)
INTS = st.builds(
    lambda low, n, step: IntDistribution(low, low + n * step, step=step),
    st.integers(-50, 50),
    st.integers(1, 60),
    st.integers(1, 7),
)
LOG_INTS = st.builds(
    lambda low, n: IntDistribution(low, low + n, log=True), st.integers(1, 9), st.integers(1, 2000)
)
CHOICES = st.lists(
    st.one_of(st.text(max_size=3), st.none(), st.integers(2, 9), st.just(0.5)),
    min_size=2,
    max_size=5,
    unique=True,
).map(CategoricalDistribution)
SINGLES = st.one_of(
    LOWS.map(lambda v: FloatDistribution(v, v)),
    st.integers(1, 9).map(lambda v: IntDistribution(v, v, log=True)),
    st.sampled_from(["a", None, 3]).map(lambda v: CategoricalDistribution([v])),
)
VARYING: st.SearchStrategy[BaseDistribution] = st.one_of(
    FLOATS, LOG_FLOATS, steps_of_a_float(), INTS, LOG_INTS, CHOICES
)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    first = draw(VARYING)
    others = draw(st.lists(st.one_of(VARYING, SINGLES), max_size=3))
    names = ["p", "q", "r", "s"]
    return Space(dict(zip(names, [first, *others], strict=False)))


@st.composite
def spaces_and_points(draw: st.DrawFn) -> tuple[Space, list[float]]:
    space = draw(spaces())
    coordinates = st.one_of(st.floats(0.0, 1.0), st.floats(-1.0, 2.0))
    return space, draw(st.lists(coordinates, min_size=space.d, max_size=space.d))


def contained(distribution: BaseDistribution, value: Any) -> bool:
    return bool(distribution._contains(distribution.to_internal_repr(value)))


@settings(max_examples=40)
@given(spaces_and_points())
def test_a_decoded_point_is_one_that_optuna_takes(case: tuple[Space, list[float]]) -> None:
    space, point = case
    params = space.decode(point)
    assert tuple(params) == space.names
    for name, distribution in space.distributions.items():
        value = params[name]
        assert contained(distribution, value)
        if isinstance(distribution, FloatDistribution):
            assert type(value) is float
        elif isinstance(distribution, IntDistribution):
            assert type(value) is int
        else:
            assert isinstance(distribution, CategoricalDistribution)
            assert any(value is choice for choice in distribution.choices)


@settings(max_examples=40)
@given(spaces_and_points())
def test_encode_after_decode_stays_where_it_is(case: tuple[Space, list[float]]) -> None:
    space, point = case
    params = space.decode(point)
    encoded = space.encode(params)
    assert encoded.shape == (space.d,)
    assert encoded.dtype == torch.float64
    assert (encoded >= -1e-12).all()
    assert (encoded <= 1.0 + 1e-12).all()
    again = space.decode(encoded)
    for name, distribution in space.distributions.items():
        if isinstance(distribution, FloatDistribution):
            assert again[name] == pytest.approx(params[name], rel=1e-9, abs=1e-9)
        else:
            assert again[name] == params[name]
    torch.testing.assert_close(space.encode(again), encoded, rtol=0, atol=1e-9)


@settings(max_examples=40)
@given(spaces_and_points())
def test_decode_takes_the_nearest_value(case: tuple[Space, list[float]]) -> None:
    """Of a plain grid, the value with the smallest distance; beyond the ends, the end."""
    space, point = case
    params = space.decode(point)
    for name, distribution in space.distributions.items():
        if not space.columns[name] or isinstance(distribution, CategoricalDistribution):
            continue
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        x = min(max(point[space.columns[name][0]], 0.0), 1.0)
        if distribution.log or distribution.step is None:
            continue
        wanted = distribution.low + x * (distribution.high - distribution.low)
        assert abs(params[name] - wanted) <= 0.5 * distribution.step + 1e-9


@settings(max_examples=40)
@given(spaces())
def test_the_values_of_a_block_decode_to_all_that_a_parameter_can_be(space: Space) -> None:
    varying = [name for name in space.names if space.columns[name]]
    assert len(space.blocks) == len(varying)
    for name, block in zip(varying, space.blocks, strict=True):
        distribution = space.distributions[name]
        assert block.columns == space.columns[name]
        point = torch.full((space.d,), 0.5, dtype=torch.float64)
        decoded = []
        for value in block.values:
            point[list(block.columns)] = value
            decoded.append(space.decode(point)[name])
        if isinstance(distribution, CategoricalDistribution):
            assert block.kind == "choice"
            assert decoded == list(distribution.choices)
        elif isinstance(distribution, IntDistribution):
            assert block.kind == "grid"
            assert decoded == list(range(distribution.low, distribution.high + 1, distribution.step))
        elif isinstance(distribution, FloatDistribution) and distribution.step is not None:
            assert block.kind == "grid"
            expected = np.arange(distribution.low, distribution.high + 1e-9, distribution.step)
            np.testing.assert_allclose(decoded, expected, rtol=0, atol=1e-9)
        else:
            assert block.kind == "number"
            assert decoded == []
        if block.kind == "grid":
            assert (block.values.diff(dim=0) > 0).all()
            assert block.values[0].item() == pytest.approx(0.0, abs=1e-12)
            assert block.values[-1].item() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=40)
@given(spaces_and_points())
def test_a_block_value_is_the_code_of_its_value(case: tuple[Space, list[float]]) -> None:
    space, point = case
    encoded = space.encode(space.decode(point))
    for block in space.blocks:
        if block.kind != "number":
            distance = (block.values - encoded[list(block.columns)]).abs().amax(-1)
            assert distance.min().item() < 1e-9


@settings(max_examples=40)
@given(spaces())
def test_json_brings_the_same_space_back(space: Space) -> None:
    assert Space.from_json(space.to_json()) == space


def test_columns_labels_and_size_of_a_mixed_space() -> None:
    assert MIXED.d == 6
    assert MIXED.names == ("rate", "kind", "once", "depth", "only", "share")
    assert MIXED.columns == {
        "rate": (0,),
        "kind": (1, 2, 3),
        "once": (),
        "depth": (4,),
        "only": (),
        "share": (5,),
    }
    assert MIXED.labels == ("rate", "kind=a", "kind=b", "kind=None", "depth", "share")
    assert [block.kind for block in MIXED.blocks] == ["number", "choice", "grid", "grid"]
    assert not MIXED.continuous
    assert Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(1, 1)}).continuous


def test_a_known_point_by_hand() -> None:
    params: dict[str, Any] = {
        "rate": 1e-2,
        "kind": None,
        "once": 3.0,
        "depth": 6,
        "only": "x",
        "share": 0.75,
    }
    expected = torch.tensor([0.5, 0.0, 0.0, CHOSEN, 0.5, 0.75], dtype=torch.float64)
    torch.testing.assert_close(MIXED.encode(params), expected, rtol=0, atol=1e-12)
    decoded = MIXED.decode(expected)
    assert decoded.pop("rate") == pytest.approx(params.pop("rate"), rel=1e-12)
    assert decoded == params


def test_many_rows_are_encoded_one_by_one() -> None:
    rows = [MIXED.decode(torch.rand(6, generator=torch.Generator().manual_seed(i))) for i in range(4)]
    assert torch.equal(MIXED.encode_all(rows), torch.stack([MIXED.encode(row) for row in rows]))
    assert MIXED.encode_all([]).shape == (0, 6)
    assert MIXED.encode_all([]).dtype == torch.float64


def test_a_value_outside_the_range_lies_outside_the_cube() -> None:
    space = Space({"a": FloatDistribution(0.0, 10.0), "b": FloatDistribution(1e-2, 1.0, log=True)})
    x = space.encode({"a": -5.0, "b": 10.0})
    torch.testing.assert_close(x, torch.tensor([-0.5, 1.5], dtype=torch.float64))
    assert space.decode(x) == {"a": 0.0, "b": 1.0}


def test_numpy_numbers_and_whole_floats_are_numbers() -> None:
    space = Space({"a": FloatDistribution(0.0, 1.0), "n": IntDistribution(0, 4)})
    x = space.encode({"a": np.float32(0.5), "n": np.int64(3)})
    assert x.tolist() == [0.5, 0.75]
    assert space.encode({"a": 1, "n": 3.0}).tolist() == [1.0, 0.75]


def test_parameters_that_the_space_does_not_have_are_ignored() -> None:
    space = Space({"a": FloatDistribution(0.0, 1.0)})
    assert space.encode({"a": 0.25, "more": "?"}).tolist() == [0.25]


def test_a_grid_whose_high_end_is_no_multiple_ends_where_optuna_ends_it() -> None:
    with pytest.warns(UserWarning, match="not divisible"):
        distribution = IntDistribution(1, 10, step=4)
    space = Space({"n": distribution})
    decoded = [space.decode(value)["n"] for value in space.blocks[0].values]
    assert decoded == [1, 5, 9]


def test_a_very_long_grid_is_searched_as_a_number_but_decoded_on_its_steps() -> None:
    space = Space({"n": IntDistribution(1, 10**9)})
    assert space.blocks[0].kind == "number"
    assert space.decode([0.3]) == {"n": 300_000_001}


def test_integers_beyond_the_exactness_of_floats_stay_in_their_range() -> None:
    space = Space({"n": IntDistribution(-(2**62), 2**62)})
    for x in (0.0, 0.3, 1.0, 1.5):
        assert contained(space.distributions["n"], space.decode([x])["n"])


def test_true_and_one_are_different_things_to_nobody_but_python() -> None:
    space = Space({"flag": CategoricalDistribution([False, True])})
    assert space.decode(space.encode({"flag": True})) == {"flag": True}
    assert space.decode([1.0, 0.0])["flag"] is False


def test_the_space_does_not_follow_later_changes_of_the_dictionary() -> None:
    given_ = {"a": FloatDistribution(0.0, 1.0)}
    space = Space(given_)
    given_["b"] = FloatDistribution(0.0, 1.0)
    assert space.names == ("a",)


@pytest.mark.parametrize(
    ("distribution", "value", "shown"),
    [
        (FloatDistribution(0.5, 24.0), 9.75426, 9.75),
        (FloatDistribution(1.0, 3.0), 1.98903, 1.989),
        (FloatDistribution(1000.0, 1001.0), 1000.123456, 1000.123),
        (FloatDistribution(0.0, 5e6), 1234567.0, 1235000.0),
        (FloatDistribution(1e-5, 0.1, log=True), 0.00123456, 0.00123),
        (FloatDistribution(0.0, 1.0, step=0.25), 0.75, 0.75),
        (FloatDistribution(2.0, 2.0), 2.0, 2.0),
        (FloatDistribution(0.12345, 0.2), 0.123451, 0.12345),
        (IntDistribution(1, 10**6), 123456, 123456),
        (CategoricalDistribution(["a", 0.123456]), 0.123456, 0.123456),
    ],
)
def test_digits(distribution: FloatDistribution, value: float, shown: float) -> None:
    space = Space({"x": distribution, "other": IntDistribution(0, 1)})
    assert space.rounded({"x": value}) == {"x": shown}


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.floats(0.0, 1.0))
def test_a_rounded_number_stays_in_its_range_and_near(low: float, width: float, share: float) -> None:
    high = low + width
    value = min(low + share * width, high)
    shown = Space({"x": FloatDistribution(low, high)}).rounded({"x": value})["x"]
    assert low <= shown <= high
    assert abs(shown - value) <= 1e-3 * (high - low) + 1e-15 * max(abs(low), abs(high))


@given(st.floats(1e-9, 1e3), st.floats(0.01, 20.0), st.floats(0.0, 1.0))
def test_on_a_logarithmic_range(low: float, decades: float, share: float) -> None:
    high = low * 10**decades
    value = min(max(low * 10 ** (share * decades), low), high)
    shown = Space({"x": FloatDistribution(low, high, log=True)}).rounded({"x": value})["x"]
    assert low <= shown <= high
    assert abs(math.log(shown / value)) <= 2e-3 * math.log(high / low) + 1e-12
