"""How far the work is, on a terminal and elsewhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import typer
from rich.console import Console
from rich.progress import Progress as Bar

from scaml import SettingError
from scaml.cli.terminal import _Clock, _on, check_free, progress, write_all


class Watch:
    """A clock that somebody sets, beside a bar that shows what it is told."""

    def __init__(self) -> None:
        self.now = 0.0
        self.bar = Bar(
            console=Console(file=io.StringIO()), auto_refresh=False, get_time=lambda: self.now
        )
        self.tell = _on(self.bar)

    def shown(self) -> tuple[str, str]:
        (row,) = self.bar.tasks
        return row.description, _Clock().render(row).plain


def test_the_time_that_is_left_is_told_from_the_pace_of_the_steps() -> None:
    watch = Watch()
    watch.now = 3.0
    assert watch.shown() == ("Starting", "3 s so far")
    watch.tell("Learning", 0, 10)
    watch.now = 5.0
    assert watch.shown() == ("Learning", "0%, 2 s so far")
    watch.now = 63.0
    watch.tell("Learning", 1, 10)  # after a minute that had little to do with the steps
    assert watch.shown() == ("Learning", "10%, 60 s so far")
    watch.now = 65.0
    watch.tell("Learning", 2, 10)
    assert watch.shown() == ("Learning", "20%, 16 s left")
    watch.now = 70.0
    assert watch.shown() == ("Learning", "20%, 11 s left")
    watch.now = 90.0  # later than it should have been
    assert watch.shown() == ("Learning", "20%, 87 s so far")


def test_a_stage_of_unknown_length_begins_anew() -> None:
    watch = Watch()
    watch.tell("Learning", 0, 2)
    watch.now = 9.0
    watch.tell("Choosing", 0, None)
    assert watch.shown() == ("Choosing", "0 s so far")
    watch.now = 150.0
    assert watch.shown() == ("Choosing", "2 min so far")


def work(quiet: bool) -> None:
    with progress(quiet) as tell:
        tell("Reading [a]", 0, None)
        if not quiet:
            typer.echo("A note.", err=True)
        for done in range(3):
            tell("Learning", done, 3)


def test_elsewhere_a_stage_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    work(quiet=False)
    assert capsys.readouterr() == ("", "Reading [a]\nA note.\nLearning\n")


@pytest.mark.parametrize("quiet", [False, True])
def test_on_a_terminal_it_is_a_bar_below_what_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    work(quiet)
    printed = capsys.readouterr()
    assert printed.out == ""
    if quiet:
        assert printed.err == ""
    else:
        assert "A note." in printed.err
        assert "Learning" in printed.err
        assert "67%" in printed.err


def test_a_file_to_write_is_checked_before_the_work(tmp_path: Path) -> None:
    check_free(None, force=False)
    check_free(tmp_path / "new.csv", force=False)
    old = tmp_path / "old.csv"
    old.write_text("mine")
    check_free(old, force=True)
    for path, message in (
        (old, "is there already; give another name, or --force."),
        (tmp_path, "is a folder; give the name of a file."),
        (tmp_path / "no" / "new.csv", "There is no folder"),
        (tmp_path / ("x" * 300), "cannot be written"),
    ):
        with pytest.raises(SettingError, match=message):
            check_free(path, force=False)


def test_several_files_are_written_all_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.toml"
    write_all({first: "x\n", second: "y\n"})
    assert (first.read_text(), second.read_text()) == ("x\n", "y\n")
    with pytest.raises(SettingError, match="cannot be written"):
        write_all({first: "z\n", tmp_path / "no" / "c.csv": "z\n"})
    assert first.read_text() == "x\n"
