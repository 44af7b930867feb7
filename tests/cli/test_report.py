"""`scaml report` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scaml.cli import main
from scaml.explain import run as run_module
from scaml.explain.suggestions import Suggestion, suggestions_at

pytestmark = pytest.mark.usefixtures("in_a_folder")
pytest.importorskip("plotly")


def test_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "runs.csv", "--task", "<script>A", "--out", "page.html"]) == 0
    assert capsys.readouterr().out == "Report: page.html\n"
    page = (tmp_path / "page.html").read_text()
    assert "&lt;script&gt;A" in page
    assert "<script>A" not in page
    assert main(["report", "runs.csv", "--task", "A", "--out", "page.html"]) == 2
    assert "'page.html' is there already; give another name, or --force." in capsys.readouterr().err


def test_a_report_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["runs.csv", "--task", "A", "-n", "2", "--json"]
    assert main(["report", *words, "--out", "page.html"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = json.loads(printed.out)
    assert found.pop("report") == "page.html"
    assert (tmp_path / "page.html").exists()
    assert main(["suggest", *words]) == 0
    assert found == json.loads(capsys.readouterr().out)


def test_every_stage_is_a_line_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "runs.csv", "--task", "C", "-n", "1", "--out", "page.html"]) == 0
    lines = capsys.readouterr().err.splitlines()
    stages = [
        "Reading runs.csv",
        "Learning from the past tasks",
        "Choosing what to try next",
        "Explaining what was learned",
    ]
    assert [line for line in lines if line in stages] == stages
    assert lines.index("Task 'C' has no rows yet.") < lines.index("Learning from the past tasks")
    assert main(["report", "runs.csv", "--task", "C", "-n", "1", "--out", "two.html", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_the_numbers_of_page_and_json_are_computed_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def counting(*args: object, **settings: object) -> list[Suggestion]:
        calls.append(1)
        return suggestions_at(*args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(run_module, "suggestions_at", counting)
    assert main(["report", "runs.csv", "--task", "A", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["suggestions"]) == 3
    assert calls == [1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("runs.csv --task C -n -2", "-n is -2; give an integer of at least 1."),
        ("runs.csv --task C --out /proc/page.html", "cannot be written"),
        ("runs.csv --task C --write-space a.toml", "No such option: --write-space"),
        ("runs.csv", "--task is missing"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert main(["report", *words.split(), "-q"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("scaml: ")
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["runs.csv"]
