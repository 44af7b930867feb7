"""Ctrl-C in the middle of a real command, which a terminal sends to all of its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no groups of processes")

TABLE = "runs.csv"


def write_table(path: Path, tasks: int, n: int) -> None:
    generator = np.random.default_rng(0)
    rows = [
        f"past-{m},{a},{b},{c},{a - a * b - c * c}"
        for m in range(tasks)
        for a, b, c in generator.random((n, 3)).round(4).tolist()
    ]
    path.write_text("\n".join(["task,a,b,c,y", *rows]))


def interrupted(folder: Path, words: list[str], stage: str, seconds: float) -> tuple[int, str, str]:
    """Exit code, standard output, and what is said after Ctrl-C some time into a stage."""
    command = Path(sys.executable).with_name("scaml")
    process = subprocess.Popen(
        [command, *words, "--task", "new"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Shells start what runs in the background with Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert any(line == f"{stage}\n" for line in iter(process.stderr.readline, ""))
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        said, printed = process.stderr.read(), process.stdout.read()
    return process.returncode, printed, said


@pytest.mark.parametrize(
    ("words", "stage", "seconds"),
    [
        # While processes start, and while they work.
        (["suggest", TABLE, "--out", "next.csv", "--jobs", "2"], "Learning from the past tasks", 0.5),
        (["suggest", TABLE, "--out", "next.csv", "--jobs", "2"], "Learning from the past tasks", 4.0),
        (["report", TABLE, "--out", "page.html"], "Explaining what was learned", 0.0),
    ],
)
def test_nothing_stays_behind(tmp_path: Path, words: list[str], stage: str, seconds: float) -> None:
    long = stage.startswith("Learning")
    write_table(tmp_path / TABLE, tasks=40 if long else 2, n=300 if long else 8)
    code, printed, said = interrupted(tmp_path, words, stage, seconds)
    assert said == "scaml: stopped.\n"
    assert code == 130
    assert printed == ""
    assert [path.name for path in tmp_path.iterdir()] == [TABLE]
