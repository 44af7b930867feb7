"""Groups of past tasks that are alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scaml import MetaData, Task, TaskGPs
from scaml.model.task_groups import ALIKE, Group, correlations, groups_of
from tests.oracles import Array, kernel_matrix

LENGTHSCALE, OUTPUTSCALE, NOISE = 0.35, 1.0, 1e-3


def bowl(X: Array) -> Array:
    return np.asarray(-((X - 0.3) ** 2).sum(-1))


def wave(X: Array) -> Array:
    return np.asarray(np.cos(2.0 * np.pi * X[:, 0]))


def other_wave(X: Array) -> Array:
    return np.asarray(np.sin(2.0 * np.pi * X[:, 0]))


def steep_wave(X: Array) -> Array:
    return np.asarray(np.sin(2.0 * np.pi * X[:, 1]) * np.cos(2.0 * np.pi * X[:, 0]))


Function = Callable[[Array], Array]
TWO_GROUPS: list[tuple[Function, float]] = [
    (bowl, 1.0),
    (wave, 1.0),
    (wave, 5.0),
    (bowl, 0.2),
    (other_wave, 1.0),
    (wave, -2.0),
    (bowl, 30.0),
    (wave, 0.5),
]


def past(parts: Sequence[tuple[Function, float]], n: int = 20) -> MetaData:
    """Tasks in two parameters, each a function times a factor, plus a level and a little noise."""
    tasks = []
    for m, (function, factor) in enumerate(parts):
        rng = np.random.default_rng(m)
        X = rng.random((n, 2))
        y = factor * (function(X) + 0.02 * rng.standard_normal(n)) + 10.0 * m
        tasks.append(Task(X, y, name=f"t{m}"))
    return MetaData(tasks)


def gps_of(meta: MetaData) -> TaskGPs:
    M = len(meta)
    return TaskGPs.condition(
        meta,
        kernel="se",
        lengthscale=torch.full((M, 2), LENGTHSCALE, dtype=torch.float64),
        outputscale=torch.full((M,), OUTPUTSCALE, dtype=torch.float64),
        noise=torch.full((M,), NOISE, dtype=torch.float64),
    )


def found_in(meta: MetaData) -> list[Group]:
    return groups_of(meta, gps_of(meta))


def named(meta: MetaData, groups: list[Group]) -> set[frozenset[tuple[str, int]]]:
    """Groups without their order."""
    return {
        frozenset((meta.names[m], sign) for m, sign in zip(g.tasks, g.signs, strict=True))
        for g in groups
    }


def test_correlations_are_those_of_dense_posterior_means() -> None:
    meta = past(TWO_GROUPS[:5], n=12)
    Q = np.concatenate([task.X.numpy() for task in meta])
    ell = np.full(2, LENGTHSCALE)
    means = []
    for task in meta:
        X, z = task.X.numpy(), ((task.y - task.y.mean()) / task.y.std()).numpy()
        K = kernel_matrix("se", X, X, ell, OUTPUTSCALE) + NOISE * np.eye(len(X))
        means.append(kernel_matrix("se", Q, X, ell, OUTPUTSCALE) @ np.linalg.solve(K, z))
    found = correlations(meta, gps_of(meta))
    np.testing.assert_allclose(found.numpy(), np.corrcoef(means), rtol=0, atol=1e-10)


def test_correlations_are_over_points_of_all_the_past_if_it_is_long() -> None:
    """Of 500 points 256 are taken, evenly."""
    meta = past(TWO_GROUPS[:5], n=100)
    gps = gps_of(meta)
    rows = np.linspace(0, 499, 256).round().astype(int)
    X = torch.cat([task.X for task in meta])[torch.tensor(rows)]
    found = correlations(meta, gps).numpy()
    np.testing.assert_allclose(found, np.corrcoef(gps.mean(X).numpy()), rtol=0, atol=1e-10)


def test_a_flat_task_correlates_with_none() -> None:
    def flat(X: Array) -> Array:
        return np.zeros(len(X))

    tasks = list(past(TWO_GROUPS[:4]))
    X = tasks[0].X.numpy()
    meta = MetaData([*tasks, Task(X, flat(X), name="flat")])
    rho = correlations(meta, gps_of(meta))
    assert (rho[-1] == 0).all()
    assert rho.isfinite().all()


def test_two_groups_are_found_the_larger_first_and_a_mirrored_member_gets_its_sign() -> None:
    assert found_in(past(TWO_GROUPS)) == [
        Group((1, 2, 5, 7), (1, 1, -1, 1)),
        Group((0, 3, 6), (1, 1, 1)),
    ]


@pytest.mark.parametrize("factors", [(1.0, -1.0, -1.0), (-1.0, 1.0, -1.0, -1.0), (-1.0, -1.0, -1.0)])
def test_the_majority_of_a_group_has_the_sign_one(factors: tuple[float, ...]) -> None:
    (group,) = found_in(past([(bowl, factor) for factor in factors]))
    assert group.tasks == tuple(range(len(factors)))
    assert group.signs == tuple(-int(factor) for factor in factors)


def test_unrelated_tasks_are_no_group() -> None:
    parts: list[tuple[Function, float]] = [(f, 1.0) for f in (bowl, wave, other_wave, steep_wave)]
    meta = past(parts)
    rho = correlations(meta, gps_of(meta)).abs()
    assert (rho - torch.eye(4, dtype=torch.float64)).max() < ALIKE
    assert found_in(meta) == []


def test_two_of_a_kind_are_no_group() -> None:
    assert found_in(past([(bowl, 1.0), (bowl, 1.0), (wave, 1.0), (steep_wave, 1.0)])) == []


@pytest.mark.parametrize("M", [1, 2])
def test_fewer_than_three_tasks_are_no_group(M: int) -> None:
    assert found_in(past([(bowl, 1.0)] * M)) == []
    assert len(found_in(past([(bowl, 1.0)] * 3))) == 1


@given(order=st.permutations(range(len(TWO_GROUPS))), n=st.sampled_from([20, 60]))
@settings(max_examples=25)
def test_the_order_of_the_tasks_does_not_matter(order: list[int], n: int) -> None:
    meta = past(TWO_GROUPS, n=n)
    shuffled = MetaData([meta[m] for m in order])
    expected = named(meta, found_in(meta))
    groups = found_in(shuffled)
    assert named(shuffled, groups) == expected
    assert [len(g.tasks) for g in groups] == [4, 3]
    assert len(expected) == 2


def test_at_most_eight_groups_are_kept_the_largest() -> None:
    """Eleven groups on waves of different frequencies: the last has four tasks, the others three."""

    def wave_of(k: int) -> Function:
        return lambda X: np.asarray(np.cos(np.pi * k * X[:, 0]))

    parts = [(wave_of(k), 1.0) for k in range(1, 11) for _ in range(3)] + [(wave_of(11), 1.0)] * 4
    rng = np.random.default_rng(0)
    tasks = []
    for m, (function, factor) in enumerate(parts):
        X = np.stack([(np.arange(60) + rng.random(60)) / 60, rng.random(60)], axis=-1)
        tasks.append(Task(X, factor * function(X), name=f"t{m}"))
    meta = MetaData(tasks)
    M = len(meta)
    gps = TaskGPs.condition(
        meta,
        kernel="se",
        lengthscale=torch.tensor([[0.05, 5.0]] * M, dtype=torch.float64),
        outputscale=torch.ones(M, dtype=torch.float64),
        noise=torch.full((M,), NOISE, dtype=torch.float64),
    )
    groups = groups_of(meta, gps)
    assert [len(g.tasks) for g in groups] == [4, *[3] * 7]
    assert groups[0].tasks == (30, 31, 32, 33)
    assert groups[1].tasks == (0, 1, 2)
