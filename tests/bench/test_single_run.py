"""One run of one method: what is kept of it, and what all methods of a run share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from scaml import Task, suggest
from scaml.bench import FAMILIES
from scaml.bench.contestants import contestant
from scaml.bench.problems import problem
from scaml.bench.settings import Setting
from scaml.bench.single_run import Row, SingleRun, evaluate
from scaml.methods import ScaML
from tests.bench.study_cases import SMALL, mine


def evaluated(setting: Setting, method: str, run: int) -> list[Row]:
    return evaluate(SingleRun(setting, contestant(method), run))


def test_rows_are_those_of_a_loop_by_hand() -> None:
    family, run = FAMILIES["branin"], 2
    function, meta = family.draw(run), family.meta_data(2, 4, run)
    prior = ScaML().meta_fit(meta, seed=run)
    task, best = Task.empty(2), -np.inf
    rows = evaluated(SMALL, "scaml", run)
    noise = problem("branin").noise_of(run, 3, 1.0)
    for i, row in enumerate(rows):
        weights = prior.condition(task, seed=10_000 * run + i).weights
        x = suggest(prior, task, seed=10_000 * run + i)
        value = function(x).item()
        task, best = task.append(x, value + noise[i]), max(best, value)
        assert (row["step"], row["x"], row["value"]) == (i + 1, x[0].tolist(), value)
        assert row["y"] == value + noise[i]
        assert row["regret"] == function.maximum - best
        assert row["weights"] == weights.tolist()
    assert len(rows) == 3


def test_methods_of_a_run_get_the_same_noise(tmp_path: Path) -> None:
    names = ["random", "gpbo", f"{mine(tmp_path)}:Mine"]
    noises = [[row["y"] - row["value"] for row in evaluated(SMALL, name, 5)] for name in names]
    assert noises[1] == pytest.approx(noises[0], abs=1e-9)
    assert noises[2] == pytest.approx(noises[0], abs=1e-9)
    assert np.ptp(noises[0]) > 0


def test_runs_differ_and_repeat() -> None:
    first, again, other = (evaluated(SMALL, "random", run) for run in (0, 0, 1))
    assert [row["x"] for row in first] == [row["x"] for row in again]
    assert [row["x"] for row in first] != [row["x"] for row in other]


@pytest.mark.parametrize("method", ["random", "gpbo"])
def test_a_table_is_searched_without_repetition(method: str) -> None:
    setting = Setting("svm", 2, 8, 12)
    rows = evaluated(setting, method, 1)
    instance = problem("svm").draw(1, meta_tasks=2, points=8)
    assert instance.candidates is not None
    table = {tuple(row) for row in instance.candidates.tolist()}
    points = [tuple(row["x"]) for row in rows]
    assert len(set(points)) == 12
    assert set(points) <= table
    values = instance.function(torch.tensor(points, dtype=torch.float64))
    assert [row["y"] for row in rows] == values.tolist()
    best = np.maximum.accumulate(values.numpy())
    assert [row["regret"] for row in rows] == (instance.maximum - best).tolist()
    assert {row["span"] for row in rows} == {instance.span}


def test_random_search_ends_with_the_whole_table() -> None:
    setting = Setting("svm", 2, 8, 441)
    assert evaluated(setting, "random", 0)[-1]["regret"] == 0


def test_a_method_does_not_see_how_many_evaluations_follow() -> None:
    longer = evaluated(replace(SMALL, evaluations=4), "gpbo", 0)
    assert [row["y"] for row in longer][:3] == [row["y"] for row in evaluated(SMALL, "gpbo", 0)]
