"""Held-out errors of real models on the paper's grids: the values of the tables svm, lr, rf and xgb.

Every row of a grid is trained on all folds but one and tested on that one. The value is the share of
wrong classes over all folds. Similar models share work: one kernel matrix serves all C of a gamma. One
forest serves all depths and smallest splits, because these only end the same trees earlier.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from scaml.bench.grids import GRIDS, kept_rows, ranks
from scaml.errors import SettingError

__all__ = ["FOLDS", "METHODOLOGY", "MOST_ROWS", "errors"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

MOST_ROWS = 1000  # of a larger data set, so many rows are drawn at random
FOLDS = {"svm": 5, "lr": 5, "rf": 3, "xgb": 3}
_TREES, _ROUNDS, _BINS, _EPOCHS = 64, 100, 64, 200
METHODOLOGY = {
    "svm": "scikit-learn SVC, RBF kernel",
    "lr": f"scikit-learn SGDClassifier, log loss, adaptive rate without tolerance, {_EPOCHS} epochs",
    "rf": f"scikit-learn RandomForestClassifier, {_TREES} trees, p^max_features features a split",
    "xgb": f"xgboost, {_ROUNDS} rounds, histograms of {_BINS} bins",
}
"""The model of each table, in words."""


def errors(model: str, X: Array, y: Labels) -> Array:
    """The held-out error of every row of the model's table, n, in the order of `kept_rows`.

    Args:
        model: "svm", "lr", "rf" or "xgb".
        X: `n x p` features, not scaled.
        y: n classes 0, 1, ...
    """
    if len(X) > MOST_ROWS:
        drawn = np.random.default_rng(0).choice(len(X), MOST_ROWS, replace=False)
        X, y = X[np.sort(drawn)], np.unique(y[np.sort(drawn)], return_inverse=True)[1]
    grid = GRIDS[model]
    rank = ranks(grid, kept_rows(grid))
    columns = {name: np.array(grid[name])[rank[:, i]] for i, name in enumerate(grid)}
    wrong = np.zeros(len(rank))
    folds = StratifiedKFold(FOLDS[model], shuffle=True, random_state=0)
    with warnings.catch_warnings():
        # Classes with fewer rows than folds, and fits that do not converge, are part of the tables.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fold, (train, test) in enumerate(folds.split(X, y)):
            scaler = StandardScaler().fit(X[train])
            seen, held_out = scaler.transform(X[train]), scaler.transform(X[test])
            wrong += _WRONG[model](seen, y[train], held_out, y[test], columns, fold)
    return wrong / len(X)


def _svm(A: Array, y: Labels, B: Array, z: Labels, columns: dict[str, Array], seed: int) -> Array:
    del seed  # nothing random
    train, test = euclidean_distances(A, squared=True), euclidean_distances(B, A, squared=True)
    wrong = np.empty(len(columns["C"]))
    for gamma in np.unique(columns["gamma"]):
        K, k = np.exp(-gamma * train), np.exp(-gamma * test)
        for i in np.flatnonzero(columns["gamma"] == gamma):
            svc = SVC(C=columns["C"][i], kernel="precomputed").fit(K, y)
            wrong[i] = np.sum(svc.predict(k) != z)
    return wrong


def _lr(A: Array, y: Labels, B: Array, z: Labels, columns: dict[str, Array], seed: int) -> Array:
    wrong = np.empty(len(columns["alpha"]))
    for i, (alpha, eta0) in enumerate(zip(columns["alpha"], columns["eta0"], strict=True)):
        model = SGDClassifier(
            loss="log_loss",
            alpha=alpha,
            eta0=eta0,
            learning_rate="adaptive",
            max_iter=_EPOCHS,
            tol=None,
            random_state=seed,
        )
        wrong[i] = np.sum(model.fit(A, y).predict(B) != z)
    return wrong


def _rf(A: Array, y: Labels, B: Array, z: Labels, columns: dict[str, Array], seed: int) -> Array:
    # As in HPOBench, the parameter is the exponent of the number of features.
    features = np.rint(A.shape[1] ** columns["max_features"]).astype(int)
    depths, splits = np.unique(columns["max_depth"]), np.unique(columns["min_samples_split"])
    depth = np.searchsorted(depths, columns["max_depth"])
    split = np.searchsorted(splits, columns["min_samples_split"])
    wrong = np.empty(len(features))
    groups = np.stack([features, columns["min_samples_leaf"].astype(int)], axis=1)
    for count, leaf in np.unique(groups, axis=0):
        forest = RandomForestClassifier(
            _TREES, max_features=int(count), min_samples_leaf=int(leaf), random_state=seed
        ).fit(A, y)
        votes = forest_votes(forest, B, depths.astype(int), splits.astype(int))
        chosen = forest.classes_[votes.argmax(-1)]
        rows = np.flatnonzero((groups == (count, leaf)).all(1))
        wrong[rows] = np.sum(chosen[split[rows], depth[rows]] != z, axis=-1)
    return wrong


def forest_votes(
    forest: RandomForestClassifier, B: Array, depths: NDArray[np.int64], splits: NDArray[np.int64]
) -> Array:
    """Predictions, `splits x depths x rows x classes`, of forests whose trees stop earlier.

    A tree with a larger smallest split or a smaller depth is the upper part of the given tree, so the
    walk from the root ends earlier.
    """
    votes = np.zeros((len(splits), len(depths), len(B), len(forest.classes_)))
    rows = np.arange(len(B))
    points = B.astype(np.float32)  # scikit-learn's trees compare in single precision
    for estimator in forest.estimators_:
        tree = estimator.tree_
        node = np.zeros((len(splits), len(B)), dtype=np.int64)
        for level in range(int(depths[-1]) + 1):
            if level in depths:
                votes[:, np.searchsorted(depths, level)] += tree.value[node, 0]
            ends = (tree.children_left[node] < 0) | (tree.n_node_samples[node] < splits[:, None])
            if ends.all():
                later = depths > level
                votes[:, later] += tree.value[node, 0][:, None]
                break
            left = points[rows, np.maximum(tree.feature[node], 0)] <= tree.threshold[node]
            below = np.where(left, tree.children_left[node], tree.children_right[node])
            node = np.where(ends, node, below)
    return votes


def _xgb(A: Array, y: Labels, B: Array, z: Labels, columns: dict[str, Array], seed: int) -> Array:
    try:
        xgboost: Any = import_module("xgboost")
    except ModuleNotFoundError as error:
        raise SettingError(
            "The table 'xgb' is made with xgboost, which is not installed; run pip install --group "
            "study."
        ) from error
    classes = int(y.max()) + 1
    kind = {"objective": "multi:softmax", "num_class": classes}
    common = kind if classes > 2 else {"objective": "binary:logistic"}
    train = xgboost.QuantileDMatrix(A, label=y, nthread=1, max_bin=_BINS)
    test = xgboost.QuantileDMatrix(B, ref=train, nthread=1, max_bin=_BINS)
    wrong = np.empty(len(columns["eta"]))
    for i in range(len(wrong)):
        chosen = {name: values[i].item() for name, values in columns.items()}
        chosen |= {"max_depth": int(chosen["max_depth"]), "max_bin": _BINS, "nthread": 1, "seed": seed}
        predicted = xgboost.train(common | chosen, train, _ROUNDS).predict(test)
        wrong[i] = np.sum((predicted if classes > 2 else predicted > 0.5) != z)
    return wrong


_WRONG: dict[str, Callable[[Array, Labels, Array, Labels, dict[str, Array], int], Array]] = {
    "svm": _svm,
    "lr": _lr,
    "rf": _rf,
    "xgb": _xgb,
}
