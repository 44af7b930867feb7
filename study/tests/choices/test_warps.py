from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from scipy.stats import norm, rankdata
from sklearn.preprocessing import PowerTransformer

from scaml import MetaData, SettingError, Task
from scaml.gp.gaussian_copula import truncation
from study.choices.warps import Warped, WarpName, power
from tests.cases import meta_data, query, task_of
from tests.oracles import Array

WARPS: tuple[WarpName, ...] = get_args(WarpName)
each_warp = pytest.mark.parametrize("warp", WARPS)


def losses(n: int, seed: int = 0) -> Array:
    """Skewed values in some unit."""
    return 30.0 - 5.0 * np.exp(1.5 * np.random.default_rng(seed).standard_normal(n))


def transformed(warp: WarpName, y: Array) -> Array:
    """The transformation by other means."""
    if warp == "copula":
        delta = truncation(len(y))
        return np.asarray(norm.ppf(np.clip(rankdata(y) / len(y), delta, 1.0 - delta)))
    z = (y - y.mean()) / y.std(ddof=1)
    return np.asarray(PowerTransformer(standardize=False).fit_transform(z[:, None])[:, 0])


def test_power_is_the_transformation_that_scikit_learn_finds() -> None:
    y = losses(40)
    found = power(torch.from_numpy(y)).numpy()
    np.testing.assert_allclose(found, transformed("power", y), rtol=1e-5, atol=1e-5)
    assert abs(((found - found.mean()) ** 3).mean()) < 0.2 * abs(((y - y.mean()) / y.std()) ** 3).mean()


def test_power_does_not_depend_on_the_unit_and_keeps_the_order() -> None:
    y = torch.from_numpy(losses(25))
    torch.testing.assert_close(power(1e6 * y - 4.0), power(y), rtol=1e-6, atol=1e-6)
    assert torch.equal(power(y).argsort(), y.argsort())


@pytest.mark.parametrize("y", [[3.0, 3.0, 3.0], [0.1 + 0.2, 0.3], [0.0, 0.0]])
def test_what_differs_by_rounding_is_constant(y: list[float]) -> None:
    assert power(torch.tensor(y, dtype=torch.float64)).tolist() == [0.0] * len(y)


@each_warp
def test_every_gp_sees_its_own_task_transformed(warp: WarpName) -> None:
    X = [query(n, 2) for n in (12, 9)]
    meta = MetaData([Task(x, losses(len(x), seed)) for seed, x in enumerate(X)])
    gps = Warped(warp=warp).meta_fit(meta, seed=0).task_gps
    for m, task in enumerate(meta):
        z = transformed(warp, task.y.numpy())
        np.testing.assert_allclose(gps.y_mean[m], z.mean(), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(gps.y_std[m], z.std(ddof=1), rtol=1e-4)


@each_warp
def test_levels_are_those_of_the_line_through_all_points(warp: WarpName) -> None:
    meta = MetaData([Task(query(n, 2), losses(n, n)) for n in (12, 9)])
    levels = Warped(warp=warp).meta_fit(meta, seed=0).levels
    for m, task in enumerate(meta):
        y, z = task.y.numpy(), transformed(warp, task.y.numpy())
        slope, offset = np.polyfit(z, y, 1)
        np.testing.assert_allclose(levels.mean[m], (offset + slope * z).mean(), rtol=1e-6)
        np.testing.assert_allclose(levels.deviation[m], (slope * z).std(ddof=1), rtol=1e-5)
    assert levels.size.tolist() == [12.0, 9.0]


@each_warp
def test_a_task_of_one_value_has_no_slope(warp: WarpName) -> None:
    meta = MetaData([Task(query(5, 2), [2.0] * 5), Task(query(9, 2), losses(9))])
    prior = Warped(warp=warp).meta_fit(meta, seed=0)
    assert prior.levels.mean[0] == 2.0
    assert prior.levels.deviation[0] == 0.0
    assert prior.condition(task_of(3, 2), seed=0).posterior(query(4, 2)).mean.isfinite().all()


@each_warp
def test_the_test_task_is_linear_in_any_unit(warp: WarpName) -> None:
    meta, task = meta_data((9, 8), 2), task_of(5, 2)
    scaled = meta.with_values([100.0 * t.y + 7.0 for t in meta])
    method = Warped(warp=warp)
    plain = method.meta_fit(meta, seed=0).condition(task, seed=0)
    other = method.meta_fit(scaled, seed=0).condition(task.with_values(100.0 * task.y + 7.0), seed=0)
    X = query(6, 2)
    expected = 100.0 * plain.posterior(X).mean + 7.0
    torch.testing.assert_close(other.posterior(X).mean, expected, rtol=1e-4, atol=1e-2)


def test_a_task_added_later_is_transformed_too() -> None:
    meta = meta_data((8, 7, 6), 2)
    whole = Warped().meta_fit(meta, seed=0)
    grown = Warped().meta_fit(MetaData(meta.tasks[:2]), seed=0).add(meta[2], seed=0)
    assert torch.equal(grown.task_gps.targets, whole.task_gps.targets)
    assert torch.equal(grown.levels.deviation, whole.levels.deviation)


def test_other_settings_are_refused() -> None:
    with pytest.raises(SettingError, match=r"^warp is 'log'; choose 'power' or 'copula'\.$"):
        Warped(warp="log")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"^normalization is 'pooled', which does .*'learned'\.$"):
        Warped(normalization="pooled")
    with pytest.raises(SettingError, match=r"^The kernel is 'cosine'"):
        Warped(kernel="cosine")  # type: ignore[arg-type]
