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


# Stored results of a run are compared with later runs of it: the numbers of a family never change.
FROM_THE_BEGINNING = {
    "related": 0.9962005661066711,
    "unrelated": 0.7487061957890285,
    "mirrored": -0.5351692016501033,
    "shifted": -0.9933546940717322,
    "one-good": 0.9962005661066711,
    "outliers": 0.9962005661066711,
    "units": 5.769600341011778,
    "noisy": 0.9217624979932013,
    "three-points": 0.9962005661066711,
}


@pytest.mark.parametrize("name", FROM_THE_BEGINNING)
def test_families_draw_what_they_always_drew(name: str) -> None:
    family = SAFETY[name]
    task = family.meta_data(4, 3, 1).tasks[2]
    assert task.name == f"{name}-2"
    if name != "units":
        assert task.X[1].tolist() == [0.8801003378373301, 0.9795393852857323, 0.35816745542980444]
    assert task.y[1].item() == pytest.approx(FROM_THE_BEGINNING[name], rel=1e-12)
    assert family.draw(1)([[0.1, 0.5, 0.9]]).item() == pytest.approx(0.44616692578854744, rel=1e-12)


def test_good_tasks_are_those_that_are_alike() -> None:
    for name, number in (("one-good", 1), ("one-flipped", 7), ("two-groups", 8), ("unrelated", 0)):
        family = SAFETY[name]
        for run, found in zip(RUNS, correlations(name), strict=True):
            past = family.meta_data(family.tasks, 2, run).names
            good = family.good_tasks(family.tasks, run)
            assert len(good) == number
            # The own part of a task may happen to resemble the test-task, or to hide its world.
            if number:
                assert np.mean([past[m] in good for m in np.argsort(found)[-number:]]) >= 0.7
    assert len(SAFETY["related"].good_tasks(5, 0)) == 5
    assert len(SAFETY["one-good-99"].good_tasks(100, 0)) == 1


def test_one_of_eight_is_flipped() -> None:
    found = np.sort(correlations("one-flipped"), axis=1)
    assert found.shape[1] == 8
    assert found[:, 0].mean() < -0.7
    assert found[:, 1:].mean() > 0.7
    assert len({int(row.argmin()) for row in correlations("one-flipped")}) > 3


def test_seven_good_is_one_flipped_without_the_flipped_task() -> None:
    for run in RUNS:
        whole, part = (SAFETY[name] for name in ("one-flipped", "seven-good"))
        good = {name.rpartition("-")[2] for name in whole.good_tasks(8, run)}
        kept = [task for task in whole.meta_data(8, 32, run) if task.name.rpartition("-")[2] in good]
        seven = part.meta_data(7, 32, run)
        assert len(kept) == 7
        assert seven.names == part.good_tasks(7, run)
        for task, same in zip(kept, seven, strict=True):
            assert task.name.rpartition("-")[2] == same.name.rpartition("-")[2]
            assert torch.equal(task.X, same.X)
            assert torch.equal(task.y, same.y)


def test_two_groups_have_a_world_each() -> None:
    family, own = SAFETY["two-groups"], []
    for run in RUNS:
        past = family.meta_data(16, 400, run)
        good = [name in family.good_tasks(16, run) for name in past.names]
        own.append(good)
        function = family.draw(run)
        to_test = [np.corrcoef(task.y, function(task.X))[0, 1] for task in past]
        assert np.mean([r for r, is_good in zip(to_test, good, strict=True) if is_good]) > 0.7
    assert {sum(good) for good in own} == {8}
    # Which half the test-task belongs to, in the order of the tasks, is left to chance.
    assert 0.2 < np.mean([good[0] for good in own]) < 0.8


def test_the_other_half_is_alike_among_itself() -> None:
    # At shared points: tasks of one world correlate, those of two worlds do not.
    family, within, between = SAFETY["two-groups"], [], []
    X = torch.rand(300, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for run in RUNS:
        world = family.draw(run).world
        other, alike = family._different(world, run)
        assert alike == 0.95
        between.append(np.corrcoef(world(X), other(X))[0, 1])
        past = family.meta_data(16, 300, run)
        good = family.good_tasks(16, run)
        within += [np.corrcoef(t.y, other(t.X))[0, 1] for t in past if t.name not in good]
    assert np.mean(within) > 0.8
    assert abs(np.mean(between)) < 0.2


@pytest.mark.parametrize("name", ["one-flipped", "seven-good", "two-groups"])
def test_fewer_tasks_are_the_first_of_more(name: str) -> None:
    family = SAFETY[name]
    many, few = (family.meta_data(tasks, 5, 4) for tasks in (family.tasks, 3))
    assert few.names == many.names[:3]
    assert all(torch.equal(a.y, b.y) for a, b in zip(few, many.tasks[:3], strict=True))
    assert set(family.good_tasks(3, 4)) == set(family.good_tasks(family.tasks, 4)) & set(few.names)


def test_more_tasks_than_there_are_are_refused() -> None:
    with pytest.raises(SettingError, match=r"meta-tasks is 8; 'seven-good' has at most 7\.$"):
        SAFETY["seven-good"].meta_data(8, 5, 0)
    with pytest.raises(SettingError, match=r"17 meta-tasks are asked of 'two-groups', which has 16"):
        problem("two-groups").draw(0, meta_tasks=17)
    assert len(problem("one-good").draw(0, meta_tasks=40, points=2).meta) == 40


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
