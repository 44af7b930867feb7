"""Points of a space: valid, spread over it, and the nearest."""

from __future__ import annotations

import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from scaml.search.valid_points import first_points, fixed_columns, nearest_points, valid_points
from scaml.spaces.space import Space

SPACE = Space(
    {
        "a": FloatDistribution(0.0, 1.0),
        "n": IntDistribution(1, 8),
        "k": CategoricalDistribution(["x", "y", "z"]),
    }
)


def test_valid_points_are_points_of_the_space_and_the_same_again() -> None:
    points = valid_points(SPACE.blocks, 256, 3)
    assert torch.equal(points, valid_points(SPACE.blocks, 256, 3))
    assert not torch.equal(points, valid_points(SPACE.blocks, 256, 4))
    again = SPACE.encode_all([SPACE.decode(x) for x in points])
    torch.testing.assert_close(points, again, rtol=0, atol=1e-12)


def test_all_values_are_equally_frequent() -> None:
    points = valid_points(SPACE.blocks, 960, 0)
    _, times = points[:, 1].unique(return_counts=True)
    assert len(times) == 8
    assert int((times - 120).abs().max()) <= 12
    assert int(((points[:, 2:] > 0).sum(0) - 320).abs().max()) <= 12


def test_nearest_points_keep_numbers_and_round_the_rest() -> None:
    X = torch.rand(50, SPACE.d, dtype=torch.float64)
    found = nearest_points(X, SPACE.blocks)
    expected = SPACE.encode_all([SPACE.decode(x) for x in X])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert fixed_columns(SPACE.blocks, SPACE.d).tolist() == [False, True, True, True, True]


def test_first_points_are_different_points() -> None:
    for n in (1, 5, 100):
        points = first_points(SPACE.blocks, n)
        assert points.shape == (n, SPACE.d)
        assert len(points.unique(dim=0)) == n
