from __future__ import annotations

import math

import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from scaml import Space
from scaml.explain.parameters import Parameter, parameters_of, sample
from tests.cases import MIXED


def only(distribution: object) -> Parameter:
    (parameter,) = parameters_of(Space({"p": distribution}), 0)  # type: ignore[dict-item]
    return parameter


def test_without_a_space_the_columns_are_parameters() -> None:
    parameters = parameters_of(None, 3)
    assert [p.name for p in parameters] == ["x1", "x2", "x3"]
    x = torch.tensor([[0.25, 0.5, 0.75]], dtype=torch.float64)
    assert [p.places(x) for p in parameters] == [[0.25], [0.5], [0.75]]


def test_a_parameter_that_cannot_vary_has_no_axis() -> None:
    assert [p.name for p in parameters_of(MIXED, MIXED.d)] == ["rate", "kind", "depth", "share"]


def test_places_are_the_values_that_the_space_decodes() -> None:
    parameters = parameters_of(MIXED, MIXED.d)
    X = sample(parameters, 64, seed=3)
    for parameter in parameters:
        values = [MIXED.decode(x)[parameter.name] for x in X]
        if parameter.choices:
            values = [["a", "b", None].index(value) for value in values]
        assert parameter.places(X) == pytest.approx(values, rel=1e-12)
    assert parameters[1].choices == ("a", "b", None)


def test_a_sample_consists_of_points_of_the_space_and_covers_it() -> None:
    parameters = parameters_of(MIXED, MIXED.d)
    X = sample(parameters, 256, seed=0)
    torch.testing.assert_close(MIXED.encode_all([MIXED.decode(x) for x in X]), X)
    assert torch.equal(X, sample(parameters, 256, seed=0))
    for parameter, k in zip(parameters[1:], (3, 3, 5), strict=True):
        counts = torch.tensor(parameter.places(X)).unique(return_counts=True)[1]
        assert len(counts) == k
        assert ((counts - 256 / k).abs() < 12).all()
    assert abs(float(X[:, 0].mean()) - 0.5) < 0.01


def test_a_logarithmic_integer_is_sampled_on_its_axis() -> None:
    parameter = only(IntDistribution(1, 1000, log=True))
    X = sample([parameter], 256, seed=0)
    below = sum(place <= 31.6 for place in parameter.places(X)) / 256
    assert abs(below - 0.5) < 0.1  # 3 % of the integers, half of the axis
    levels = parameter.places(parameter.levels(10))
    assert levels == pytest.approx([1, 2, 5, 10, 22, 46, 100, 215, 464, 1000], rel=0.08)
    assert parameter.log
    assert not parameter.discrete


def test_levels_are_what_the_parameter_can_take() -> None:
    assert only(IntDistribution(2, 10, step=4)).places(
        only(IntDistribution(2, 10, step=4)).levels(81)
    ) == pytest.approx([2, 6, 10])
    choice = only(CategoricalDistribution(list("abcdefghijklmnop")))
    assert choice.places(choice.levels(5)) == list(range(16))
    assert choice.discrete
    assert choice.ends == (-0.5, 15.5)
    number = only(FloatDistribution(-1.0, 3.0))
    assert number.places(number.levels(3)) == [-1.0, 1.0, 3.0]
    assert number.places(number.strata(2)) == [0.0, 2.0]


def test_distances_are_parts_of_the_range() -> None:
    number, kind, *_ = parameters_of(MIXED, MIXED.d)
    base = {"rate": 1e-4, "kind": "a", "once": 3.0, "depth": 2, "only": "x", "share": 0.0}
    x = MIXED.encode(base)
    X = MIXED.encode_all([base | {"rate": 1e-2}, base | {"kind": None}])
    assert number.distance(X, x).tolist() == pytest.approx([0.5, 0.0])
    assert kind.distance(X, x).tolist() == [0.0, 0.5]


def test_along_changes_one_parameter_alone() -> None:
    _, kind, *_ = parameters_of(MIXED, MIXED.d)
    x = sample(parameters_of(MIXED, MIXED.d), 4, seed=1)
    moved = kind.along(x, kind.levels(9))
    assert moved.shape == (4, 3, MIXED.d)
    for i in range(4):
        for j, choice in enumerate(["a", "b", None]):
            assert MIXED.decode(moved[i, j]) == MIXED.decode(x[i]) | {"kind": choice}
    assert math.isclose(float(kind.levels(9).sum()), 3 * 0.5**1.5)
