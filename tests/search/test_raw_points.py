"""The raw points: in the cube, spread, the same every time."""

from __future__ import annotations

import torch

from scaml.search.raw_points import raw_points


def test_they_depend_on_dimension_and_number_alone() -> None:
    torch.manual_seed(3)
    first = raw_points(3, 64).clone()
    raw_points.cache_clear()
    torch.manual_seed(5)
    assert torch.equal(raw_points(3, 64), first)


def test_every_eighth_of_every_axis_has_its_share() -> None:
    points = raw_points(4, 64)
    assert ((points >= 0.0) & (points <= 1.0)).all()
    for column in (8.0 * points).floor().T:
        assert column.unique(return_counts=True)[1].tolist() == [8] * 8
