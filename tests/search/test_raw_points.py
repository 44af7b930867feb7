"""The raw points: in the space, spread, the same every time."""

from __future__ import annotations

import pickle

import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from scaml.search.raw_points import RawPoints
from scaml.spaces.space import Space

MIXED = Space(
    {
        "a": FloatDistribution(0.0, 1.0),
        "n": IntDistribution(1, 5),
        "kind": CategoricalDistribution(["x", "y", "z"]),
    }
)


def test_they_depend_on_space_and_number_alone() -> None:
    for space, d in ((None, 3), (MIXED, MIXED.d)):
        torch.manual_seed(3)
        first = RawPoints().of(space, d, 64)
        torch.manual_seed(5)
        assert torch.equal(RawPoints().of(space, d, 64), first)


def test_every_eighth_of_every_axis_has_its_share() -> None:
    points = RawPoints().of(None, 4, 64)
    assert ((points >= 0.0) & (points <= 1.0)).all()
    for column in (8.0 * points).floor().T:
        assert column.unique(return_counts=True)[1].tolist() == [8] * 8


def test_those_of_a_mixed_space_are_valid() -> None:
    points = RawPoints().of(MIXED, MIXED.d, 64)
    for x in points:
        torch.testing.assert_close(MIXED.encode(MIXED.decode(x)), x)


def test_another_space_has_others_and_the_same_is_not_drawn_again() -> None:
    raw = RawPoints()
    cube = raw.of(None, MIXED.d, 32)
    assert raw.of(None, MIXED.d, 32) is cube
    mixed = raw.of(MIXED, MIXED.d, 32)
    assert not torch.equal(mixed, cube)
    assert torch.equal(raw.of(None, MIXED.d, 32), cube)
    assert raw.of(None, MIXED.d, 16).shape == (16, MIXED.d)
    assert torch.equal(pickle.loads(pickle.dumps(raw)).of(MIXED, MIXED.d, 32), mixed)
