"""`scaml demo` and `scaml methods`: what they print, draw and refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scaml import methods
from scaml.bench import FAMILIES
from scaml.cli import app, main
from scaml.cli.demo import FAMILY_NAMES
from tests.cli.test_cli import RESULT, instant, no_terminal

__all__ = ["instant", "no_terminal"]  # fixtures


def test_families_are_those_of_the_benchmarks() -> None:
    assert list(FAMILY_NAMES) == list(FAMILIES)


@pytest.mark.usefixtures("instant")
def test_demo_prints_tables_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    assert main(["demo", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert re.search(r"\b5\b.*0\.25.*\b9\b", printed.out)
    assert re.search(r"twin\W+0\.38\W+0\.38\W+0\.38\W+0\.62\W+0\.62\W+0\.62", printed.out)
    rows = re.findall(r"twin |relative 1 |stranger 1 |none ", printed.out[: printed.out.index("After")])
    assert [row.strip() for row in rows] == ["twin", "relative 1", "stranger 1", "none"]
    assert "After 20 evaluations, the twin matters with probability 0.62, the best" in printed.out
    assert printed.out.endswith(f"Figure: {out / 'branin-seed-0.png'}\n")
    assert printed.err == "Optimizing\n"
    assert [path.name for path in out.iterdir()] == ["branin-seed-0.png"]


@pytest.mark.usefixtures("instant")
def test_demo_shows_a_bar_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert main(["demo", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "Optimizing" in printed.err
    assert "%" in printed.err


@pytest.mark.usefixtures("instant")
def test_demo_says_nothing_else_when_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(tmp_path), "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert "branin-seed-0.png" in quiet.out
    assert main(["demo", "--out", str(tmp_path), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = json.loads(printed.out)
    assert (found["family"], found["seed"]) == ("branin", 0)
    assert found["figure"] == str(tmp_path / "branin-seed-0.png")
    assert found["regrets"]["ScaML-GP"] == list(RESULT.regrets["ScaML-GP"])
    assert found["matters"] == {name: list(values) for name, values in RESULT.matters.items()}
    assert found["none"] == list(RESULT.none)


@pytest.mark.usefixtures("instant")
def test_figure_that_cannot_be_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "branin-seed-0.png").mkdir()
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "branin-seed-0.png' cannot be written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["branin-seed-0.png"]


def test_methods_are_listed_with_publication_and_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    result = CliRunner().invoke(app, ["methods"])
    assert result.exit_code == 0
    names = [name for name in methods.__all__ if name not in ("Method", "MetaPrior")]
    assert len(names) == 10
    for name in names:
        (line,) = [line for line in result.output.splitlines() if line.startswith(f"│ {name} ")]
        cls = getattr(methods, name)
        assert cls.publication in line
        assert cls.summary in line
        assert cls.cost in line


def test_methods_as_json() -> None:
    found = json.loads(CliRunner().invoke(app, ["methods", "--json"]).stdout)
    assert len(found) == 10
    (rgpe,) = [entry for entry in found if entry["method"] == "RGPE"]
    cls = methods.RGPE
    assert rgpe == {
        "method": "RGPE",
        "publication": cls.publication,
        "summary": cls.summary,
        "cost": cls.cost,
    }


def test_methods_takes_no_argument() -> None:
    assert main(["methods", "rgpe"]) == 2
