from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.units import Units
from scaml.model.normalization import (
    Levels,
    NormalizationName,
    Scaling,
    check_normalization,
    clip_tail,
    normalize,
)

NAMES: tuple[NormalizationName, ...] = ("pooled", "union")
each_name = pytest.mark.parametrize("name", NAMES)
Values = Sequence[float]

TASKS: list[list[float]] = [[1.0, 4.0, 2.5], [10.0, 12.0], [-3.0, 5.0, 0.5, 0.25, 7.0]]
NEW: list[float] = [20.0, 26.0, 21.0, 24.5]


def tensor(values: Values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def units(name: NormalizationName, y: Values, tasks: Sequence[Values]) -> Units:
    return Units(*scaling(name, y, tasks)[:2])


def scaling(name: NormalizationName, y: Values, tasks: Sequence[Values]) -> Scaling:
    return normalize(name, tensor(y), Levels.of([tensor(values) for values in tasks]))


def pooled(y: Values, tasks: Sequence[Values]) -> tuple[float, float]:
    """The formula of the design: for tasks that vary, and more than one of them."""
    means = np.array([np.mean(values) for values in tasks])
    W = np.mean([np.var(values, ddof=1) for values in tasks])
    B = np.var(means, ddof=1)
    offset = means.mean()
    if len(y):
        trust = B / (B + W / len(y))
        offset = trust * np.mean(y) + (1 - trust) * means.mean()
    return float(offset), float(np.sqrt(W))


def assert_units(found: Units, offset: Any, scale: Any, rel: float = 1e-12) -> None:
    assert found.offset.dtype == found.scale.dtype == torch.float64
    assert found.offset.shape == found.scale.shape == ()
    assert found.offset.item() == pytest.approx(offset, rel=rel, abs=1e-300)
    assert found.scale.item() == pytest.approx(scale, rel=rel, abs=0.0)


# Levels.


def test_levels_are_size_mean_and_deviation_of_every_task() -> None:
    levels = Levels.of([tensor(values) for values in [*TASKS, [0.1] * 3]])
    means = np.array([np.mean(values) for values in [*TASKS, [0.1]]])
    deviations = np.append([np.std(values, ddof=1) for values in TASKS], 0.0)
    np.testing.assert_array_equal(levels.size.numpy(), [3, 2, 5, 3])
    np.testing.assert_allclose(levels.mean.numpy(), means, rtol=1e-14)
    np.testing.assert_allclose(levels.deviation.numpy(), deviations, rtol=1e-14, atol=0.0)


# The test-task.


@pytest.mark.parametrize("n", range(len(NEW) + 1))
def test_union_is_mean_and_deviation_of_everything(n: int) -> None:
    everything = np.concatenate([*TASKS, NEW[:n]])
    assert_units(units("union", NEW[:n], TASKS), everything.mean(), everything.std(ddof=1))


@pytest.mark.parametrize("n", range(len(NEW) + 1))
def test_pooled_is_the_formula_of_the_design(n: int) -> None:
    assert_units(units("pooled", NEW[:n], TASKS), *pooled(NEW[:n], TASKS))


def test_pooled_trusts_many_values_of_the_test_task() -> None:
    many = NEW * 10_000
    assert units("pooled", many, TASKS).offset.item() == pytest.approx(np.mean(NEW), rel=1e-4)
    assert units("pooled", NEW[:1], TASKS).offset.item() < np.mean(NEW[:1]) - 1.0


@each_name
def test_one_task_without_test_data_gives_its_own_units(name: NormalizationName) -> None:
    values = TASKS[0]
    assert_units(units(name, [], [values]), np.mean(values), np.std(values, ddof=1))


def test_one_task_counts_its_own_variance_as_the_variance_between_tasks() -> None:
    values = TASKS[0]
    n = len(NEW)
    expected = np.mean(values) + n / (n + 1) * (np.mean(NEW) - np.mean(values))
    assert_units(units("pooled", NEW, [values]), expected, np.std(values, ddof=1))


@pytest.mark.parametrize("y", [[], NEW])
def test_a_constant_task_counts_with_variance_zero(y: list[float]) -> None:
    tasks = [*TASKS, [6.0] * 4]
    everything = np.concatenate([*tasks, y])
    assert_units(units("pooled", y, tasks), *pooled(y, tasks))
    assert_units(units("union", y, tasks), everything.mean(), everything.std(ddof=1))


def test_constant_tasks_of_different_levels_give_the_deviation_of_the_levels() -> None:
    tasks, y = [[1.0] * 3, [4.0] * 2, [2.5] * 5], [7.0, 8.0]
    # Without variance within tasks the test-task's own mean is beyond doubt.
    assert_units(units("pooled", y, tasks), 7.5, np.std([1.0, 4.0, 2.5], ddof=1))
    everything = np.concatenate([*tasks, y])
    assert_units(units("union", y, tasks), everything.mean(), everything.std(ddof=1))


@each_name
@pytest.mark.parametrize("value", [0.1, -0.3, 1 / 3, 7.7, 1e-3, 5.0])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_where_everything_is_constant_its_magnitude_is_the_scale(
    name: NormalizationName, value: float, n: int
) -> None:
    """A scale of rounding errors would make numbers of 1e17 out of equal values."""
    tasks = [[value] * size for size in (3, 5, 7, 11)]
    assert_units(units(name, [value] * n, tasks), value, abs(value))


@each_name
@pytest.mark.parametrize("n", [0, 1, 3])
def test_where_everything_is_zero_the_scale_is_one(name: NormalizationName, n: int) -> None:
    assert_units(units(name, [0.0] * n, [[0.0] * 3, [0.0] * 2]), 0.0, 1.0)


def test_past_constants_leave_the_scale_to_the_test_task() -> None:
    found = units("pooled", NEW, [[5.0] * 3, [5.0] * 4])
    assert found.scale.item() == pytest.approx(np.std(NEW, ddof=1), rel=1e-12)
    assert found.offset.isfinite()


@each_name
def test_the_order_of_tasks_and_values_does_not_matter(name: NormalizationName) -> None:
    forward = units(name, NEW, TASKS)
    backward = units(name, NEW[::-1], [values[::-1] for values in TASKS[::-1]])
    assert_units(backward, forward.offset.item(), forward.scale.item())


tenths = st.integers(-1000, 1000).map(lambda value: value / 10)


@each_name
@settings(deadline=None, max_examples=80)
@given(
    tasks=st.lists(st.lists(tenths, min_size=2, max_size=5), min_size=1, max_size=4),
    y=st.lists(tenths, max_size=4),
    a=st.floats(1e-3, 1e3),
    b=st.floats(-1e3, 1e3),
)
def test_an_affine_change_of_all_y_carries_the_units_along(
    name: NormalizationName, tasks: list[list[float]], y: list[float], a: float, b: float
) -> None:
    assume(any(np.ptp(values) > 0 for values in tasks))
    before = units(name, y, tasks)
    after = units(name, [a * v + b for v in y], [[a * v + b for v in values] for values in tasks])
    magnitude = abs(b) + 100.0 * a  # rounding is relative to the largest y there can be
    assert after.scale.item() == pytest.approx(a * before.scale.item(), rel=1e-9, abs=1e-11 * magnitude)
    expected = a * before.offset.item() + b
    assert after.offset.item() == pytest.approx(expected, rel=1e-9, abs=1e-9 * magnitude)


def test_normalizations_are_chosen_by_name() -> None:
    for name in NAMES:
        check_normalization(name)
    with pytest.raises(
        SettingError,
        match=r"^normalization is 'zscore'; choose one of 'clipped', .*'union'\.$",
    ):
        check_normalization("zscore")


# A level and a scale to be learned.


@each_name
def test_what_is_fixed_has_neither_level_nor_spread(name: NormalizationName) -> None:
    found = scaling(name, NEW, TASKS)
    assert found.level == 0.0
    assert found.spread == 0.0


def test_the_level_is_a_random_effect_of_the_variance_between_tasks() -> None:
    found = scaling("level", NEW, TASKS)
    means = np.array([np.mean(values) for values in TASKS])
    W = np.mean([np.var(values, ddof=1) for values in TASKS])
    assert_units(Units(*found[:2]), means.mean(), np.sqrt(W))
    # Of one more task: its own variance, that of the mean of three, and what three know of either.
    B = np.var(means, ddof=1) * (1 + 1 / 3) * 4 / 2
    assert found.level.item() == pytest.approx(B / W, rel=1e-12)
    assert found.spread == 0.0


def test_the_scale_is_learned_around_that_of_the_tasks() -> None:
    found = scaling("learned", NEW, TASKS)
    deviations = np.log([np.std(values, ddof=1) for values in TASKS])
    assert found.scale.item() == pytest.approx(np.exp(deviations.mean()), rel=1e-12)
    more = (1 + 1 / 3) * 4 / 2
    spread = np.sqrt(more * np.var(deviations, ddof=1) + 0.3**2)
    assert found.spread == pytest.approx(spread, rel=1e-12)
    B = more * np.var([np.mean(values) for values in TASKS], ddof=1)
    assert found.level.item() == pytest.approx(B / found.scale.item() ** 2, rel=1e-12)


def test_a_level_that_nobody_knows_is_that_of_the_data() -> None:
    """Otherwise a variance of a million squared scales would eat the digits of the kernel matrix."""
    far = [[1e6 + value for value in TASKS[0]], [-2e6 + value for value in TASKS[1]], TASKS[2]]
    found = scaling("learned", NEW, far)
    assert found.level.item() == pytest.approx(100.0)
    assert found.offset.item() == pytest.approx(np.mean(NEW), abs=1.0)
    assert scaling("learned", [], far).offset.item() == pytest.approx(
        np.mean([np.mean(values) for values in far])
    )


@pytest.mark.parametrize("name", ["level", "learned"])
def test_one_task_says_little_of_level_and_scale(name: NormalizationName) -> None:
    found = scaling(name, NEW, TASKS[:1])
    assert found.level.item() == pytest.approx(1.0)
    assert found.spread == (1.0 if name == "learned" else 0.0)


@pytest.mark.parametrize("name", ["level", "learned"])
@pytest.mark.parametrize("y", [[], [3.0], [3.0, 4.0]])
def test_constant_tasks_have_some_scale(name: NormalizationName, y: list[float]) -> None:
    found = scaling(name, y, [[2.0, 2.0], [2.0, 2.0, 2.0]])
    assert found.scale > 0
    assert found.level.isfinite()
    assert found.offset.isfinite()


@pytest.mark.parametrize("name", ["level", "learned"])
@given(factor=st.floats(1e-6, 1e6), shift=st.floats(-1e3, 1e3))
@settings(max_examples=25, deadline=None)
def test_a_change_of_units_changes_units_alone(
    name: NormalizationName, factor: float, shift: float
) -> None:
    def moved(values: Values) -> Values:
        return [factor * (value + shift) for value in values]

    one, other = scaling(name, NEW, TASKS), scaling(name, moved(NEW), [moved(v) for v in TASKS])
    assert other.scale.item() == pytest.approx(factor * one.scale.item(), rel=1e-6)
    offset = factor * (one.offset.item() + shift)
    assert other.offset.item() == pytest.approx(offset, rel=1e-6, abs=1e-5 * factor)
    assert other.level.item() == pytest.approx(one.level.item(), rel=1e-5)
    assert other.spread == pytest.approx(one.spread, rel=1e-5)


# Bad values clipped.


def normal_scores(n: int) -> Tensor:
    scores: Tensor = torch.special.ndtri((torch.arange(n, dtype=torch.float64) + 0.5) / n)
    return scores


def test_clipping_leaves_a_normal_sample_as_it_is_but_for_its_ends() -> None:
    y = normal_scores(400)
    z = clip_tail(5.0 * y - 2.0).z
    inner = y.abs() < 2.0
    torch.testing.assert_close(z[inner], y[inner], rtol=0.0, atol=0.15)


def test_clipping_keeps_the_distances_of_the_best_third() -> None:
    y = tensor([0.0, -1e9, 3.0, 1.0, -4.0, 7.0, 2.0, -20.0, 9.0, 30.0, 2.5, 1.5])
    z = clip_tail(y).z
    best = y > torch.quantile(y, 2 / 3)
    ratio = (z[best] - z[best].min()) / (y[best] - y[best].min())
    assert ratio[ratio.isfinite()].std() < 1e-12


def test_clipping_keeps_the_order_and_pulls_the_tail_in() -> None:
    y = torch.cat([normal_scores(60), tensor([-1e3, -1e6, -1e12])])
    z = clip_tail(y).z
    assert (z[y.argsort()].diff() >= 0).all()
    assert z.min() > -3.5
    torch.testing.assert_close(clip_tail(1e-3 * y + 7.0).z, z, rtol=1e-6, atol=1e-6)


def test_clipping_does_not_stretch_a_plateau() -> None:
    """Ranks would make its noise as large as the peaks."""
    y = torch.cat([1e-3 * normal_scores(80), torch.linspace(0.5, 3.0, 20).double()])
    z = clip_tail(y).z
    assert z[:80].max() - z[:80].min() < 0.02


def test_clipping_does_not_rank_rounding_errors() -> None:
    z = clip_tail(tensor([0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2, 0.3])).z
    assert z.max() - z.min() < 1e-12


@pytest.mark.parametrize("values", [[2.0, 2.0], [0.0, 0.0, 0.0], [1.0, 2.0], [1.0, 2.0, 2.0, 2.0]])
def test_clipping_few_or_equal_values(values: list[float]) -> None:
    z = clip_tail(tensor(values)).z
    assert z.isfinite().all()
    assert (z[tensor(values).argsort()].diff() >= 0).all()


def test_levels_of_the_best_are_the_line_through_the_best_third() -> None:
    y = 3.0 * normal_scores(400) + 10.0
    wild = y.clone()
    wild[:50] -= 1e9
    for values in (y, wild):
        levels = Levels.of([clip_tail(values).values])
        assert levels.mean.item() == pytest.approx(10.0, abs=0.3)
        assert levels.deviation.item() == pytest.approx(3.0, abs=0.3)
