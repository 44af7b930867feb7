"""Maximization over integers, steps, categories and numbers against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor

from scaml import MetaData, ScaMLGP, Task, suggest
from scaml.methods.gpbo import GPBO
from scaml.search.cube import DISTINCT, RAW_POINTS, evaluate
from scaml.search.log_nei import NoisyExpectedImprovement
from scaml.search.mixed_space import all_points, maximize_mixed, valid_points
from scaml.search.ucb import UpperConfidenceBound
from scaml.spaces.space import Block, Space
from tests.cases import ONE_MODEL, smooth

SPACES = {
    "number, integer, choice": Space(
        {
            "a": FloatDistribution(0.0, 1.0),
            "n": IntDistribution(1, 7),
            "k": CategoricalDistribution(["x", "y", "z"]),
        }
    ),
    "log integer, steps, number": Space(
        {
            "n": IntDistribution(1, 64, log=True),
            "s": FloatDistribution(0.0, 1.0, step=0.25),
            "a": FloatDistribution(1e-3, 1.0, log=True),
        }
    ),
    "two choices, integer": Space(
        {
            "k": CategoricalDistribution(["x", "y"]),
            "n": IntDistribution(0, 30, step=3),
            "l": CategoricalDistribution([1, 2, 3]),
        }
    ),
    "long integer, choice": Space(
        {"n": IntDistribution(1, 1000), "k": CategoricalDistribution(["x", "y"])}
    ),
}


def random_points(space: Space, n: int, seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    return space.encode_all([space.decode(x) for x in torch.tensor(rng.random((n, space.d)))])


def acquisition_of(space: Space, seed: int, unit: float = 1.0) -> AcquisitionFunction:
    """UCB of a ScaML-GP with two past tasks and four observations."""
    return UpperConfidenceBound(model_of(space, seed, unit), sqrt_beta=2.0)


def model_of(space: Space, seed: int, unit: float = 1.0, n: int = 4) -> ScaMLGP:
    rng = np.random.default_rng(seed)
    tasks = []
    for m, size in enumerate((10, 12, n)):
        X = random_points(space, size, 10 * seed + m)
        y = smooth(X.numpy(), 0.5 * m + seed) + 0.3 * np.cos(7.0 * X.numpy() @ rng.random(space.d))
        tasks.append(Task(X, unit * y, name=f"{m}"))
    prior = ONE_MODEL.meta_fit(MetaData(tasks[:2]), seed=seed)
    return prior.condition(tasks[2], seed=seed)


def brute_force(space: Space, acquisition: AcquisitionFunction) -> tuple[Tensor, Tensor]:
    """All points with every continuous parameter on a fine grid, and their values."""
    line = torch.linspace(0.0, 1.0, 51, dtype=torch.float64).unsqueeze(-1)
    grids = [line if block.kind == "number" else block.values for block in space.blocks]
    rows = torch.stack([torch.cat(parts) for parts in itertools.product(*grids)])
    return rows, evaluate(acquisition, rows)


def assert_point_of(space: Space, x: Tensor) -> None:
    assert x.shape == (space.d,)
    assert x.dtype == torch.float64
    assert not x.requires_grad
    for block in space.blocks:
        part = x[list(block.columns)]
        if block.kind == "number":
            assert 0.0 <= part.item() <= 1.0
        else:
            assert (block.values == part).all(-1).any(), (block.kind, part)
    torch.testing.assert_close(space.encode(space.decode(x)), x, rtol=0, atol=1e-9)


def nothing(space: Space) -> Tensor:
    return torch.empty(0, space.d, dtype=torch.float64)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", list(SPACES))
def test_the_maximum_is_that_of_brute_force(name: str, seed: int) -> None:
    space = SPACES[name]
    acquisition = acquisition_of(space, seed)
    _, values = brute_force(space, acquisition)
    x = maximize_mixed(acquisition, space.blocks, seed=seed, avoid=nothing(space))
    assert_point_of(space, x)
    found = evaluate(acquisition, x[None])
    assert found.item() >= (values.max() - 1e-3 * (values.max() - values.min())).item()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", list(SPACES))
def test_the_maximum_beside_the_best_data_is_found(name: str, seed: int) -> None:
    space = SPACES[name]
    acquisition = NoisyExpectedImprovement(model_of(space, seed, n=20))
    _, values = brute_force(space, acquisition)
    around = acquisition.best_points
    x = maximize_mixed(acquisition, space.blocks, seed=seed, avoid=nothing(space), around=around)
    assert_point_of(space, x)
    assert evaluate(acquisition, x[None]).item() >= values.max().item() - 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_in_a_finite_space_no_point_is_better(seed: int) -> None:
    space = Space(
        {
            "n": IntDistribution(0, 12),
            "s": FloatDistribution(0.0, 1.0, step=0.1),
            "k": CategoricalDistribution(["x", "y", "z"]),
            "m": IntDistribution(1, 12, log=True),
        }
    )
    acquisition = NoisyExpectedImprovement(model_of(space, seed, n=15))
    _, values = brute_force(space, acquisition)
    around = acquisition.best_points
    x = maximize_mixed(acquisition, space.blocks, seed=seed, avoid=nothing(space), around=around)
    assert evaluate(acquisition, x[None]).item() >= values.max().item() - 1e-9


def test_values_that_are_known_at_raw_points_are_not_computed_again() -> None:
    space = SPACES["number, integer, choice"]
    acquisition = acquisition_of(space, 0)
    raw = valid_points(space.blocks, RAW_POINTS, 3)
    empty = nothing(space)
    kept = raw, evaluate(acquisition, raw)
    x = maximize_mixed(acquisition, space.blocks, seed=3, avoid=empty, kept=kept)
    assert torch.equal(x, maximize_mixed(acquisition, space.blocks, seed=3, avoid=empty))
    # A value that is wrong is believed: nothing is evaluated again.
    peak = Peak(raw[5], unit=0.0)
    values = torch.zeros(len(raw), dtype=torch.float64)
    values[5] = 9.0
    x = maximize_mixed(peak, space.blocks, seed=3, avoid=empty, kept=(raw, values))
    assert torch.equal(x, raw[5])


class Spike(AcquisitionFunction):
    """A hill in one corner, and a higher peak of a thousandth of the cube's width."""

    def __init__(self, peak: Tensor) -> None:
        super().__init__(torch.nn.Module())
        self.peak = peak

    def forward(self, X: Tensor) -> Tensor:
        off = (X.squeeze(-2) - self.peak).square().sum(-1)
        value: Tensor = 3.0 * torch.exp(-0.5 * off / 0.001**2) - X.squeeze(-2).square().sum(-1)
        return value


def test_a_peak_too_narrow_for_raw_points_is_found_beside_a_point() -> None:
    space = SPACES["number, integer, choice"]
    peak = space.encode({"a": 0.4137, "n": 5, "k": "y"})
    here = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    beside = (peak + 0.003 * here)[None]
    empty = nothing(space)
    without = maximize_mixed(Spike(peak), space.blocks, seed=0, avoid=empty)
    assert evaluate(Spike(peak), without[None]).item() < 0.0
    x = maximize_mixed(Spike(peak), space.blocks, seed=0, avoid=empty, around=beside)
    assert_point_of(space, x)
    torch.testing.assert_close(x, peak, rtol=0, atol=1e-4)


@pytest.mark.parametrize("taken", [3, 40])
@pytest.mark.parametrize("name", ["number, integer, choice", "two choices, integer"])
def test_points_to_avoid_are_avoided(name: str, taken: int) -> None:
    space = SPACES[name]
    acquisition = acquisition_of(space, 0)
    rows, values = brute_force(space, acquisition)
    best = values.argsort(descending=True)[:taken]
    avoid = rows[best]
    x = maximize_mixed(acquisition, space.blocks, seed=0, avoid=avoid)
    assert_point_of(space, x)
    left = (rows[:, None] - avoid[None]).abs().amax(-1).amin(-1) >= DISTINCT
    assert (avoid - x).abs().amax(-1).min().item() >= DISTINCT
    # Not always the best of what is left, but a good one.
    found = evaluate(acquisition, x[None]).item()
    assert found >= values[left].quantile(0.9 if taken < 10 else 0.5).item()


class Peak(AcquisitionFunction):
    """A cheap function with its maximum, the only one, at a known point."""

    def __init__(self, peak: Tensor, unit: float = 1.0) -> None:
        super().__init__(torch.nn.Module())
        self.peak, self.unit = peak, unit

    def forward(self, X: Tensor) -> Tensor:
        value: Tensor = -self.unit * (X.squeeze(-2) - self.peak).square().sum(-1)
        return value


LONG = Space(
    {
        "n": IntDistribution(1, 1000),
        "m": IntDistribution(1, 100_000, log=True),
        "a": FloatDistribution(0.0, 1.0),
    }
)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1000, 100_000), (537, 12_345)])
def test_long_grids_are_met_exactly(n: int, m: int) -> None:
    peak = LONG.encode({"n": n, "m": m, "a": 0.3})
    x = maximize_mixed(Peak(peak), LONG.blocks, seed=0, avoid=nothing(LONG))
    assert_point_of(LONG, x)
    found = LONG.decode(x)
    assert found["n"] == n
    assert abs(found["m"] - m) <= 1e-3 * m
    assert found["a"] == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_y_does_not_matter(unit: float) -> None:
    space = SPACES["number, integer, choice"]
    points = [
        maximize_mixed(acquisition_of(space, 0, u), space.blocks, seed=0, avoid=nothing(space))
        for u in (1.0, unit)
    ]
    torch.testing.assert_close(points[1], points[0], rtol=0, atol=1e-4)


def test_a_constant_function_has_a_point_too() -> None:
    space = SPACES["number, integer, choice"]
    flat = Peak(torch.zeros(space.d, dtype=torch.float64), unit=0.0)
    assert_point_of(space, maximize_mixed(flat, space.blocks, seed=0, avoid=nothing(space)))


def test_a_plain_gp_without_an_observation_makes_a_suggestion() -> None:
    """Its prior is the same everywhere."""
    space = SPACES["number, integer, choice"]
    meta = MetaData([Task(random_points(space, 4, 0), [1.0, 2.0, 3.0, 4.0])])
    prior = GPBO().meta_fit(meta).in_space(space)
    points = suggest(prior, Task.empty(space.d), q=2)
    for x in points:
        assert_point_of(space, x)
    assert not torch.equal(points[0], points[1])


def test_the_same_seed_gives_the_same_point_whatever_torch_drew_before() -> None:
    space = SPACES["log integer, steps, number"]
    acquisition, points = acquisition_of(space, 1), []
    for i in range(2):
        torch.manual_seed(i)
        before = torch.get_rng_state()
        points.append(maximize_mixed(acquisition, space.blocks, seed=5, avoid=nothing(space)))
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*points)


def test_where_everything_is_taken_there_still_is_an_answer() -> None:
    space = Space({"n": IntDistribution(0, 3), "k": CategoricalDistribution(["x", "y"])})
    every = all_points(space.blocks, 100)
    assert every is not None
    peak = Peak(every[3])
    x = maximize_mixed(peak, space.blocks, seed=0, avoid=every)
    assert_point_of(space, x)
    # One that is left, far from the maximum, is found.
    far = int((every - every[3]).square().sum(-1).argmax())
    left = torch.cat([every[:far], every[far + 1 :]])
    x = maximize_mixed(peak, space.blocks, seed=0, avoid=left)
    assert torch.equal(x, every[far])


def test_all_points_are_all_points() -> None:
    space = SPACES["two choices, integer"]
    rows = all_points(space.blocks, 2 * 11 * 3)
    assert rows is not None
    assert rows.shape == (66, space.d)
    decoded = {tuple(space.decode(row).values()) for row in rows}
    assert decoded == set(itertools.product(["x", "y"], range(0, 31, 3), [1, 2, 3]))
    for row in rows:
        assert_point_of(space, row)


def test_too_many_points_or_a_number_are_no_table() -> None:
    assert all_points(SPACES["two choices, integer"].blocks, 65) is None
    assert all_points(SPACES["number, integer, choice"].blocks, 10**9) is None
    huge = Space({"n": IntDistribution(1, 10**12), "k": CategoricalDistribution(["x", "y"])})
    assert all_points(huge.blocks, 4096) is None
    thousand = torch.eye(1000, dtype=torch.float64)
    many = [Block("choice", tuple(range(1000 * i, 1000 * (i + 1))), thousand) for i in range(50)]
    assert all_points(many, 4096) is None
