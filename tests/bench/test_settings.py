"""Settings of the paper's figures, and how two settings differ."""

from __future__ import annotations

import pytest

from scaml import SettingError
from scaml.bench.problems import PROBLEMS
from scaml.bench.settings import FIGURES, Setting, figure_settings, fits


def test_the_papers_setting_is_the_default() -> None:
    assert Setting.of("rf") == Setting("rf", 27, 128, 60)
    assert Setting.of("branin", 3, 4, 5) == Setting("branin", 3, 4, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("svmm",), "did you mean 'svm'"),
        (("mlp", 8), r"8 meta-tasks are asked of 'mlp', which has 7; ask for at most 7\."),
        (("svm", 2, 442), "442 points of a meta-task are asked of 'svm', which has 441"),
        (("svm", 2, 2, 442), "442 evaluations are asked of 'svm', which has 441"),
        (("branin", 0), "The number of meta-tasks is 0"),
        (("branin", 1, 1), "The number of points of a meta-task is 1"),
        (("branin", 1, 2, 0), "The number of evaluations is 0"),
    ],
)
def test_numbers_that_a_problem_does_not_have(arguments: tuple[str, int], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Setting.of(*arguments)


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


def test_differences_in_words() -> None:
    words = Setting("branin", 8, 32, 40).differences(Setting("branin", 9, 32, 30))
    assert words == "meta-tasks 8 instead of 9, evaluations 40 instead of 30"


def test_a_folder_name_is_safe() -> None:
    assert Setting("hpobench:/a b/../rf", 8, 32, 40).folder == "hpobench_a_b_rf-8x32"


def test_mtgp_runs_only_where_it_fits() -> None:
    assert fits("mtgp", Setting("branin", 8, 32, 40))
    assert not fits("mtgp", Setting("branin", 8, 33, 40))
    assert fits("scaml", Setting("branin", 800, 33, 40))
