"""The vector that a search for θ_t moves: the paper's coordinates, and ours where they are learned."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scaml.model.hyperparameters import Coordinates, Hyperparameters, ThetaPriors
from scaml.model.weight_priors import weight_prior


def test_the_paper_has_weights_lengthscales_outputscale_and_noise_alone() -> None:
    paper = Coordinates.of(5, 3, ThetaPriors(weight_prior("positive")))
    assert paper == Coordinates(5, 3, common=False, scale=False)
    assert paper.size == 5 + 3 + 2
    ours = Coordinates.of(5, 3, ThetaPriors(weight_prior("shared"), level=1.0, spread=0.5))
    assert ours.size == paper.size + 2
    level_alone = Coordinates.of(5, 3, ThetaPriors(weight_prior("positive"), level=1.0))
    assert level_alone == paper  # the level is integrated out


@given(st.integers(0, 4), st.integers(1, 3), st.booleans(), st.booleans())
def test_joining_undoes_splitting(tasks: int, d: int, common: bool, scale: bool) -> None:
    coordinates = Coordinates(tasks, d, common, scale)
    x = torch.arange(2 * coordinates.size, dtype=torch.float64).view(2, -1)
    parts = coordinates.split(x)
    assert parts.w.shape == (2, tasks)
    assert parts.theta.shape == (2, d + 2)
    assert (parts.c is not None) == common
    assert (parts.s is not None) == scale
    assert torch.equal(coordinates.join(parts), x)


def test_c_stands_before_s() -> None:
    parts = Coordinates(1, 1, common=True, scale=True).split(torch.arange(6.0).double())
    assert parts.c is not None
    assert parts.s is not None
    assert (parts.c.item(), parts.s.item()) == (1.0, 2.0)
    assert parts.theta.tolist() == [3.0, 4.0, 5.0]


def test_hyperparameters_from_logarithms() -> None:
    theta = Hyperparameters.from_vector(torch.tensor([0.3, 0.0, 1.0, -1.0, -2.0]).double(), d=2)
    assert theta.weights.tolist() == pytest.approx([0.3])
    assert theta.lengthscale.log().tolist() == pytest.approx([0.0, 1.0])
    assert theta.outputscale.log().item() == pytest.approx(-1.0)
    assert theta.noise.log().item() == pytest.approx(-2.0)
    assert theta.level.item() == 0.0
