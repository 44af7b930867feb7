"""The display of runs: how far they are, and the regrets so far."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from scaml.bench.runner import StudyState
from scaml.bench.settings import Setting
from scaml.cli.show_runs import _display, _state, shown


def test_the_live_display_shows_regrets_so_far() -> None:
    settings = [Setting("branin", 8, 32, 40), Setting("svm", 28, 64, 60)]
    state = StudyState(total=8, finished=3)
    state.cumulative = {settings[0]: {"scaml": [1.0, 2.0], "gpbo": [3.0]}, settings[1]: {"scaml": []}}
    console = Console(width=100, file=io.StringIO())
    console.print(_display(state))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "3 of 8 runs" in text
    assert "1.5 (2)" in text
    assert "3 (1)" in text
    assert "svm" not in text
    assert _state(state) == "3 of 8 runs"


def test_without_a_terminal_there_is_a_line_at_the_start_and_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown(Path("runs"), quiet=False) as tell:
        for finished in range(4):
            tell(StudyState(total=3, finished=finished))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["runs: 0 of 3 runs", "runs: 3 of 3 runs"]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(Path("runs"), quiet=True) as tell:
        tell(StudyState(total=3, finished=3))
    assert capsys.readouterr().err == ""
