"""Held-out errors of one configuration by plainly trained models, nothing shared between rows."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

FOLDS = {"svm": 5, "lr": 5, "rf": 3, "xgb": 3}


def held_out_error(
    model: str, X: NDArray[Any], y: NDArray[Any], row: Mapping[str, float], trees: int = 64
) -> float:
    """Of a row of the model's grid, over all folds."""
    folds = StratifiedKFold(FOLDS[model], shuffle=True, random_state=0).split(X, y)
    predicted = np.empty_like(y)
    for fold, (train, test) in enumerate(folds):
        classifier = make_pipeline(StandardScaler(), _classifier(model, row, X.shape[1], fold, trees))
        predicted[test] = classifier.fit(X[train], y[train]).predict(X[test])
    return float(np.mean(predicted != y))


def _classifier(model: str, row: Mapping[str, float], p: int, seed: int, trees: int) -> Any:
    if model == "svm":
        return SVC(C=row["C"], gamma=row["gamma"])
    if model == "lr":
        epochs = {"max_iter": 200, "tol": None, "learning_rate": "adaptive"}
        return SGDClassifier("log_loss", random_state=seed, **epochs, **row)
    if model == "rf":
        return RandomForestClassifier(
            trees,
            max_depth=int(row["max_depth"]),
            max_features=round(p ** row["max_features"]),
            min_samples_leaf=int(row["min_samples_leaf"]),
            min_samples_split=int(row["min_samples_split"]),
            random_state=seed,
        )
    return import_module("xgboost").XGBClassifier(
        n_estimators=100,
        tree_method="hist",
        max_bin=64,
        n_jobs=1,
        random_state=seed,
        learning_rate=row["eta"],
        colsample_bytree=row["colsample_bytree"],
        max_depth=int(row["max_depth"]),
        reg_lambda=row["reg_lambda"],
    )
