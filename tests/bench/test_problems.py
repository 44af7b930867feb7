"""What a run is about: drawn by its number alone, meta-tasks beside the test-task, tables looked up."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scaml.bench import tables
from scaml.bench.families import FAMILIES
from scaml.bench.problems import PROBLEMS, Instance, Problem, TableProblem, problem
from scaml.bench.safety import SAFETY
from scaml.bench.tables import Table
from scaml.errors import SettingError, SpaceError, TaskDataError

GRID = {"a": tuple(map(float, range(6))), "b": tuple(map(float, range(7)))}
ROWS = np.delete(np.arange(42), [3, 17])
TABLE = Table(
    GRID, ROWS, tuple("abcdefg"), np.random.default_rng(0).uniform(-1, 3, (7, 40)), "a made-up loss"
)
TOY = TableProblem("toy", "Toy", 2, 4, 10, 12, 7, 40, lambda: TABLE)
FAMILY_NAMES = list(FAMILIES)


def test_task_of(instance: Instance) -> str:
    """The task of TABLE that an instance looks up."""
    values = instance.function(TABLE.X).numpy()
    (found,) = np.flatnonzero((TABLE.losses == -values).all(1))
    return TABLE.tasks[int(found)]


test_task_of.__test__ = False  # type: ignore[attr-defined]


def same(one: Instance, other: Instance, X: Tensor) -> bool:
    return (
        one.meta.names == other.meta.names
        and all(torch.equal(a.X, b.X) for a, b in zip(one.meta.tasks, other.meta.tasks, strict=True))
        and all(torch.equal(a.y, b.y) for a, b in zip(one.meta.tasks, other.meta.tasks, strict=True))
        and torch.equal(one.function(X), other.function(X))
        and one.maximum == other.maximum
        and one.span == other.span
    )


def test_the_settings_are_those_of_the_paper() -> None:
    numbers = {
        name: (where.d, where.meta_tasks, where.points)
        for name, where in PROBLEMS.items()
        if not name.startswith("fcnet") and name not in SAFETY
    }
    assert numbers == {
        "branin": (2, 8, 32),
        "hartmann3": (3, 8, 32),
        "hartmann6": (6, 8, 128),
        "svm": (2, 28, 64),
        "lr": (2, 28, 64),
        "rf": (4, 27, 128),
        "xgb": (4, 19, 128),
        "mlp": (5, 7, 128),
    }
    for name in ("slice", "protein", "naval", "parkinsons"):
        assert (PROBLEMS[f"fcnet-{name}"].d, PROBLEMS[f"fcnet-{name}"].meta_tasks) == (6, 3)
    assert all(where.name == name for name, where in PROBLEMS.items())
    assert len({where.title for where in PROBLEMS.values()}) == len(PROBLEMS) == 12 + len(SAFETY)


@pytest.mark.parametrize("name", ["svm", "lr", "rf", "xgb"])
def test_our_tables_have_what_their_problems_ask_for(name: str) -> None:
    where, table = problem(name), tables.ours(name)
    assert isinstance(where, TableProblem)
    assert (where.tasks, where.rows) == table.losses.shape
    where.check(where.meta_tasks, where.points, where.evaluations)
    instance = where.draw(0)
    assert len(instance.meta.tasks) == where.meta_tasks
    assert instance.meta.d == where.d
    assert instance.candidates is not None
    assert instance.candidates.shape == (where.rows, where.d)


# The same for all methods, another for every run.


@pytest.mark.parametrize(
    "where", [TOY, *(PROBLEMS[name] for name in FAMILY_NAMES)], ids=lambda p: p.name
)
def test_a_run_is_the_same_whenever_it_is_drawn(where: Problem) -> None:
    X = TABLE.X if where is TOY else torch.rand(20, where.d, generator=torch.manual_seed(0)).double()
    first = [where.draw(run) for run in range(4)]
    again = [where.draw(run) for run in reversed(range(4))][::-1]
    for i, one in enumerate(first):
        for j, other in enumerate(again):
            assert same(one, other, X) == (i == j)


def test_fewer_tasks_and_points_are_the_first_of_more() -> None:
    many, few = TOY.draw(5, meta_tasks=6, points=40), TOY.draw(5, meta_tasks=2, points=7)
    assert (len(many.meta.tasks), len(few.meta.tasks)) == (6, 2)
    assert test_task_of(many) == test_task_of(few)
    for task, longer in zip(few.meta.tasks, many.meta.tasks, strict=False):
        assert task.name == longer.name
        assert task.n == 7
        assert torch.equal(task.X, longer.X[:7])
        assert torch.equal(task.y, longer.y[:7])


# Tables.


def test_every_task_is_the_test_task_of_some_runs_and_never_a_meta_task_of_them() -> None:
    counts = dict.fromkeys(TABLE.tasks, 0)
    beside = {task: dict.fromkeys(TABLE.tasks, 0) for task in TABLE.tasks}
    runs = 350
    for run in range(runs):
        instance = TOY.draw(run)
        task = test_task_of(instance)
        counts[task] += 1
        assert len(set(instance.meta.names)) == 4
        assert task not in instance.meta.names
        for name in instance.meta.names:
            beside[task][name] += 1
    # Five deviations of a binomial number.
    for task, count in counts.items():
        assert abs(count - runs / 7) < 5 * math.sqrt(runs * 6 / 49)
        for name in set(TABLE.tasks) - {task}:
            assert abs(beside[task][name] - count * 4 / 6) < 5 * math.sqrt(count * 2 / 9)


def test_all_meta_tasks_are_all_others() -> None:
    instance = TOY.draw(3, meta_tasks=6)
    assert {*instance.meta.names, test_task_of(instance)} == set(TABLE.tasks)


def test_meta_tasks_are_rows_of_the_table_none_twice() -> None:
    drawn = []
    for task in TOY.draw(1, meta_tasks=6, points=25).meta.tasks:
        rows = [TABLE.X.tolist().index(x) for x in task.X.tolist()]
        assert len(set(rows)) == 25
        losses = TABLE.losses[TABLE.tasks.index(task.name)]
        assert task.y.tolist() == [-losses[row] for row in rows]
        drawn.append(tuple(rows))
    assert len(set(drawn)) == 6
    whole = TOY.draw(1, points=40).meta.tasks[0]
    assert sorted(whole.X.tolist()) == sorted(TABLE.X.tolist())


def test_maximum_and_span_are_those_of_the_table() -> None:
    for run in range(10):
        instance = TOY.draw(run)
        losses = TABLE.losses[TABLE.tasks.index(test_task_of(instance))]
        assert instance.maximum == max(-loss for loss in losses)
        assert instance.span == max(losses) - min(losses)
        assert instance.noise == 0.0
        assert instance.candidates is not None
        assert torch.equal(instance.candidates, TABLE.X)


def test_looking_up_is_exact_in_any_order() -> None:
    instance = TOY.draw(0)
    losses = TABLE.losses[TABLE.tasks.index(test_task_of(instance))]
    rows = np.random.default_rng(0).integers(40, size=100)
    assert instance.function(TABLE.X[torch.from_numpy(rows)]).tolist() == (-losses[rows]).tolist()
    assert instance.function(TABLE.X[7:8].tolist()).tolist() == [-losses[7]]
    assert instance.function(TABLE.X[:, [0, 1]].float().double()[:1]).item() == -losses[0]


@pytest.mark.parametrize(
    "X",
    [
        [[0.5, 0.5]],
        TABLE.X[:3] * 0.999 + 1e-4,
        [[0.0, 3 / 6]],  # a row of the grid that the table does not have
        [[0.0, 0.0, 0.0]],
        [[1.2, 0.0]],
    ],
)
def test_points_off_the_table_are_refused(X: Any) -> None:
    with pytest.raises(SpaceError):
        TOY.draw(0).function(X)


def test_one_point_off_the_table_among_others_is_refused() -> None:
    X = TABLE.X[:5].clone()
    X[3, 1] += 1e-6
    with pytest.raises(SpaceError, match=r"^A point is not a row of the table; .*\.$"):
        TOY.draw(0).function(X)
    X[3, 1] = math.nan
    with pytest.raises(TaskDataError):
        TOY.draw(0).function(X)


@pytest.mark.parametrize("task", ["slice", "protein", "naval", "parkinsons"])
def test_the_test_task_of_fcnet_is_fixed(task: str) -> None:
    where, table = problem(f"fcnet-{task}"), tables.fcnet()
    assert isinstance(where, TableProblem)
    assert (where.tasks, where.rows) == table.losses.shape
    names = set()
    for run in range(5):
        instance = where.draw(run, points=20)
        names.add(tuple(instance.meta.names))
        assert {*instance.meta.names, task} == {"slice", "protein", "naval", "parkinsons"}
        losses = table.losses[table.tasks.index(task)]
        assert instance.maximum == -losses.min()
        assert instance.span == pytest.approx(losses.max() - losses.min(), rel=1e-15)
        rows = [0, 7775, run, 1234]
        assert instance.function(table.X[rows]).tolist() == (-losses[rows]).tolist()
    assert len(names) > 1


def test_a_fixed_test_task_leaves_the_others_to_chance() -> None:
    fixed = replace(TOY, test_task="c")
    assert {test_task_of(fixed.draw(run)) for run in range(20)} == {"c"}
    assert {name for run in range(20) for name in fixed.draw(run).meta.names} == set("abdefg")


# Families, and noise.


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_a_family_gives_a_function_and_meta_data(name: str) -> None:
    where, family = problem(name), FAMILIES[name]
    instance = where.draw(2)
    X = torch.rand(50, family.d, generator=torch.manual_seed(0)).double()
    assert torch.equal(instance.function(X), family.draw(2)(X))
    assert instance.maximum == pytest.approx(family.draw(2).maximum, abs=1e-9)
    assert (instance.function(X) <= instance.maximum).all()
    assert (instance.noise, instance.candidates, instance.span) == (family.noise, None, None)
    assert len(instance.meta.tasks) == 8
    assert {task.n for task in instance.meta.tasks} == {family.points}
    assert torch.equal(instance.meta.tasks[0].X, family.meta_data(1, family.points, 2).tasks[0].X)
    # The test-task is none of the meta-tasks: beyond their noise.
    for task in instance.meta.tasks:
        assert (instance.function(task.X) - task.y).abs().max() > 0
    where.check(1000, 1000, 1000)


def test_noise_is_the_same_for_all_methods_and_other_in_other_runs() -> None:
    where = problem("branin")
    noise = where.noise_of(3, 40, 1.0)
    assert noise == where.noise_of(3, 40, 1.0)
    assert noise == problem("hartmann6").noise_of(3, 40, 1.0)
    assert noise[:10] == where.noise_of(3, 10, 1.0)
    assert [2.5 * value for value in noise] == pytest.approx(where.noise_of(3, 40, 2.5))
    assert where.noise_of(3, 40, 0.0) == [0.0] * 40
    assert not set(noise) & set(where.noise_of(4, 40, 1.0))


def test_noise_has_the_right_deviation() -> None:
    where = problem("hartmann3")
    draws = np.array([where.noise_of(run, 40, 0.1) for run in range(500)])
    assert draws.mean() == pytest.approx(0.0, abs=5 * 0.1 / math.sqrt(draws.size))
    assert draws.std() == pytest.approx(0.1, rel=5 / math.sqrt(2 * draws.size))
    # Every step alone, and no step knows of the one before.
    assert (np.abs(draws.std(0) / 0.1 - 1) < 5 / math.sqrt(1000)).all()
    steps = np.corrcoef(draws.T)[np.triu_indices(40, 1)]
    assert np.abs(steps).max() < 5.5 / math.sqrt(500)


@pytest.mark.parametrize("where", [TOY, PROBLEMS["branin"]], ids=lambda p: p.name)
def test_noise_has_random_numbers_of_its_own(where: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers behind the meta-data once more would tie the noise to the points of a meta-task."""
    seeds: list[tuple[int, ...]] = []
    default_rng = np.random.default_rng

    def recorded(seed: list[int]) -> np.random.Generator:
        seeds.append(tuple(seed))
        return default_rng(seed)

    monkeypatch.setattr(np.random, "default_rng", recorded)
    where.draw(3)
    where.noise_of(3, 10, 1.0)
    assert len(seeds) == len(set(seeds)) >= 2


# Refusals.


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(
        SettingError, match=r"^There is no problem 'brannin'; did you mean 'branin'\? .*\.$"
    ):
        problem("brannin")
    with pytest.raises(SettingError, match="did you mean 'fcnet-naval'"):
        problem("fcnet-navel")
    with pytest.raises(SettingError, match="did you mean"):
        problem("")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"meta_tasks": 7}, "7 meta-tasks are asked of 'toy', which has 6; ask for at most 6."),
        (
            {"points": 41},
            "41 points of a meta-task are asked of 'toy', which has 40; ask for at most 40.",
        ),
        ({"meta_tasks": 0}, "The number of meta-tasks is 0; "),
        ({"meta_tasks": -1}, "The number of meta-tasks is -1; "),
        ({"meta_tasks": 2.0}, "The number of meta-tasks is 2.0; "),
        ({"meta_tasks": True}, "The number of meta-tasks is True; "),
        ({"points": 1}, "The number of points of a meta-task is 1; "),
        ({"points": "8"}, "The number of points of a meta-task is '8'; "),
    ],
)
def test_numbers_that_a_table_does_not_have_are_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{re.escape(message)}"):
        TOY.draw(0, **asked)
    TOY.draw(0, meta_tasks=6, points=40)


def test_more_evaluations_than_rows_are_refused() -> None:
    TOY.check(6, 40, 40)
    message = "41 evaluations are asked of 'toy', which has 40; ask for at most 40."
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        TOY.check(6, 40, 41)
    with pytest.raises(SettingError, match=r"^The number of evaluations is 0; "):
        TOY.check(6, 40, 0)


@pytest.mark.parametrize("run", [-1, 0.5, True, "0", None])
@pytest.mark.parametrize("where", [TOY, PROBLEMS["branin"]], ids=lambda p: p.name)
def test_the_number_of_a_run_is_a_number(where: Problem, run: Any) -> None:
    with pytest.raises(SettingError):
        where.draw(run)
