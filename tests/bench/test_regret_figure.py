"""The figure of regret from results that never ran: one panel per setting, the same file every time."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from scaml import SettingError
from scaml.bench.regret_figure import build, draw
from tests.bench.figure_cases import Setting, places, results, titles


@pytest.mark.parametrize(("number", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (7, 3), (16, 4)])
def test_every_setting_has_a_panel(number: int, columns: int) -> None:
    settings: list[Setting] = [("branin", m + 1, 32) for m in range(number)]
    figure = build(results(*settings, methods=["scaml"], runs=1, steps=2))
    assert titles(figure) == [f"Branin, M={m + 1}, N_m=32" for m in range(number)]
    assert places(figure) == [divmod(i, columns) for i in range(number)]


def test_problems_are_in_their_fixed_order_and_unknown_ones_come_last() -> None:
    settings: list[Setting] = [("a new one", 1, 2), ("lr", 2, 64), ("branin", 8, 32), ("branin", 8, 4)]
    assert titles(build(results(*settings))) == [
        *("Branin, M=8, N_m=4", "Branin, M=8, N_m=32", "LR, M=2, N_m=64", "a new one, M=1, N_m=2"),
    ]


def test_equal_results_give_equal_files(tmp_path: Path) -> None:
    frame = results(("branin", 8, 32))
    one = draw(frame, tmp_path / "one")
    two = draw(frame.sample(frac=1.0, random_state=5), tmp_path / "two")
    assert [path.name for path in one] == ["regret.png", "regret.pdf"]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_without_results_the_message_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"no results to draw; run scaml bench run branin\.$"):
        draw(pd.DataFrame(), tmp_path)
    assert not list(tmp_path.iterdir())
