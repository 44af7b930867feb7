"""Regret over the number of past tasks: settings, and changes that are taken run by run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scaml import SettingError
from scaml.bench.problems import problem
from scaml.bench.settings import Setting
from study.more_past import PROBLEMS, numbers_of_tasks, settings_of, summary

SETTINGS = [Setting("svm", number, 64, 2) for number in (2, 4, 33)]


def rows(number: int, run: int, *regrets: float, **others: Any) -> list[dict[str, Any]]:
    usual = {"problem": "svm", "points": 64, "method": "scaml", "span": 2.0}
    return [
        usual | {"meta_tasks": number, "run": run, "step": i + 1, "regret": regret} | others
        for i, regret in enumerate(regrets)
    ]


def test_numbers_of_tasks() -> None:
    assert numbers_of_tasks("svm") == [2, 4, 9, 33]
    assert numbers_of_tasks("two-groups") == [2, 4, 9, 16]
    assert numbers_of_tasks("seven-good") == [2, 4, 7]
    assert numbers_of_tasks("branin") == [2, 4, 8]
    assert numbers_of_tasks("fcnet-slice") == [2, 3]
    with pytest.raises(SettingError, match="did you mean 'svm'"):
        numbers_of_tasks("svn")


def test_settings() -> None:
    found = settings_of(["xgb", "two-groups", "xgb"], 7)
    assert [(setting.problem, setting.meta_tasks) for setting in found] == [
        *(("xgb", number) for number in (2, 4, 9, 19)),
        *(("two-groups", number) for number in (2, 4, 9, 16)),
    ]
    assert {setting.evaluations for setting in found} == {7}
    assert len({setting.folder for setting in found}) == 8


@pytest.mark.parametrize("name", PROBLEMS)
def test_fewer_past_tasks_are_the_first_of_more_for_the_same_new_task(name: str) -> None:
    few, all_of_them = (problem(name).draw(1, meta_tasks=n) for n in (2, numbers_of_tasks(name)[-1]))
    assert few.meta.names == all_of_them.meta.names[:2]
    assert all(torch.equal(a.y, b.y) for a, b in zip(few.meta, all_of_them.meta.tasks[:2], strict=True))
    assert few.maximum == all_of_them.maximum


def test_regrets_and_changes() -> None:
    regrets = {2: [3.0, 5.0, 7.0], 4: [2.0, 5.0, 4.0], 33: [1.0, 6.0]}
    frame = pd.DataFrame(
        [
            row
            for number, values in regrets.items()
            for run, regret in enumerate(values)
            # Cumulative regret is a sum over evaluations in units of the table's span.
            for row in rows(number, run, 1.5 * regret, 0.5 * regret)
        ]
    )
    found = summary(frame, SETTINGS, ["scaml"])
    assert found["meta_tasks"].tolist() == [2, 4, 33]
    assert found["runs"].tolist() == [3, 3, 2]
    assert found["regret"].tolist() == pytest.approx([5.0, 11.0 / 3.0, 3.5])
    assert found["error"][0] == pytest.approx(2.0 / math.sqrt(3.0))
    assert math.isnan(found["change"][0])
    assert math.isnan(found["change_error"][0])
    for place, differences in ((1, [-1.0, 0.0, -3.0]), (2, [-1.0, 1.0])):
        error = np.std(differences, ddof=1) / math.sqrt(len(differences))
        assert found["change"][place] == pytest.approx(np.mean(differences))
        assert found["change_error"][place] == pytest.approx(error)


def test_only_what_is_asked_for_is_shown() -> None:
    asked = [*rows(2, 0, 1.0), *rows(4, 0, 2.0), *rows(4, 0, 5.0, method="gpbo")]
    others = [*rows(3, 0, 9.0), *rows(2, 0, 9.0, points=8), *rows(2, 0, 9.0, problem="lr")]
    frame = pd.DataFrame(asked + others + rows(2, 0, 9.0, method="other"))
    found = summary(frame, SETTINGS, ["gpbo", "scaml"])
    assert list(zip(found["method"], found["meta_tasks"], found["regret"], strict=True)) == [
        ("gpbo", 4, 2.5),
        ("scaml", 2, 0.5),
        ("scaml", 4, 1.0),
    ]
    assert found["change"].iloc[-1] == 0.5
    assert found["change_error"].isna().all()  # of single runs
