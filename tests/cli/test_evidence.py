"""`scaml bench ablate` and `scaml bench calibrate`, as somebody types them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from scaml.cli import main


def test_ablate_runs_tabulates_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "choices"
    words = ["bench", "ablate", "svm", "related", "--methods", "sqrt-beta=1", "first=mean"]
    words += ["--evaluations", "2", "--runs", "1", "--out", str(out), "-q"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "Ratio of cumulative regret" in shown.out
    for name in ("scaml", "scaml-ucb", "scaml-paper", "gpbo", "sqrt-beta=1", "first=mean", "safety"):
        assert name in shown.out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in found["ratios"]][:3] == ["scaml", "scaml-ucb", "scaml-paper"]
    assert found["ratios"][0]["tables"] == 1.0
    assert found["ratios"][0]["tables error"] is None  # of a single run
    assert {row["family"] for row in found["without"]} == {"svm", "safety"}
    assert len(list(out.glob("*/all.parquet"))) == 2


def test_calibrate_tells_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "coverage.csv"
    words = ["bench", "calibrate", "svm", "--methods", "gpbo", "--runs", "1", "-q"]
    assert main([*words, "--out", str(out)]) == 0
    assert "Coverage after 20 observations" in capsys.readouterr().out
    assert len(pd.read_csv(out)) == 9
    assert main([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ablate", "svn"], "There is no problem 'svn'; did you mean 'svm'?"),
        (["ablate", "svm", "--methods", "kernel=matern"], "did you mean 'kernel=matern52'?"),
        (["ablate", "svm", "--runs", "0"], "The number of runs is 0"),
        (["calibrate", "branin"], "'branin' is no table"),
        (["calibrate", "svm", "--methods", "random"], "'random' predicts nothing"),
        (["calibrate", "svm", "--out", "nowhere/c.csv"], "'nowhere/c.csv', in no folder"),
    ],
)
def test_mistakes_get_one_sentence_and_leave_nothing(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
