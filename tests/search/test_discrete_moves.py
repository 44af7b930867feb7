"""Single changes against all points of a space."""

from __future__ import annotations

import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from scaml.search.discrete_moves import Moves, nearest_places
from scaml.search.valid_points import all_points
from scaml.spaces.space import Space

SPACE = Space(
    {
        "n": IntDistribution(1, 7),
        "k": CategoricalDistribution(["x", "y", "z"]),
        "s": FloatDistribution(0.0, 1.0, step=0.25),
    }
)


def test_thorough_changes_are_all_points_that_differ_in_one_parameter() -> None:
    every = all_points(SPACE.blocks, 200)
    assert every is not None
    for x in every[::17]:
        differ = sum((every != x)[:, list(b.columns)].any(-1).long() for b in SPACE.blocks)
        expected = {tuple(row.tolist()) for row in every[differ == 1]}
        found = Moves.changes(x, SPACE.blocks)
        assert {tuple(row.tolist()) for row in found} == expected
        assert len(found) == len(expected)


def test_a_grid_moves_by_powers_of_two() -> None:
    space = Space({"n": IntDistribution(0, 100), "a": FloatDistribution(0.0, 1.0)})
    x = space.encode({"n": 30, "a": 0.5})
    moves = Moves.of(x[None], space.blocks)
    found = [space.decode(row)["n"] for row in moves.points[moves.valid]]
    assert found == [14, 22, 26, 28, 29, 31, 32, 34, 38, 46, 62, 94]
    assert (moves.points[..., 1] == 0.5).all()


def test_helpful_changes_are_made_together() -> None:
    x = SPACE.encode({"n": 4, "k": "x", "s": 0.5})
    peak = SPACE.encode({"n": 5, "k": "z", "s": 0.5})
    moves = Moves.of(x[None], SPACE.blocks)
    found = -(moves.points - peak).square().sum(-1)
    found[~moves.valid] = -torch.inf
    together, helpful = moves.together(x[None], found, -(x - peak).square().sum()[None])
    assert torch.equal(together[0], peak)
    assert helpful.tolist() == [2]


def test_nearest_places_are_those_of_all_distances() -> None:
    values = torch.rand(20, 1, dtype=torch.float64).sort(0).values
    X = torch.linspace(-0.2, 1.2, 101, dtype=torch.float64)[:, None]
    assert torch.equal(nearest_places(X, values), (X - values.T).abs().argmin(-1))
