"""Builds the tables that come with scaml: the held-out errors of a model on real data sets.

Every finished data set is stored in a folder beside the table, so a build that was stopped continues.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scaml.bench.grids import GRIDS, kept_rows
from scaml.common.files import replacing
from scaml.common.parallel import each
from scaml.common.wording import nearest
from scaml.errors import SettingError
from study.tables import data_sets
from study.tables.training import FOLDS, METHODOLOGY, MOST_ROWS, errors

__all__ = ["build", "names_of"]

Progress = Callable[[str, int, int], None]

# Data sets with many classes or columns would take minutes per fold.
_LEFT_OUT = {
    "svm": (),
    "lr": ("digits", "image_segments"),
    "rf": ("digits", "yeast"),
    "xgb": (
        "baseball",
        "breast_cancer",
        "digits",
        "fast_food",
        "fertility",
        "grades",
        "image_segments",
        "iris",
        "loans",
        "penguins",
        "phishing",
        "solar_flare",
        "wine",
        "yeast",
    ),
}


def names_of(model: str) -> tuple[str, ...]:
    """The names of the data sets in a model's table, sorted."""
    if model not in GRIDS:
        raise SettingError(
            f"There is no table {model!r} to build; did you mean {nearest(model, GRIDS)!r}?"
        )
    return tuple(name for name in data_sets.names() if name not in _LEFT_OUT[model])


def build(model: str, folder: Path, *, n_jobs: int = 1, progress: Progress | None = None) -> Path:
    """Train a model on its grid and all its data sets, and write `<folder>/<model>.npz`.

    Args:
        model: "svm", "lr", "rf" or "xgb".
        folder: The folder of the table.
        n_jobs: Processes to use, -1 for one per core. The table does not depend on it.
        progress: Called after every data set with its name, the number of finished data sets, and the
            number of all.
    """
    names = names_of(model)
    parts = folder / f"{model}.parts"
    parts.mkdir(parents=True, exist_ok=True)
    size = len(kept_rows(GRIDS[model]))
    missing = [name for name in names if not _whole(parts / f"{name}.npy", size)]
    done = len(names) - len(missing)
    for name in each(partial(_train, model, parts), missing, n_jobs):
        done += 1
        if progress is not None:
            progress(name, done, len(names))
    table = folder / f"{model}.npz"
    # To an open file: NumPy would add an ending to a name.
    with replacing(table) as draft, draft.open("wb") as file:
        np.savez_compressed(
            file,
            rows=kept_rows(GRIDS[model]),
            tasks=np.array(names),
            losses=np.stack([np.load(parts / f"{name}.npy") for name in names]),
            about=np.array(json.dumps(_about(model, names))),
        )
    shutil.rmtree(parts)
    return table


def _whole(part: Path, size: int) -> bool:
    """Whether a data set is finished, with as many rows as the grid has now."""
    try:
        return bool(np.load(part).shape == (size,))
    except (OSError, EOFError, ValueError):
        return False


def _train(model: str, parts: Path, name: str) -> str:
    data = data_sets.load(name)
    _write(parts / f"{name}.npy", errors(model, data.X, data.y))
    return name


def _write(path: Path, values: NDArray[np.float64]) -> None:
    with replacing(path) as draft, draft.open("wb") as file:
        np.save(file, values)


def _about(model: str, names: tuple[str, ...]) -> dict[str, object]:
    packages = ["numpy", "scikit-learn", *(["xgboost"] if model == "xgb" else [])]
    return {
        "model": METHODOLOGY[model],
        "measure": f"held-out error, {FOLDS[model]} stratified folds",
        "most rows of a data set": MOST_ROWS,
        "data sets": {name: data_sets.load(name).source for name in names},
        "versions": {package: _version(package) for package in packages},
    }


def _version(package: str) -> str:
    return str(__import__(package.replace("scikit-learn", "sklearn")).__version__)
