"""The problems by name, all with the same interface: families of functions, and tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scaml.bench import tables
from scaml.bench.families import FAMILIES, Family
from scaml.bench.safety import SAFETY, Safety
from scaml.bench.tables import Table
from scaml.common.checks import check_integer, check_seed
from scaml.common.wording import nearest
from scaml.errors import SettingError, SpaceError
from scaml.tasks.arrays import check_points
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["PROBLEMS", "FamilyProblem", "Instance", "Problem", "TableProblem", "problem"]

_SAME_ROW = 1e-9
# Streams of random numbers of a run: one for the choice of tasks and rows of a table, one for the noise
# of the evaluations. 0 and 1 are those of a family's functions and meta-data.
_TABLE, _NOISE = 2, 3


@dataclass(frozen=True, eq=False)
class Instance:
    """Past and test-task of one run, the same for all methods.

    Args:
        meta: The meta-data.
        function: The values of the test-task without noise at `n x d` points; larger is better.
        maximum: The largest value.
        noise: The standard deviation of the observation noise.
        candidates: The `n x d` table to choose from, or None for the unit cube.
        span: The largest value of a table minus the smallest one; None for functions.
    """

    meta: MetaData
    function: Callable[[Any], Tensor]
    maximum: float
    noise: float = 0.0
    candidates: Tensor | None = None
    span: float | None = None


@dataclass(frozen=True)
class Problem(ABC):
    """A benchmark, of which every run is drawn at random.

    Args:
        name: The name on the command line.
        title: The name in figures.
        d: The number of parameters.
        meta_tasks: M of the paper's figure.
        points: N_m of the paper's figure.
        evaluations: The number of evaluations of the test-task in the paper's figure.
    """

    name: str
    title: str
    d: int
    meta_tasks: int
    points: int
    evaluations: int

    @property
    @abstractmethod
    def most_meta_tasks(self) -> int | None:
        """The largest possible M; None if there is no limit."""

    @property
    @abstractmethod
    def most_points(self) -> int | None:
        """The largest possible N_m and number of evaluations; None if there is no limit."""

    @abstractmethod
    def _draw(self, run: int, meta_tasks: int, points: int) -> Instance: ...

    def draw(self, run: int, *, meta_tasks: int | None = None, points: int | None = None) -> Instance:
        """Draw past and test-task of one run.

        Args:
            run: The number of the run, which decides everything random.
            meta_tasks: M, the number of meta-tasks; the paper's by default.
            points: N_m, the number of points per meta-task; the paper's by default.
        """
        meta_tasks = self.meta_tasks if meta_tasks is None else meta_tasks
        points = self.points if points is None else points
        self.check(meta_tasks, points)
        return self._draw(check_seed(run), meta_tasks, points)

    def check(self, meta_tasks: int, points: int, evaluations: int = 1) -> None:
        """Refuse numbers that are larger than the problem allows."""
        for what, number, least, most in (
            ("meta-tasks", meta_tasks, 1, self.most_meta_tasks),
            ("points of a meta-task", points, 2, self.most_points),
            ("evaluations", evaluations, 1, self.most_points),
        ):
            check_integer(number, f"The number of {what}", least=least)
            if most is not None and number > most:
                raise SettingError(
                    f"{number} {what} are asked of {self.name!r}, which has {most}; ask for at most "
                    f"{most}."
                )

    def noise_of(self, run: int, evaluations: int, deviation: float) -> list[float]:
        """The noise of every observation of a run, the same for all methods."""
        draws = np.random.default_rng([_NOISE, run]).standard_normal(evaluations)
        noise: list[float] = (deviation * draws).tolist()
        return noise


@dataclass(frozen=True)
class FamilyProblem(Problem):
    """Functions drawn from a family, with noise."""

    family: Family | Safety

    @property
    def most_meta_tasks(self) -> int | None:
        return self.family.most_tasks if isinstance(self.family, Safety) else None

    @property
    def most_points(self) -> None:
        return None

    def _draw(self, run: int, meta_tasks: int, points: int) -> Instance:
        function = self.family.draw(run)
        meta = self.family.meta_data(meta_tasks, points, run)
        return Instance(meta, function, function.maximum, self.family.noise)


@dataclass(frozen=True)
class TableProblem(Problem):
    """Tasks of a table, drawn by algorithm 2 of the paper's appendix.

    Args:
        tasks: The number of tasks of the table, known without reading it.
        rows: The number of rows of the table.
        table: Reads the table.
        test_task: The name of the test-task; None draws one for every run.
    """

    tasks: int
    rows: int
    table: Callable[[], Table]
    test_task: str | None = None

    @property
    def most_meta_tasks(self) -> int:
        return self.tasks - 1

    @property
    def most_points(self) -> int:
        return self.rows

    def _draw(self, run: int, meta_tasks: int, points: int) -> Instance:
        table = self.table()
        generator = np.random.default_rng([_TABLE, run])
        if self.test_task is None:
            test = int(generator.integers(len(table.tasks)))
        else:
            test = table.tasks.index(self.test_task)
        others = np.delete(np.arange(len(table.tasks)), test)
        chosen = generator.permutation(others)[:meta_tasks]
        X, y = table.X, torch.from_numpy(-table.losses)
        tasks = []
        for m in chosen.tolist():
            rows = torch.from_numpy(generator.permutation(len(X))[:points])
            tasks.append(Task(X[rows], y[m, rows], name=table.tasks[m]))
        best, worst = y[test].max().item(), y[test].min().item()
        look_up = partial(_look_up, X, y[test])
        return Instance(MetaData(tasks), look_up, best, candidates=X, span=best - worst)


def _look_up(table: Tensor, values: Tensor, X: Any) -> Tensor:
    X = check_points(X, "X of a table", d=table.shape[1])
    distance, row = torch.cdist(X, table, p=torch.inf).min(1)
    if (distance > _SAME_ROW).any():
        raise SpaceError("A point is not a row of the table; suggest with candidates=table.")
    return values[row]


def problem(name: str) -> Problem:
    """Find a problem by its name.

    Args:
        name: One of `PROBLEMS`, or "hpobench:FOLDER/MODEL" for HPOBench's own tables in a folder.

    Raises:
        SettingError: If there is no such problem. The message names the most similar one.
    """
    if name.startswith("hpobench:"):
        from scaml.bench import hpobench  # it imports this module, and needs pyarrow

        return hpobench.parse(name)
    if name not in PROBLEMS:
        raise SettingError(
            f"There is no problem {name!r}; did you mean {nearest(name, PROBLEMS)!r}? See scaml bench "
            "list."
        )
    return PROBLEMS[name]


def _ours(
    name: str, title: str, d: int, meta_tasks: int, points: int, tasks: int, rows: int
) -> TableProblem:
    table = partial(tables.ours, name)
    return TableProblem(name, title, d, meta_tasks, points, 60, tasks, rows, table)


def _fcnet(task: str, title: str) -> TableProblem:
    return TableProblem(f"fcnet-{task}", f"FC-Net {title}", 6, 3, 256, 80, 4, 7776, tables.fcnet, task)


PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        *(
            FamilyProblem(name, family.title, family.d, 8, family.points, evaluations, family)
            for (name, family), evaluations in zip(FAMILIES.items(), (40, 40, 80), strict=True)
        ),
        _ours("svm", "SVM", 2, 28, 64, 34, 441),
        _ours("lr", "LR", 2, 28, 64, 32, 625),
        _ours("rf", "RF", 4, 27, 128, 32, 1000),
        _ours("xgb", "XGB", 4, 19, 128, 20, 1000),
        TableProblem("mlp", "MLP", 5, 7, 128, 60, 8, 30000, tables.mlp),
        _fcnet("slice", "Slice"),
        _fcnet("protein", "Protein"),
        _fcnet("naval", "Naval"),
        _fcnet("parkinsons", "Parkinson's"),
        *(
            FamilyProblem(name, family.title, family.d, family.tasks, family.points, 30, family)
            for name, family in SAFETY.items()
        ),
    )
}
"""All problems by name, with the settings of the paper's figures."""
