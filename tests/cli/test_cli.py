"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import scaml
from scaml.bench import FAMILIES
from scaml.bench.demo import DemoResult
from scaml.cli import app, main
from scaml.cli.bench import spread
from scaml.common.progress import Progress

RESULT = DemoResult(
    family=FAMILIES["branin"],
    seed=0,
    regrets={"ScaML-GP": (4.0,) * 4 + (0.25,) * 16, "plain GP": (9.0,) * 20},
    matters={
        "stranger 1": (0.25,) * 20 + (0.125,),
        "twin": (0.375,) * 7 + (0.625,) * 14,
        "relative 1": (0.25,) * 21,
    },
    none=(0.5,) * 21,
)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some CI services pretend to be one."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration without its computation."""

    def run_demo(family: object, seed: int, *, progress: Progress) -> DemoResult:
        progress("Optimizing", 0, 2)
        progress("Optimizing", 1, 2)
        return RESULT

    monkeypatch.setattr("scaml.bench.demo.run_demo", run_demo)


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def run_demo(family: object, seed: int, *, progress: Progress) -> DemoResult:
        raise error

    monkeypatch.setattr("scaml.bench.demo.run_demo", run_demo)


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_help(args: list[str]) -> None:
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0
    assert "demo" in result.stdout
    assert "Example: scaml demo" in result.stdout


def commands(path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words that lead to every command and group."""
    command: Any = typer.main.get_command(app)
    for word in path:
        command = command.commands[word]
    yield path
    for word in getattr(command, "commands", {}):
        yield from commands((*path, word))


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_help_fits_a_narrow_terminal_and_has_an_example_that_is_understood(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0
    assert "…" not in result.stdout
    lines = [line.strip() for line in result.stdout.splitlines()]
    (example,) = [line for line in lines if line.startswith("Example: scaml")]
    words = spread(shlex.split(example)[2:])
    assert tuple(words[: len(path)]) == path
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    command.make_context("scaml", words)  # parses it, and runs nothing


@pytest.mark.parametrize("words", [["bench"]])
def test_a_group_alone_shows_its_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    printed = capsys.readouterr()
    assert f"Usage: scaml {' '.join(words)}" in printed.out
    assert printed.err == ""


def loaded(*words: str) -> set[str]:
    """The modules of scaml that a new process imports for a command."""
    code = (
        "import json, sys\nfrom scaml.cli import main\nassert main(sys.argv[1:]) == 0\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('scaml.')]))"
    )
    printed = subprocess.check_output([sys.executable, "-c", code, *words], text=True)
    return set(json.loads(printed.splitlines()[-1]))


def test_a_command_does_not_import_the_others() -> None:
    commands = {f"scaml.cli.{name}" for name in ("suggest", "report", "demo", "bench")}
    assert loaded("suggest", "--help") & commands == {"scaml.cli.suggest"}
    assert loaded("methods", "--help") & commands == {"scaml.cli.demo"}
    assert loaded("--help") & commands == commands


def test_help_imports_no_numerics() -> None:
    for words in (("--help",), ("suggest", "--help"), ("--version",)):
        packages = {name.split(".")[1] for name in loaded(*words)}
        assert packages <= {"cli", "common", "errors"}


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"scaml {scaml.__version__}\n")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["demo", "--family", "foo"], "--family is 'foo'; choose one of branin, hartmann3, hartmann6."),
        (["demo", "--seed", "-1"], "--seed is -1; give an integer of at least 0."),
        (
            ["demo", "--seed", "x"],
            "Invalid value for '--seed': 'x' is not an integer; see scaml demo --help.",
        ),
        (["demo", "--seed"], "Option '--seed' requires an argument; see scaml demo --help."),
        (["demo", "--what"], "No such option: --what; see scaml demo --help."),
        (["bench", "run"], "Missing argument 'PROBLEM'; see scaml bench run --help."),
        (
            ["bench", "table", "--format"],
            "Option '--format' requires an argument; see scaml bench table --help.",
        ),
        (["sugest"], "No such command 'sugest'. Did you mean 'suggest'? See scaml --help."),
        (["what"], "No such command 'what'; see scaml --help."),
    ],
)
def test_bad_options_are_refused_in_one_sentence(
    args: list[str],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"scaml: {sentence}\n"
    assert list(tmp_path.iterdir()) == []


def test_out_that_is_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    assert main(["demo", "--out", str(file)]) == 2
    assert (
        capsys.readouterr().err
        == f"scaml: --out is '{file}', a file; give a folder, new or existing.\n"
    )
    assert file.read_text() == "mine"


@pytest.mark.parametrize("below", ["file/folder", "x" * 300])
def test_out_that_cannot_be_written_is_refused(
    below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    assert main(["demo", "--out", str(tmp_path / below)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written (" in line
    assert line.endswith("give an --out folder where you may write.")


def test_error_of_scaml_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, scaml.FitError("This went wrong; do that."))
    assert main(["demo", "--out", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err == "scaml: This went wrong; do that.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_nobodys_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    assert main(["demo", "--out", str(tmp_path / "new")]) == 2
    sentence = "The disk is full (No space left on device); make room and try again."
    assert capsys.readouterr().err == f"scaml: {sentence}\n"


def test_a_terminal_without_the_letters_gets_others() -> None:
    command = Path(sys.executable).with_name("scaml")
    plain = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([command, "bench", "list"], env=plain, capture_output=True, check=True)
    assert b"branin" in done.stdout
    assert done.stdout.isascii()


def test_unexpected_error_is_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fail_with(monkeypatch, ZeroDivisionError("deep inside"))
    assert main(["demo", "--out", str(tmp_path / "new")]) == 1
    (log,) = tmp_path.iterdir()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "scaml: an unexpected ZeroDivisionError is a fault of scaml; please report it with the "
        f"traceback in {log}."
    )
    text = log.read_text()
    assert text.startswith(f"scaml {scaml.__version__}, Python")
    assert "ZeroDivisionError: deep inside" in text


def test_unexpected_error_without_a_place_for_a_log_is_not_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    fail_with(monkeypatch, ZeroDivisionError("deep inside"))
    assert main(["demo", "--out", str(tmp_path / "new")]) == 1
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: deep inside" in printed
    assert printed.endswith("please report it with the traceback in the lines above.\n")


def test_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(monkeypatch, KeyboardInterrupt())
    assert main(["demo", "--out", str(tmp_path / "a" / "b")]) == 130
    assert capsys.readouterr().err == "scaml: stopped.\n"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_waits_for_the_queues_of_worker_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()
    queue = threading.Timer(0.2, closed.set)
    queue.name = "QueueFeederThread"
    queue.start()
    fail_with(monkeypatch, KeyboardInterrupt())
    assert main(["demo", "--out", str(tmp_path / "new")]) == 130
    assert closed.is_set()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a single process")
def test_real_process_stops_on_ctrl_c(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("scaml")
    process = subprocess.Popen(
        [command, "demo", "--out", "out"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # Shells start what runs in the background with Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.stderr.read().endswith("scaml: stopped.\n")
    assert process.wait(timeout=60) == 130
    process.stderr.close()
    assert first == "Learning from the past tasks\n"
    assert list(tmp_path.iterdir()) == []
