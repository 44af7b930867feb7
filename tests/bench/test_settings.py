"""Settings: the paper's by default, numbers that a problem allows, and how two settings differ."""

from __future__ import annotations

import pytest

from scaml import SettingError
from scaml.bench.settings import Setting, fits


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


def test_differences_in_words() -> None:
    words = Setting("branin", 8, 32, 40).differences(Setting("branin", 9, 32, 30))
    assert words == "meta-tasks 8 instead of 9, evaluations 40 instead of 30"


def test_a_folder_name_is_safe() -> None:
    assert Setting("hpobench:/a b/../rf", 8, 32, 40).folder == "hpobench_a_b_rf-8x32"


def test_mtgp_runs_only_where_it_fits() -> None:
    assert fits("mtgp", Setting("branin", 8, 32, 40))
    assert not fits("mtgp", Setting("branin", 8, 33, 40))
    assert fits("scaml", Setting("branin", 800, 33, 40))
