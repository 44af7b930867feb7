"""Points to begin with: evolved sets, and their way through models and acquisition functions."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from scaml.gp.moments_model import MomentsModel
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import standardize
from scaml.methods.shared.ensemble import Ensemble
from scaml.methods.shared.initial_points import Nearest, Started, evolve
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.search.cube import maximize_on_cube
from tests.cases import query, task_of

POINTS = torch.tensor([[0.3, 0.6], [0.0, 1.0], [0.9, 0.2]], dtype=torch.float64)


def plain() -> Ensemble:
    """A process of one plain GP."""
    task = task_of(5, 2)
    own = fit_plain_gp(task, standardize(task.y), kernel="se", seed=0)
    return Ensemble(TaskGPs.none(2, kernel="se"), own, torch.empty(0, dtype=torch.float64), 1.0)


def test_evolution_finds_a_good_set() -> None:
    """The best three points for three targets are the targets."""
    targets = torch.tensor([[0.1, 0.9], [0.5, 0.2], [0.9, 1.0]], dtype=torch.float64)

    def fitness(sets: Tensor) -> Tensor:
        distance = (sets[:, :, None] - targets).square().sum(-1)
        return -distance.amin(1).sum(-1)

    found = evolve(fitness, 3, 2, seed=0)
    orders = [found[list(order)] for order in itertools.permutations(range(3))]
    assert min(float((order - targets).abs().max()) for order in orders) < 0.03
    assert torch.equal(found, evolve(fitness, 3, 2, seed=0))
    assert not torch.equal(found, evolve(fitness, 3, 2, seed=1))
    assert ((found >= 0) & (found <= 1)).all()


def test_a_started_model_predicts_as_the_one_inside() -> None:
    inner = plain()
    model = Started(inner, POINTS)
    X = query(4, 3, 2)
    ours, theirs = model.posterior(X), inner.posterior(X)
    assert torch.equal(ours.mean, theirs.mean)
    torch.testing.assert_close(ours.variance, theirs.variance)
    assert torch.equal(model.cross(X, X), inner.cross(X, X))
    assert model.batch_shape == inner.batch_shape


def test_its_points_are_asked_for_in_turn() -> None:
    model, X = plain(), query(1, 2)
    started: MomentsModel = Started(model, POINTS)
    for point in POINTS:
        assert isinstance(started, Started)
        torch.testing.assert_close(
            maximize_on_cube(Nearest(started), 2, seed=0), point, rtol=0, atol=1e-5
        )
        started = started.condition_on_observations(X, torch.ones(1, 1, dtype=torch.float64))
    assert not isinstance(started, Started)
    two = Started(model, POINTS).condition_on_observations(query(2, 2), query(2, 1))
    assert isinstance(two, Started)
    assert torch.equal(two.points_left, POINTS[2:])
    plainly = model.condition_on_observations(query(2, 2), query(2, 1))
    assert torch.equal(two.posterior(X).mean, plainly.posterior(X).mean)


def test_the_acquisition_function_is_the_distance() -> None:
    X = query(5, 1, 2)
    expected = [-float((x - POINTS[0]).norm() ** 2) for x in X]
    values = Nearest(Started(plain(), POINTS))(X)
    torch.testing.assert_close(values, torch.tensor(expected, dtype=torch.float64))
