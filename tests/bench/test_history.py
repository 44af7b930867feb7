"""Where results come from."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

import scaml
from scaml.bench.contestants import contestant
from scaml.bench.history import note, provenance
from scaml.bench.runner import run_study
from tests.bench.study_cases import SMALL


def test_command_revision_and_versions() -> None:
    found = provenance(["scaml", "bench", "run", "a b"])
    assert found["command"] == "scaml bench run 'a b'"
    assert found["botorch"] == version("botorch")
    where = Path(scaml.__file__).parent
    try:
        git = ["git", "-C", str(where), "rev-parse", "--short", "HEAD"]
        revision = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        assert found["revision"] is None
    else:
        assert found["revision"] in (revision, f"{revision} with changes")


def test_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert provenance(["scaml"])["revision"] is None


def test_only_commands_that_ran_something_are_noted(tmp_path: Path) -> None:
    for number in range(3):
        run_study(
            tmp_path,
            [SMALL],
            [contestant("random")],
            1 + (number == 2),
            source={"command": str(number)},
        )
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert lines == [{"command": "0", "units": 1}, {"command": "2", "units": 1}]


def test_lines_are_added(tmp_path: Path) -> None:
    note(tmp_path, {"a": 1})
    note(tmp_path, {"b": None})
    assert (tmp_path / "history.jsonl").read_text() == '{"a": 1}\n{"b": null}\n'
