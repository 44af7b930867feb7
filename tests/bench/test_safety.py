"""The safety families: what is wrong with each past is there, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scaml import SettingError
from scaml.bench.problems import problem
from scaml.bench.safety import SAFETY, Safety

every_family = pytest.mark.parametrize("family", SAFETY.values(), ids=list(SAFETY))
RUNS = range(12)


def correlations(name: str) -> np.ndarray:
    """Correlations of the past values with the test-task's at the same points, `runs x M`."""
    family = SAFETY[name]
    return np.array(
        [
            [
                np.corrcoef(task.y, family.draw(run)(task.X))[0, 1]
                for task in family.meta_data(family.tasks, 200, run)
            ]
            for run in RUNS
        ]
    )


@every_family
def test_the_maximum_bounds_random_points_and_is_attained(family: Safety) -> None:
    function = family.draw(3)
    X = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = function(X)
    assert values.max() <= function.maximum
    near = X[values.argmax()] + 0.02 * torch.randn(20_000, 3, dtype=torch.float64)
    assert function(near.clamp(0, 1)).max() == pytest.approx(function.maximum, abs=0.02)


@every_family
def test_a_seed_decides_everything(family: Safety) -> None:
    one, same, other = (family.meta_data(3, 5, seed) for seed in (0, 0, 1))
    for a, b, c in zip(one, same, other, strict=True):
        assert torch.equal(a.X, b.X)
        assert torch.equal(a.y, b.y)
        assert not torch.equal(a.y, c.y)
    x = [[0.2, 0.4, 0.6]]
    assert family.draw(0)(x) == family.draw(0)(x) != family.draw(1)(x)


def test_all_families_share_their_test_tasks() -> None:
    x = [[0.1, 0.5, 0.9]]
    assert len({family.draw(7)(x).item() for family in SAFETY.values()}) == 1


def test_related_tasks_are_alike_and_others_are_not() -> None:
    assert correlations("related").mean() > 0.8
    assert abs(correlations("unrelated").mean()) < 0.1
    assert correlations("mirrored").mean() < -0.7
    assert 0.1 < correlations("shifted").mean() < 0.7


def test_one_of_many_is_good() -> None:
    best = np.sort(correlations("one-good"), axis=1)
    assert best.shape[1] == 31
    assert best[:, -1].mean() > 0.8
    assert abs(best[:, :-1].mean()) < 0.1
    places = {int(row.argmax()) for row in correlations("one-good")}
    assert len(places) > 3  # not always the same one


def test_outliers_are_few_and_gross() -> None:
    family = SAFETY["outliers"]
    wrong = [
        (task.y - SAFETY["related"].draw(run)(task.X)).abs() > 5
        for run in RUNS
        for task in family.meta_data(8, 100, run)
    ]
    assert 0.03 < torch.stack(wrong).double().mean() < 0.06


def test_every_task_has_its_own_units() -> None:
    tasks = SAFETY["units"].meta_data(30, 50, 0)
    scales = torch.stack([task.y.std() for task in tasks])
    assert scales.max() > 1e3 * scales.min()
    assert np.mean(correlations("units")) > 0.8


def test_noise_and_points() -> None:
    assert SAFETY["noisy"].noise >= 0.5
    assert problem("noisy").draw(0).noise == SAFETY["noisy"].noise
    assert {task.n for task in problem("three-points").draw(0).meta} == {3}


def test_a_wave_is_a_draw_from_a_gp() -> None:
    # Over many draws, the covariance of two points is the squared-exponential kernel's.
    X = torch.tensor([[0.3, 0.3, 0.3], [0.5, 0.3, 0.3]], dtype=torch.float64)
    worlds = torch.stack([SAFETY["related"].draw(seed).world(X) for seed in range(4000)])
    found = torch.cov(worlds.T)
    expected = np.exp(-0.5 * (0.2 / 0.35) ** 2)
    assert found[0, 0] == pytest.approx(1.0, abs=0.08)
    assert found[0, 1] == pytest.approx(expected, abs=0.08)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(SettingError, match="number of meta-tasks"):
        SAFETY["units"].meta_data(0, 5, 0)
    with pytest.raises(SettingError, match="number of points"):
        SAFETY["units"].meta_data(3, 1, 0)
