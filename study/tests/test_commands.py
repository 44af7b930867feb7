"""`python -m study`, as somebody types it: results, figures, and one sentence for wrong input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

from scaml.bench.contestants import Contestant, contestant
from scaml.bench.results import Results, read
from study.__main__ import app, main
from study.commands.shared import COMMAND
from study.contestants import contestant as of_the_study
from tests.bench.study_cases import SMALL, rows

ROOT = Path(__file__).parents[2]
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where relative paths lead; and no terminal, though some CI services pretend to be one."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def test_it_runs_as_a_module_at_the_top_of_the_repository() -> None:
    command = [sys.executable, "-m", "study", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "rename-settings" in done.stdout


def test_without_a_command_it_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert f"Usage: {COMMAND}" in capsys.readouterr().out


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_example_of_a_command_can_be_parsed(name: str) -> None:
    words = COMMANDS[name].epilog.removeprefix(f"Example: {COMMAND} ").split()
    assert words[0] == name
    COMMANDS[name].make_context(name, _one_option_per_method(words[1:]))  # parses it, and runs nothing


def _one_option_per_method(words: list[str]) -> list[str]:
    from scaml.cli.bench import spread

    return spread(words)


def test_names_of_methods() -> None:
    assert of_the_study("gpbo") == contestant("gpbo")
    found = of_the_study("kernel=matern52+sqrt-beta=2")
    assert isinstance(found, Contestant)
    assert found.settings == repr(found.method)
    assert "matern52" in found.settings


def test_ablate_runs_tabulates_and_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "choices"
    words = ["ablate", "svm", "related", "--methods", "sqrt-beta=1", "first=mean"]
    words += ["--evaluations", "2", "--runs", "1", "--jobs", "2", "--out", str(out), "-q"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "Ratio of cumulative regret" in shown.out
    for name in ("scaml", "scaml-ucb", "scaml-paper", "gpbo", "sqrt-beta=1", "first=mean", "safety"):
        assert name in shown.out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in found["ratios"]][:3] == ["scaml", "scaml-ucb", "scaml-paper"]
    assert found["ratios"][1]["tables"] == 1.0
    assert found["ratios"][0]["tables error"] is None  # of a single run
    assert {row["family"] for row in found["without"]} == {"svm", "safety"}
    assert len(list(out.glob("*/all.parquet"))) == 2
    history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    assert [entry["command"].split()[:3] for entry in history] == [COMMAND.split()]


def test_calibrate_tells_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "coverage.csv"
    words = ["calibrate", "svm", "--methods", "gpbo", "--runs", "1", "-q"]
    assert main([*words, "--out", str(out)]) == 0
    assert "Coverage after 20 observations" in capsys.readouterr().out
    assert len(pd.read_csv(out)) == 9
    assert main([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 9


def test_more_past_runs_tabulates_and_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["more-past", "fcnet-slice", "--evaluations", "2", "--out", "more", "-q"]
    assert main([*words, "--methods", "gpbo", "--runs", "1"]) == 0
    assert "fcnet-slice, gpbo: cumulative regret" in capsys.readouterr().out
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("more/*/*.parquet")}
    assert len(before) == 2
    assert main([*words, "--methods", "gpbo", "--runs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["meta_tasks"] for row in found] == [2, 3]
    assert found[0]["change"] is None
    assert found[1]["change"] == 0.0  # a plain GP does not look at the past
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert main([*words, "--methods", "gpbo", "--runs", "2"]) == 0
    assert "within one error" in capsys.readouterr().out


def test_twin_tells_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["twin", "--runs", "1", "--evaluations", "2", "--out", "twin.parquet", "-q"]
    assert main(words) == 0
    assert "one-good" in capsys.readouterr().out
    assert len(pd.read_parquet(tmp_path / "twin.parquet")) == 3
    assert main([*words, "--methods", "scaml", "scaml-paper", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in found] == ["scaml", "scaml-paper"]
    assert found[0]["until"] is None  # JSON has no infinity


def test_plateau_tells_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plateau", "--studies", "1", "--evaluations", "2", "--only", "table needle"]
    assert main([*words, "--out", "p.json", "-q"]) == 0
    shown = capsys.readouterr().out
    assert "0 of 1 studies ended early" in shown
    assert "Evaluations until the better one" in shown
    (row,) = json.loads((tmp_path / "p.json").read_text())["outcomes"]
    assert (row["space"], row["method"], row["task"], row["error"]) == ("table", "se", "needle", None)


def test_the_illustration_needs_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "--figure", "illustration", "--out", "runs", "-q"]) == 0
    assert capsys.readouterr().out.startswith("Figure: runs/figures/illustration.png")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["figures"]


def test_figures_are_drawn_from_stored_results(tmp_path: Path) -> None:
    results = Results(tmp_path / "runs", SMALL.of("branin"))
    results.add(rows(SMALL.of("branin"), "scaml", 0))
    assert main(["plot", "runs", "--figure", "synthetic", "--out", "drawn", "-q"]) == 0
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == {"synthetic.png", "synthetic.pdf"}


def test_compact_makes_results_smaller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "results" / "branin-2x32", tmp_path / "runs" / "branin-2x32")
    before, _ = read(tmp_path / "runs")
    assert main(["compact", "runs"]) == 0
    assert capsys.readouterr().out.startswith("runs: 0.")
    pd.testing.assert_frame_equal(read(tmp_path / "runs")[0][["regret"]], before[["regret"]])


def test_settings_are_shown_before_they_are_renamed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = Results(tmp_path / "runs", SMALL)
    results.add(rows(SMALL, "gpbo", 0, settings="GPBO(nucleus='se')"))
    assert main(["rename-settings", "runs"]) == 0
    shown = capsys.readouterr().out
    assert "was GPBO(nucleus='se')" in shown
    assert "1 text to rewrite; run python -m study rename-settings --write." in shown
    assert main(["rename-settings", "runs", "--write"]) == 0
    assert "1 text rewritten." in capsys.readouterr().out
    assert main(["rename-settings", "runs"]) == 0
    assert capsys.readouterr().out == "All stored texts are those of the methods.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ablate svn", "There is no problem 'svn'; did you mean 'svm'?"),
        ("ablate svm --methods kernel=matern", "did you mean 'kernel=matern52'?"),
        ("ablate svm --methods scmal", "did you mean 'scaml'?"),
        ("ablate svm --runs 0", "The number of runs is 0"),
        ("calibrate branin", "'branin' is no table"),
        ("calibrate svm --methods random", "'random' predicts nothing"),
        ("calibrate svm --out nowhere/c.csv", "'nowhere/c.csv', in no folder"),
        ("more-past svn", "There is no problem 'svn'; did you mean 'svm'?"),
        ("more-past svm --runs 0", "The number of runs is 0"),
        ("twin related --out t.parquet", "'related' has no single good past task"),
        ("twin", "There is no folder 'results'"),
        ("plateau --only tables", "No variant has the words 'tables'"),
        ("plateau --studies 0", "The number of studies is 0"),
        ("plateau --out nowhere/p.json", "There is no folder 'nowhere'"),
        ("paper --figure synthetc", "There is no figure 'synthetc'; did you mean 'synthetic'?"),
        ("plot nowhere --figure hpo", "'nowhere' has no results"),
        ("plot nowhere", "Missing option '--figure'; see python -m study --help."),
        ("build-table svn", "There is no table 'svn' to build; did you mean 'svm'?"),
        ("compact .", "'.' has no results"),
        ("rename-settings .", "'.' has no results"),
        ("nothing", "No such command 'nothing'"),
    ],
)
def test_wrong_input_gets_one_sentence_and_leaves_nothing(
    words: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("study: ")]
    assert message in error
    assert not [path for path in tmp_path.iterdir() if path.name != ".lock"]
