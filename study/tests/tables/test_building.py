"""Building a table of few rows and small data sets: what is kept, written, and not done twice."""

from __future__ import annotations

import json
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray

from scaml.bench import tables
from scaml.bench.grids import GRIDS, Grid
from scaml.errors import SettingError
from study.tables import building, data_sets, training
from study.tables.building import build, names_of
from study.tables.data_sets import DataSet

GRID: Grid = {"C": (0.1, 1.0, 10.0), "gamma": (0.01, 0.1)}
NAMES = ("ants", "bees", "cats")


def load(name: str) -> DataSet:
    generator = np.random.default_rng(NAMES.index(name))
    X = generator.normal(size=(40, 3))
    y = (X[:, 0] + generator.normal(size=40) > 0).astype(np.int64)
    return DataSet(name, X, y, f"nowhere, {name}: classes by chance")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GRIDS, "svm", GRID)
    monkeypatch.setattr(data_sets, "names", lambda: NAMES)
    monkeypatch.setattr(data_sets, "load", load)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the data sets in the order in which they are trained."""
    names: list[str] = []

    def errors(model: str, X: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
        names.extend(name for name in NAMES if np.array_equal(load(name).X, X))
        return training.errors(model, X, y)

    monkeypatch.setattr(building, "errors", errors)
    return names


def test_a_table_holds_the_errors_of_all_data_sets(tmp_path: Path) -> None:
    path = build("svm", tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "svm.npz"
    assert [entry.name for entry in path.parent.iterdir()] == ["svm.npz"]
    table = tables.read(path, GRID)
    assert table.tasks == NAMES
    assert table.rows.tolist() == list(range(6))
    for name, losses in zip(NAMES, table.losses, strict=True):
        assert np.array_equal(losses, training.errors("svm", load(name).X, load(name).y))
    assert "5" in table.measure
    assert len(np.unique(table.losses, axis=0)) == 3


def test_a_table_says_how_it_was_made(tmp_path: Path) -> None:
    import sklearn

    with np.load(build("svm", tmp_path)) as parts:
        about = json.loads(str(parts["about"]))
    assert about["data sets"] == {name: load(name).source for name in NAMES}
    assert about["versions"] == {"numpy": np.__version__, "scikit-learn": sklearn.__version__}
    assert about["model"] == training.METHODOLOGY["svm"]
    assert about["measure"] == "held-out error, 5 stratified folds"


def test_progress_is_told_after_every_data_set(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    build("svm", tmp_path, progress=lambda *step: told.append(step))
    assert told == [("ants", 1, 3), ("bees", 2, 3), ("cats", 3, 3)]


def test_a_stopped_build_continues(
    tmp_path: Path, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_name: str, done: int, _all: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build("svm", tmp_path, progress=stop)
    assert trained == ["ants", "bees"]
    assert not (tmp_path / "svm.npz").exists()
    # A stored data set is used, not trained again: no training gives this number.
    part = tmp_path / "svm.parts" / "ants.npy"
    np.save(part, np.full(6, 0.123))
    told: list[tuple[str, int, int]] = []
    table = tables.read(build("svm", tmp_path, progress=lambda *step: told.append(step)), GRID)
    assert trained == ["ants", "bees", "cats"]
    assert told == [("cats", 3, 3)]
    assert (table.losses[0] == 0.123).all()
    assert np.array_equal(table.losses[1], training.errors("svm", load("bees").X, load("bees").y))
    assert not part.exists()
    # A finished table is not used as a stored data set.
    build("svm", tmp_path)
    assert trained[3:] == list(NAMES)


def test_an_error_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> DataSet:
        if name == "bees":
            raise SettingError(
                "The data set 'bees' comes with a package that is not installed; get it."
            )
        return load(name)

    monkeypatch.setattr(data_sets, "load", broken)
    with pytest.raises(SettingError, match="bees"):
        build("svm", tmp_path)
    assert [entry.name for entry in (tmp_path / "svm.parts").iterdir()] == ["ants.npy"]


def test_the_number_of_jobs_changes_nothing(tmp_path: Path) -> None:
    # Threads, because other processes would not know the small grid.
    with joblib.parallel_config(backend="threading"):
        paths = [build("svm", tmp_path / str(n_jobs), n_jobs=n_jobs) for n_jobs in (1, 2)]
    with np.load(paths[0]) as one, np.load(paths[1]) as other:
        assert set(one.files) == {"rows", "tasks", "losses", "about"}
        assert all(np.array_equal(one[name], other[name]) for name in one.files)


def test_tables_of_costly_models_leave_data_sets_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    every = data_sets.names()
    assert names_of("svm") == every
    for model in ("lr", "rf", "xgb"):
        chosen = names_of(model)
        assert 20 <= len(chosen) < len(every)
        assert set(chosen) < set(every)
        assert list(chosen) == sorted(chosen)


def test_a_model_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"^There is no table 'xbg' to build; did you mean 'xgb'\?$"):
        build("xbg", tmp_path)
    with pytest.raises(SettingError, match=r"^n_jobs is 0; give .*\.$"):
        build("svm", tmp_path, n_jobs=0)
    assert not (tmp_path / "svm.npz").exists()
