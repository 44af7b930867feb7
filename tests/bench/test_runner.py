"""The runner: the same results on any number of processes, after any interruption."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from scaml import SettingError
from scaml.bench import runner
from scaml.bench.contestants import Contestant, contestant
from scaml.bench.results import Results, read
from scaml.bench.runner import StudyState, run_study
from scaml.bench.settings import Setting
from scaml.bench.single_run import Row, SingleRun, evaluate
from scaml.bench.summary import csv, summarize
from scaml.methods import GPBO
from tests.bench.study_cases import SMALL, mine


def methods(*names: str) -> list[Contestant]:
    return [contestant(name) for name in names]


METHODS = methods("random", "gpbo")


def table(folder: Path) -> str:
    return csv(summarize(read(folder)[0], reference="gpbo"))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[SingleRun]:
    seen: list[SingleRun] = []

    def counting(run: SingleRun) -> list[Row]:
        seen.append(run)
        return evaluate(run)

    monkeypatch.setattr(runner, "evaluate", counting)
    return seen


def test_results_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    for jobs in (1, 2):
        run_study(tmp_path / str(jobs), [SMALL], METHODS, 2, n_jobs=jobs)
    assert table(tmp_path / "1") == table(tmp_path / "2")


def test_nothing_is_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = counted(monkeypatch)
    run_study(tmp_path, [SMALL], methods("random"), 2)
    assert [run.number for run in seen] == [0, 1]
    study = run_study(tmp_path, [SMALL], METHODS, 3)
    assert [(run.contestant.name, run.number) for run in seen[2:]] == [
        ("gpbo", 0),
        ("gpbo", 1),
        ("random", 2),
        ("gpbo", 2),
    ]
    assert (study.finished, study.total) == (6, 6)


def test_an_interrupted_study_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_study(tmp_path / "whole", [SMALL], METHODS, 2)

    def stop(state: StudyState) -> None:
        if state.finished == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(tmp_path / "cut", [SMALL], METHODS, 2, progress=stop)
    seen = counted(monkeypatch)
    run_study(tmp_path / "cut", [SMALL], METHODS, 2)
    assert len(seen) == 1
    assert table(tmp_path / "cut") == table(tmp_path / "whole")


def test_a_damaged_file_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_study(tmp_path, [SMALL], METHODS, 2)
    before = table(tmp_path)
    packed = Results(tmp_path, SMALL).folder / "all.parquet"
    packed.write_bytes(packed.read_bytes()[:-50])
    study = run_study(tmp_path, [SMALL], METHODS, 2)
    assert [path.name for path in study.damaged] == ["all.parquet.damaged"]
    assert table(tmp_path) == before


def test_a_failed_run_is_told_and_the_others_are_stored(tmp_path: Path) -> None:
    name = f"{mine(tmp_path)}:Broken"
    study = run_study(tmp_path / "runs", [SMALL], methods(name, "random"), 3)
    (failure,) = study.failures
    assert (failure.run.number, failure.reason) == (1, "ZeroDivisionError: of mine")
    assert "of mine" in failure.log.read_text()
    assert (study.finished, study.total) == (5, 6)
    assert (
        run_study(tmp_path / "runs", [SMALL], methods(name, "random"), 3).failures[0].run == failure.run
    )


def test_progress_knows_what_is_left(tmp_path: Path) -> None:
    told: list[tuple[int, int, bool]] = []

    def progress(state: StudyState) -> None:
        told.append((state.finished, state.total, state.remaining_seconds is None))
        if state.finished == state.total:
            assert state.remaining_seconds == 0
            assert [len(values) for values in state.cumulative[SMALL].values()] == [2, 2]

    run_study(tmp_path, [SMALL], METHODS, 2, progress=progress)
    assert told == [(0, 4, True), *((n, 4, False) for n in range(1, 5))]


@dataclass(frozen=True)
class Renamed(GPBO):
    """A method that scaml does not know by name."""


def test_a_method_without_a_name_in_scaml_runs_in_other_processes(tmp_path: Path) -> None:
    own = Contestant("renamed", Renamed(), "Renamed()")
    state = run_study(tmp_path, [SMALL], [own, contestant(f"{mine(tmp_path)}:Mine")], 2, n_jobs=2)
    assert not state.failures
    frame, _ = read(tmp_path)
    regrets = [part["regret"].tolist() for _, part in frame.groupby("method")]
    assert regrets[0] == regrets[1]  # both are GPBO under another name
    assert set(frame.loc[frame["method"] == "renamed", "settings"]) == {"Renamed()"}


def test_two_methods_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="Two contestants have the same name"):
        run_study(tmp_path, [SMALL], methods("gpbo", "gpbo"), 1)


def test_methods_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    large = Setting("branin", 65, 4, 1)
    study = run_study(tmp_path, [large], methods("random", "mtgp"), 1)
    assert list(study.cumulative[large]) == ["random"]
    assert study.total == 1


@pytest.mark.parametrize("runs", [0, -1, 1.5])
def test_bad_numbers_of_runs(tmp_path: Path, runs: int) -> None:
    with pytest.raises(SettingError, match="The number of runs is"):
        run_study(tmp_path, [SMALL], METHODS, runs)


def test_a_killed_study_continues(tmp_path: Path) -> None:
    """Killed at random moments, then resumed: the table equals that of an undisturbed run, in bytes."""
    kills = int(os.environ.get("SCAML_KILLS", "2"))
    words = "bench run branin --methods random gpbo --meta-tasks 2 --points 4 --evaluations 6 --runs 16"
    command = [
        sys.executable,
        "-c",
        "from scaml.cli import main; raise SystemExit(main())",
        *words.split(),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def start(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, "--jobs", "2", "--out", str(out)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    moments = random.Random(0)
    out = tmp_path / "killed"
    alive = 0
    for _ in range(kills):
        before = len(list(out.glob("*/*.parquet")))
        process = start(out)
        while process.poll() is None and len(list(out.glob("*/*.parquet"))) == before:
            time.sleep(0.02)  # importing torch takes seconds, in which nothing can be lost
        time.sleep(moments.uniform(0, 0.3))
        alive += process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert alive, "every command had finished before it was killed"
    assert start(out).wait() == 0
    run_study(tmp_path / "whole", [Setting("branin", 2, 4, 6)], METHODS, 16)
    assert table(out) == table(tmp_path / "whole")
    assert not list(out.glob("*/.*.tmp"))
