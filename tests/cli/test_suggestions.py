"""Numbers that somebody is to set."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from scaml.cli.suggestions import _rounded
from scaml.space import Space


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
    assert _rounded({"x": value}, space) == {"x": shown}


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.floats(0.0, 1.0))
def test_a_rounded_number_stays_in_its_range_and_near(low: float, width: float, share: float) -> None:
    high = low + width
    value = min(low + share * width, high)
    shown = _rounded({"x": value}, Space({"x": FloatDistribution(low, high)}))["x"]
    assert low <= shown <= high
    assert abs(shown - value) <= 1e-3 * (high - low) + 1e-15 * max(abs(low), abs(high))


@given(st.floats(1e-9, 1e3), st.floats(0.01, 20.0), st.floats(0.0, 1.0))
def test_on_a_logarithmic_range(low: float, decades: float, share: float) -> None:
    high = low * 10**decades
    value = min(max(low * 10 ** (share * decades), low), high)
    shown = _rounded({"x": value}, Space({"x": FloatDistribution(low, high, log=True)}))["x"]
    assert low <= shown <= high
    assert abs(math.log(shown / value)) <= 2e-3 * math.log(high / low) + 1e-12
