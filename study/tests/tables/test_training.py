"""Rows that share work against models that were trained alone."""

from __future__ import annotations

import itertools
import re
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from scaml.bench.grids import GRIDS, Grid
from scaml.errors import SettingError
from study.tables import training
from study.tables.training import errors, forest_votes
from study.tests.tables.plain_models import FOLDS, held_out_error

SMALL: dict[str, Grid] = {
    "svm": {"C": (0.01, 1.0, 64.0), "gamma": (0.03, 0.5, 4.0)},
    "lr": {"alpha": (1e-5, 0.01, 1.0), "eta0": (1e-4, 0.1)},
    "rf": {  # nothing that would stop a tree before the others
        "max_depth": (50.0,),
        "max_features": (0.0, 0.5, 1.0),
        "min_samples_leaf": (4.0, 7.0),
        "min_samples_split": (8.0,),
    },
    "xgb": {
        "colsample_bytree": (0.5,),
        "eta": (0.01, 0.5),
        "max_depth": (1.0, 50.0),
        "reg_lambda": (0.1,),
    },
}


def data(n: int, p: int, classes: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Classes that the first features tell, not without error; the features differ in scale."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, p))
    told = X[:, 0] + X[:, -1] ** 2 + generator.normal(scale=0.5, size=n)
    y = np.searchsorted(np.quantile(told, np.linspace(0, 1, classes + 1)[1:-1]), told)
    return X * 10.0 ** np.arange(p) + 5, y.astype(np.int64)


def rows_of(grid: Grid) -> list[dict[str, float]]:
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(training, "_TREES", 5)
    return 5


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", list(SMALL))
def test_errors_are_those_of_plain_models(
    model: str, classes: int, monkeypatch: pytest.MonkeyPatch, few_trees: int
) -> None:
    monkeypatch.setitem(GRIDS, model, SMALL[model])
    # Boosting counts in bins, of which there must be fewer than rows.
    X, y = data(160 if model == "xgb" else 70, 4, classes)
    found = errors(model, X, y)
    expected = [held_out_error(model, X, y, row, few_trees) for row in rows_of(SMALL[model])]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    # Rows that are all the same would say nothing about their order.
    assert len(set(expected)) > 2


def test_stopped_forests_come_to_their_rows(monkeypatch: pytest.MonkeyPatch, few_trees: int) -> None:
    """With one feature nothing about a tree is random but its sample: stopped trees coincide."""
    grid: Grid = {
        "max_depth": (1.0, 3.0, 50.0),
        "max_features": (1.0,),
        "min_samples_leaf": (1.0, 3.0),
        "min_samples_split": (2.0, 9.0, 30.0),
    }
    monkeypatch.setitem(GRIDS, "rf", grid)
    X, y = data(90, 1, 3)
    found = errors("rf", X, y)
    expected = [held_out_error("rf", X, y, row, few_trees) for row in rows_of(grid)]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    assert len(set(expected)) > 4


def tree(seed: int, **settings: Any) -> RandomForestClassifier:
    """A forest of one tree on all rows and features, whose weights leave no two splits equally good."""
    X, y = data(300, 4, 3, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, len(y))
    chosen = {"max_features": None, "bootstrap": False, "min_samples_leaf": 5, "random_state": seed}
    return RandomForestClassifier(1, **chosen, **settings).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("seed", range(3))
def test_stopped_trees_are_trees_trained_to_stop(seed: int) -> None:
    depths, splits = np.array([1, 2, 3, 5, 8, 13]), np.array([2, 12, 20, 50, 128])
    B = data(100, 4, 3, seed + 100)[0]
    votes = forest_votes(tree(seed), B, depths, splits)
    assert votes.shape == (5, 6, 100, 3)
    for (i, split), (j, depth) in itertools.product(enumerate(splits), enumerate(depths)):
        alone = tree(seed, max_depth=int(depth), min_samples_split=int(split))
        assert votes[i, j] == pytest.approx(alone.predict_proba(B), abs=1e-13)
    assert len(np.unique(votes.reshape(30, -1).round(9), axis=0)) > 10


@pytest.mark.parametrize("leaf", [1, 4])
def test_what_nothing_stops_is_the_forest_itself(leaf: int) -> None:
    X, y = data(200, 6, 3)
    B = data(60, 6, 3, 1)[0]
    whole = RandomForestClassifier(7, min_samples_leaf=leaf, random_state=0).fit(X, y)
    # Points beside the thresholds, which trees round before they compare.
    splits_of = whole.estimators_[0].tree_
    close = np.repeat(B[:1], splits_of.node_count, axis=0)
    inner = np.flatnonzero(splits_of.feature >= 0)
    close[inner, splits_of.feature[inner]] = np.nextafter(splits_of.threshold[inner], np.inf)
    B = np.concatenate([B, close])
    deepest = max(tree.get_depth() for tree in whole.estimators_)
    depths, splits = np.array([1, deepest, deepest + 20]), np.array([2, 40])
    votes = forest_votes(whole, B, depths, splits)
    assert np.array_equal(votes[0, 1] / 7, whole.predict_proba(B))
    assert np.array_equal(votes[0, 2], votes[0, 1])
    assert not np.array_equal(votes[0, 0], votes[0, 1])
    assert not np.array_equal(votes[1, 1], votes[0, 1])


def test_of_many_rows_a_thousand_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    grid: Grid = {"colsample_bytree": (1.0,), "eta": (0.3,), "max_depth": (2.0,), "reg_lambda": (1.0,)}
    monkeypatch.setitem(GRIDS, "xgb", grid)
    monkeypatch.setattr(training, "_ROUNDS", 5)
    drawn = np.sort(np.random.default_rng(0).choice(1100, 1000, replace=False))
    X, y = data(1100, 3, 2)
    # A class that only rows have that are not drawn is no class any more.
    labels = np.where(y == 1, 2, 0)
    labels[np.setdiff1d(np.arange(1100), drawn)[:10]] = 1
    expected = errors("xgb", X[drawn], y[drawn])
    assert 0.05 < expected.item() < 0.4
    assert np.array_equal(errors("xgb", X, labels), expected)


def test_a_class_smaller_than_the_number_of_folds_is_no_obstacle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(GRIDS, "svm", SMALL["svm"])
    X, y = data(40, 2, 2)
    y[:2] = 2
    found = errors("svm", X, y)
    assert found.shape == (9,)
    assert ((found > 0) & (found < 1)).all()


def test_what_is_trained_is_said_for_every_table() -> None:
    assert list(training.METHODOLOGY) == list(training.FOLDS) == list(GRIDS)
    assert training.FOLDS == FOLDS


def test_without_xgboost_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(
        SettingError, match=re.escape("xgboost, which is not installed; run pip install")
    ):
        errors("xgb", *data(30, 2, 2))
