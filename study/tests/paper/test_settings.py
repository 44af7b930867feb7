"""The settings of the paper's figures."""

from __future__ import annotations

import pytest

from scaml import SettingError
from scaml.bench.problems import PROBLEMS
from study.paper.settings import FIGURES, figure_settings


def test_figures_have_the_papers_settings() -> None:
    synthetic = figure_settings("synthetic")
    assert {(s.problem, s.meta_tasks, s.points, s.evaluations) for s in synthetic} == {
        (name, tasks, points, evaluations)
        for name, points, evaluations in (
            ("branin", 32, 40),
            ("hartmann3", 32, 40),
            ("hartmann6", 128, 80),
        )
        for tasks in (8, 32)
    }
    assert [s.problem for s in figure_settings("hpo")] == list(PROBLEMS)[3:12]
    assert {s.points for s in figure_settings("ablation-tasks")} == {32, 128}
    assert {s.meta_tasks for s in figure_settings("ablation-points")} == {8}
    assert figure_settings("illustration") == ()


def test_all_figures_share_settings_and_folders() -> None:
    parts = [setting for name in FIGURES[:-1] for setting in figure_settings(name)]
    together = figure_settings("all")
    assert len(set(parts)) == len(together) < len(parts)
    assert len({setting.folder for setting in together}) == len(together)


def test_an_unknown_figure() -> None:
    with pytest.raises(SettingError, match="There is no figure 'synthetc'; did you mean 'synthetic'"):
        figure_settings("synthetc")
