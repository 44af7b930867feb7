"""The tables inside scaml against the data sets and plainly trained models that they were made with."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest
from numpy.typing import NDArray

from scaml.bench import tables
from scaml.bench.grids import GRIDS, ranks
from study.tables import building, data_sets
from study.tests.tables.plain_models import held_out_error

every_model = pytest.mark.parametrize("model", ["svm", "lr", "rf", "xgb"])


@every_model
def test_the_tasks_are_the_data_sets(model: str) -> None:
    assert tables.ours(model).tasks == building.names_of(model)
    path = str(files("scaml.bench").joinpath("data", f"{model}.npz"))
    with np.load(path, allow_pickle=False) as parts:
        about = json.loads(str(parts["about"]))
    assert about["data sets"]["votes"] == data_sets.load("votes").source


def numbers_to_train(model: str, rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """A few rows of a table; of forests, rows that ask no tree to stop before the others."""
    numbers = np.arange(len(rank))
    if model == "rf":
        grid = GRIDS["rf"]
        depth, _features, leaf, split = (
            np.array(values)[rank[:, i]] for i, values in enumerate(grid.values())
        )
        numbers = numbers[(depth >= 32) & (split <= 2 * leaf)]
    chosen: NDArray[np.int64] = np.random.default_rng(1).choice(numbers, 3, replace=False)
    return chosen


@every_model
def test_our_numbers_are_those_of_plain_models(model: str) -> None:
    data, table = data_sets.load("votes"), tables.ours(model)
    rank = ranks(table.grid, table.rows)
    for n in numbers_to_train(model, rank):
        row = {name: values[r] for (name, values), r in zip(table.grid.items(), rank[n], strict=True)}
        expected = held_out_error(model, data.X, data.y, row)
        assert table.losses[table.tasks.index("votes"), n] == pytest.approx(expected, abs=1e-12), row
