"""`scaml bench` at the command line: from words to results, and one sentence for what is wrong."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from scaml.bench.problems import PROBLEMS
from scaml.cli import main
from scaml.cli.bench import spread
from scaml.cli.terminal import duration
from tests.bench.study_cases import mine

SMALL = ["--meta-tasks", "2", "--points", "4", "--evaluations", "3", "--runs", "2"]


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where relative paths lead; and no terminal, though some CI services pretend to be one."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*words: str) -> int:
    return main(["bench", *words])


def test_every_problem_is_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert run("list") == 0
    shown = capsys.readouterr().out
    lines = {line.split("│")[1].strip(): line for line in shown.splitlines() if "│" in line}
    assert list(PROBLEMS) == [name for name in lines if name in PROBLEMS]
    assert [cell.strip() for cell in lines["rf"].split("│")[3:-1]] == [
        "4",
        "32",
        "1000",
        "27",
        "128",
        "60",
    ]


def test_names_of_problems_stay_whole_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("list") == 0
    assert "fcnet-parkinsons " in capsys.readouterr().out


def test_problems_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--json") == 0
    found = {entry["problem"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert list(found) == list(PROBLEMS)
    assert found["branin"]["tasks"] is None
    assert (found["rf"]["tasks"], found["rf"]["points"], found["rf"]["N_m"]) == (32, 1000, 128)


def test_a_method_of_a_file_outside_the_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine(tmp_path)
    assert run("run", "branin", "--methods", "./mine.py:Mine", "gpbo", *SMALL, "--out", "out") == 0
    assert capsys.readouterr().out == "Results: out, 4 runs; see scaml bench table out\n"
    assert run("table", "out", "--format", "csv", "--reference", "gpbo") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["method"] for row in rows] == ["gpbo", "./mine.py:Mine"]
    # Mine is GPBO under another name.
    assert rows[0]["cumulative"] == rows[1]["cumulative"]
    assert float(rows[1]["difference"]) == 0


def test_tables_in_all_formats_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "branin", "--methods", "random", *SMALL, "--out", "out", "--quiet") == 0
    assert capsys.readouterr().err == ""
    for style, sign in (("text", "─"), ("markdown", "| random |"), ("csv", "branin,2,4,3,random")):
        assert run("table", "out", "--format", style) == 0
        assert sign in capsys.readouterr().out
        assert run("table", "out", "--format", style, "--timings") == 0
        assert "second" in capsys.readouterr().out
    assert run("table", "out", "--format", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["problem"], row["method"]) == ("branin", "random")
    assert run("plot", "out", "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "out/figures/regret.png").stat().st_size > 5000
    assert (tmp_path / "out/figures/regret.pdf").stat().st_size > 5000
    assert run("plot", "out", "--out", "elsewhere") == 0
    assert (tmp_path / "elsewhere/regret.png").exists()


def test_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "branin", "--methods", "random", *SMALL) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "runs: 0 of 2 runs"
    assert lines[-1] == "runs: 2 of 2 runs"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run brannin", "There is no problem 'brannin'; did you mean 'branin'? See scaml bench list."),
        ("run branin --methods scmal", "There is no method 'scmal'; did you mean 'scaml'?"),
        ("run branin --methods kernel=matern52", "There is no method 'kernel=matern52'"),
        ("run branin --methods", "--methods names none; give at least one"),
        ("run branin --methods --runs 3", "--methods names none; give at least one"),
        (
            "run branin --methods ./no.py:Mine",
            "The file 'no.py' of method './no.py:Mine' cannot be read",
        ),
        (
            "run branin --methods ./mine.py:Other",
            "has no method class 'Other', but Mine, Needy, Broken",
        ),
        ("run mlp --meta-tasks 8", "8 meta-tasks are asked of 'mlp', which has 7; ask for at most 7."),
        ("run branin --runs 0", "The number of runs is 0"),
        ("run branin --runs many", "'many' is not an integer"),
        ("run branin --jobs 0", "--jobs is 0; give a positive integer, or -1"),
        ("run", "Missing argument 'PROBLEM'"),
        ("rnu", "No such command 'rnu'. Did you mean 'run'? See scaml bench --help."),
        ("plot nowhere", "'nowhere' has no results"),
        ("table nowhere", "'nowhere' has no results"),
        ("table nowhere --format html", "--format is 'html'; choose one of text, markdown, csv, json."),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    mine(tmp_path)
    assert run(*words.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".py"] in ([], ["__pycache__"])


def test_another_configuration_is_refused_with_the_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("run", "branin", "--methods", "random", *SMALL) == 0
    assert run("run", "branin", "--methods", "random", "--meta-tasks", "3", "--evaluations", "3") == 2
    error = capsys.readouterr().err
    assert "meta-tasks 3 instead of 2, points 32 instead of 4. Give another --out." in error


def test_a_damaged_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run", "branin", "--methods", "random", *SMALL)
    assert run(*words) == 0
    (tmp_path / "runs/branin-2x4/all.parquet").write_bytes(b"PAR1")
    assert run(*words) == 0
    assert "set aside as runs/branin-2x4/all.parquet.damaged" in capsys.readouterr().err


def test_failed_runs_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine(tmp_path)
    assert run("run", "branin", "--methods", "./mine.py:Broken", *SMALL) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(
        "scaml: 1 of 2 runs failed, the first of ./mine.py:Broken with ZeroDivisionError"
    )


def test_a_folder_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "branin", "--methods", "random", *SMALL, "--out", "/proc/runs") == 2
    assert "'/proc/runs' cannot be written (" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").write_text("")
    assert run("run", "branin", "--methods", "random", *SMALL) == 2
    assert "--out is 'runs', a file; give a folder" in capsys.readouterr().err


def test_words_after_methods_are_methods() -> None:
    words = ["bench", "run", "branin", "--methods", "a", "b", "--runs", "3"]
    assert spread(words) == [
        "bench",
        "run",
        "branin",
        "--methods",
        "a",
        "--methods",
        "b",
        "--runs",
        "3",
    ]
    assert spread(["demo", "--", "x"]) == ["demo", "--", "x"]


@pytest.mark.parametrize(("seconds", "words"), [(5, "5 s"), (600, "10 min"), (9000, "2.5 h")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
