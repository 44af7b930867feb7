"""HPOBench's own tables, for a user who has its folder of Parquet files.

The folder holds `<model>/<task>/<model>_<task>_data.parquet.gzip`, as HPOBench unpacks them. A row of a
file is one training: the configuration, the fidelity, the seed, and in `result` the measured values.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scaml.bench.grids import GRIDS, Grid
from scaml.bench.problems import PROBLEMS, TableProblem
from scaml.bench.tables import Table
from scaml.common.wording import nearest
from scaml.errors import SavedFileError, SettingError

__all__ = ["load", "parse", "problem"]

_PREFIX = "hpobench:"
_WIDTHS = (16.0, 25.0, 40.0, 64.0, 101.0, 161.0, 256.0, 406.0, 645.0, 1024.0)
_NETWORK: Grid = {
    "alpha": tuple(np.logspace(-8, 0, 10).tolist()),
    "batch_size": (4.0, 6.0, 10.0, 16.0, 25.0, 40.0, 64.0, 101.0, 161.0, 256.0),
    "depth": (1.0, 2.0, 3.0),
    "learning_rate_init": tuple(np.logspace(-5, 0, 10).tolist()),
    "width": _WIDTHS,
}
_GRIDS = {**GRIDS, "nn": _NETWORK}
# The highest fidelities of every model; HPOBench has them as defaults, and the paper uses them.
_FIDELITIES: dict[str, dict[str, float]] = {
    "svm": {"subsample": 1.0},
    "lr": {"iter": 1000.0, "subsample": 1.0},
    "rf": {"n_estimators": 512.0, "subsample": 1.0},
    "xgb": {"n_estimators": 2000.0, "subsample": 1.0},
    "nn": {"iter": 243.0, "subsample": 1.0},
}
# HPOBench returns 1 - accuracy on validation data; a file without accuracies has this loss itself.
_ACCURACY, _LOSS = "result.info.val_scores.acc", "result.function_value"
_SAME_VALUE = 1e-4  # relative; the files have single precision, and values of a grid differ far more


def parse(name: str) -> TableProblem:
    """The problem of a name such as `hpobench:FOLDER/MODEL`."""
    path = Path(name.removeprefix(_PREFIX)).expanduser()
    if not name.startswith(_PREFIX) or not path.name:
        raise SettingError(
            f"{name!r} is not a table of HPOBench; write {_PREFIX}FOLDER/MODEL, where MODEL is one of "
            f"{', '.join(_GRIDS)}."
        )
    return problem(path.parent, path.name)


def problem(folder: Path, model: str) -> TableProblem:
    """The paper's problem on HPOBench's table, with as many tasks and rows as the folder has.

    Args:
        folder: HPOBench's folder TabularData: one folder per model, with one folder per task.
        model: "svm", "lr", "rf", "xgb" or "nn".
    """
    folder = Path(folder)
    table = load(folder, model)
    paper = PROBLEMS["mlp" if model == "nn" else model]
    rows = len(table.rows)
    return TableProblem(
        name=f"{_PREFIX}{folder.as_posix()}/{model}",
        title=f"{paper.title} (HPOBench)",
        d=len(table.grid),
        meta_tasks=min(paper.meta_tasks, len(table.tasks) - 1),
        points=min(paper.points, rows),
        evaluations=min(paper.evaluations, rows),
        tasks=len(table.tasks),
        rows=rows,
        table=partial(load, folder, model),
    )


@lru_cache(maxsize=2)
def load(folder: Path, model: str) -> Table:
    """HPOBench's table of a model at the highest fidelity; losses are means over all seeds.

    The table has all tasks of the folder, and those rows of the grid that every task has.

    Args:
        folder: HPOBench's folder TabularData: one folder per model, with one folder per task.
        model: "svm", "lr", "rf", "xgb" or "nn".

    Raises:
        SettingError: If there is no such folder or model, or pyarrow is not installed.
        SavedFileError: If there are fewer than two tasks, or a file cannot be used.
    """
    if model not in _GRIDS:
        raise SettingError(
            f"HPOBench has no table of {model!r}; did you mean {nearest(model, _GRIDS)!r}?"
        )
    files = _files(folder, model)
    if len(files) < 2:
        raise SavedFileError(
            f"{str(folder / model)!r} has {len(files)} files TASK/{model}_TASK_data.parquet.gzip, but "
            f"a test-task and a meta-task are needed; unpack {model}.zip of HPOBench there."
        )
    means = [_means(file, model) for file in files.values()]
    rows = sorted(set(means[0]).intersection(*means[1:]))
    if len(rows) < 2:
        raise SavedFileError(
            f"The tasks of {str(folder / model)!r} have {len(rows)} configurations in common; remove "
            "those whose files are incomplete."
        )
    losses = np.array([[mean[row] for row in rows] for mean in means])
    measure = "1 - accuracy on validation data, mean over seeds"
    return Table(_GRIDS[model], np.array(rows), tuple(files), losses, measure)


def _files(folder: Path, model: str) -> dict[str, Path]:
    """The files by the names of their tasks; the names are numbers, and are sorted as such."""
    for needed in (folder, folder / model):
        if not needed.is_dir():
            raise SettingError(
                f"There is no folder {str(needed)!r}; give the folder of HPOBench's tables, which has "
                f"a folder {model!r} with one folder per task."
            )
    tasks = sorted((entry.name for entry in (folder / model).iterdir()), key=lambda t: (len(t), t))
    files = {task: folder / model / task / f"{model}_{task}_data.parquet.gzip" for task in tasks}
    return {task: file for task, file in files.items() if file.is_file()}


def _means(file: Path, model: str) -> dict[int, float]:
    """The mean loss over seeds of every configuration of a file, by its number in the grid."""
    grid, fidelity = _GRIDS[model], _FIDELITIES[model]
    columns = _read(file, [*grid, *fidelity])
    chosen = np.all([np.isclose(columns[name], value) for name, value in fidelity.items()], axis=0)
    if not chosen.any():
        values = ", ".join(f"{name} {value:g}" for name, value in fidelity.items())
        raise SavedFileError(f"{str(file)!r} has no rows of {values}; get the whole file.")
    losses = columns[_LOSS][chosen]
    bad = int((~np.isfinite(losses)).sum())
    if bad:
        raise SavedFileError(
            f"{str(file)!r} has {bad} results that are not finite; get the file again, or remove it."
        )
    ranks = [_ranks(file, name, columns[name][chosen], values) for name, values in grid.items()]
    numbers = np.ravel_multi_index(ranks, tuple(map(len, grid.values())))
    rows, which = np.unique(numbers, return_inverse=True)
    means = np.bincount(which, weights=losses) / np.bincount(which)
    return dict(zip(rows.tolist(), means.tolist(), strict=True))


def _ranks(
    file: Path, name: str, column: NDArray[np.float64], values: tuple[float, ...]
) -> NDArray[np.intp]:
    found, which = np.unique(column, return_inverse=True)
    for value in found.tolist():
        if not any(math.isclose(value, other, rel_tol=_SAME_VALUE) for other in values):
            raise SavedFileError(
                f"{str(file)!r} has {name} {value:g}, which is not in the paper's grid; get the third "
                "version of HPOBench's tables."
            )
    ranks: NDArray[np.intp] = np.abs(found[:, None] - np.array(values)).argmin(1)[which]
    return ranks


def _read(file: Path, names: list[str]) -> dict[str, NDArray[np.float64]]:
    """The columns of these names, and the losses as `_LOSS`."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise SettingError(
            "HPOBench's tables are read with the package pyarrow, which is not installed; run "
            "pip install 'scaml[bench]'."
        ) from error
    try:
        with parquet.ParquetFile(file) as opened:
            leaves = {opened.schema.column(i).path for i in range(len(opened.schema.names))}
            measured = _ACCURACY if _ACCURACY in leaves else _LOSS
            names = [*names, measured]
            table = opened.read(columns=[name for name in names if name in leaves])
        for _level in measured.split(".")[1:]:
            table = table.flatten()
        columns = {name: table[name].to_numpy().astype(float) for name in names if name in leaves}
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SavedFileError(
            f"{str(file)!r} is no Parquet file that can be read ({reason}); get it again."
        ) from error
    missing = [name for name in names if name not in leaves]
    if missing:
        raise SavedFileError(
            f"{str(file)!r} has no column {', '.join(missing)}; give HPOBench's own file of the task."
        )
    columns[_LOSS] = 1.0 - columns[_ACCURACY] if measured == _ACCURACY else columns[_LOSS]
    return columns
