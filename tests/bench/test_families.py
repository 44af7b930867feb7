"""The synthetic families: known minima, the paper's ranges, and seeds that decide everything."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from scaml import SettingError, SpaceError
from scaml.bench import FAMILIES, Family, Function

BRANIN = (1.0, 5.1 / (4 * math.pi**2), 5 / math.pi, 6.0, 10.0, 1 / (8 * math.pi))
HARTMANN = (1.0, 1.2, 3.0, 3.2)
KNOWN = [
    ("branin", BRANIN, 0.397887),
    ("hartmann3", HARTMANN, -3.86278),
    ("hartmann6", HARTMANN, -3.32237),
]

every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))


@pytest.mark.parametrize(("name", "parameters", "minimum"), KNOWN)
def test_standard_parameters_give_the_known_minimum(
    name: str, parameters: tuple[float, ...], minimum: float
) -> None:
    assert Function(FAMILIES[name], parameters).maximum == pytest.approx(-minimum, abs=6e-6)


@pytest.mark.parametrize(
    ("name", "parameters", "x"),
    [
        ("branin", BRANIN, [(math.pi + 5) / 15, 2.275 / 15]),
        ("branin", BRANIN, [(5 - math.pi) / 15, 12.275 / 15]),
        ("branin", BRANIN, [(9.42478 + 5) / 15, 2.475 / 15]),
        ("hartmann3", HARTMANN, [0.114614, 0.555649, 0.852547]),
        ("hartmann6", HARTMANN, [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]),
    ],
)
def test_known_optima_are_where_they_should_be(
    name: str, parameters: tuple[float, ...], x: list[float]
) -> None:
    function = Function(FAMILIES[name], parameters)
    assert function([x]).item() == pytest.approx(function.maximum, abs=1e-5)


def test_branin_by_hand() -> None:
    function = Function(FAMILIES["branin"], (0.7, 0.12, 1.3, 5.5, 9.0, 0.04))
    x1, x2 = 15 * 0.3 - 5, 15 * 0.8
    value = 0.7 * (x2 - 0.12 * x1**2 + 1.3 * x1 - 5.5) ** 2 + 9 * (1 - 0.04) * math.cos(x1) + 9
    assert function([[0.3, 0.8]]).tolist() == [pytest.approx(-value, rel=1e-14)]


@every_family
@pytest.mark.parametrize("seed", range(3))
def test_maximum_bounds_random_points_and_is_attained(family: Family, seed: int) -> None:
    function = family.draw(seed)
    X = torch.tensor(np.random.default_rng(seed).random((8, 2500, family.d)))
    values = function(X.flatten(0, 1)).view(8, 2500)
    assert values.max() <= function.maximum
    # SciPy, from starts of its own, is the independent search.
    starts = X[torch.arange(8), values.argmax(-1)]
    best = max(ascend(function, start.numpy()) for start in starts)
    assert best == pytest.approx(function.maximum, abs=1e-6)


def ascend(function: Function, start: np.ndarray) -> float:
    """SciPy's local maximum from a start, with slopes by differences."""

    def loss(x: np.ndarray) -> float:
        return -function(x[None]).item()

    return -float(minimize(loss, start, bounds=[(0, 1)] * len(start), tol=1e-12).fun)


@every_family
def test_parameters_fill_the_ranges_of_the_paper(family: Family) -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([family.draw(rng).parameters for _ in range(1000)])
    low, high = np.array(family.low), np.array(family.high)
    assert (drawn >= low).all()
    assert (drawn <= high).all()
    share = (drawn - low) / (high - low)
    assert share.min(0) == pytest.approx(0.0, abs=0.02)
    assert share.max(0) == pytest.approx(1.0, abs=0.02)
    assert share.mean(0) == pytest.approx(0.5, abs=0.04)
    assert np.abs(np.corrcoef(share.T) - np.eye(len(low))).max() < 0.15


def test_ranges_are_those_of_the_appendix() -> None:
    ranges = {name: list(zip(f.low, f.high, strict=True)) for name, f in FAMILIES.items()}
    hartmann = [(1.00, 1.02), (1.18, 1.20), (2.8, 3.0), (3.2, 3.4)]
    assert ranges == {
        "branin": [(0.5, 1.5), (0.1, 0.15), (1, 2), (5, 7), (8, 12), (0.03, 0.05)],
        "hartmann3": hartmann,
        "hartmann6": hartmann,
    }
    assert {name: (f.d, f.noise, f.points) for name, f in FAMILIES.items()} == {
        "branin": (2, 1.0, 32),
        "hartmann3": (3, 0.1, 32),
        "hartmann6": (6, 0.1, 128),
    }


@every_family
def test_seed_decides_everything(family: Family) -> None:
    assert family.draw(3) == family.draw(3)
    assert family.draw(3) != family.draw(4)
    one, same, other = (family.meta_data(2, 5, seed) for seed in (3, 3, 4))
    for i in range(2):
        assert torch.equal(one[i].X, same[i].X)
        assert torch.equal(one[i].y, same[i].y)
        assert not torch.equal(one[i].X, other[i].X)
    assert not torch.equal(one[0].X, one[1].X)


def test_meta_data_have_names_sizes_and_do_not_depend_on_the_number_of_tasks() -> None:
    family = FAMILIES["hartmann3"]
    few, many = family.meta_data(2, 7, 0), family.meta_data(5, 7, 0)
    assert few.names == ("hartmann3-0", "hartmann3-1")
    assert [(task.n, task.d) for task in many] == [(7, 3)] * 5
    for task, same in zip(few, many, strict=False):
        assert torch.equal(task.y, same.y)


def test_generator_is_advanced() -> None:
    rng = np.random.default_rng(0)
    assert FAMILIES["branin"].draw(rng) != FAMILIES["branin"].draw(rng)


@every_family
def test_noise_has_the_papers_deviation(family: Family) -> None:
    rng = np.random.default_rng(0)
    meta = family.meta_data(1, 4000, rng)
    noiseless = family.draw(np.random.default_rng(0))
    assert (meta[0].y - noiseless(meta[0].X)).std().item() == pytest.approx(family.noise, rel=0.05)


@every_family
def test_function_of_a_seed_is_no_meta_task_of_that_seed(family: Family) -> None:
    quiet = replace(family, noise=0.0)
    task = quiet.meta_data(1, 5, 0)[0]
    assert (task.y - quiet.draw(0)(task.X)).abs().min() > 1e-6


def test_values_are_float64_and_points_are_checked() -> None:
    function = FAMILIES["branin"].draw(0)
    values = function(np.zeros((3, 2), dtype=np.float32))
    assert values.dtype == torch.float64
    assert values.shape == (3,)
    with pytest.raises(SpaceError, match="3 columns but the space has 2"):
        function(np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("tasks", "points", "seed", "message"),
    [
        (0, 5, 0, "number of meta-tasks is 0; give an integer of at least 1"),
        (2, 1, 0, "points of a meta-task is 1; give an integer of at least 2"),
        (True, 5, 0, "number of meta-tasks is True"),
        (2, 5, -1, "seed is -1"),
    ],
)
def test_bad_settings_are_refused(tasks: int, points: int, seed: int, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        FAMILIES["branin"].meta_data(tasks, points, seed)
