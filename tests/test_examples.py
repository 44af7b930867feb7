"""The examples run in a small setting, say what they promise, and write only where they are told."""

from __future__ import annotations

import csv
import re
import shlex
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from scaml.cli import main as scaml

FOLDER = Path(__file__).parents[1] / "examples"
NUMBER = r"-?\d+\.\d+"


def load(name: str) -> Any:
    """An example as a module, found again by pickle."""
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


svm, reactions, botorch_loop, custom = map(
    load, ("svm_optuna", "reactions", "botorch_loop", "custom_method")
)
TestMine = custom.TestMine  # the suite, for pytest to collect


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: None) -> None:
    monkeypatch.chdir(tmp_path)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def run(example: Any, words: str) -> None:
    example.main(words.split())


def test_old_studies_are_made_once_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = "--past-trials 5 --trials 2 --runs 1 --rows 100 --storage sqlite:///svm.db"
    run(svm, small)
    first = capsys.readouterr().out
    assert len(re.findall(r"svm-\w+ +5 trials, best error", first)) == 4
    (median,) = (line for line in first.splitlines() if line.startswith("  median"))
    tpe, ours = (list(map(float, re.findall(NUMBER, part))) for part in median.split("ScaML"))
    assert len(tpe) == len(ours) == 1
    assert 0 <= ours[0] < 40  # breast cancer: 37 % of the rows are of the smaller class
    assert re.search(r"Weights of the old studies: (svm-\w+ \d|all 0)", first)
    assert set(files(tmp_path)) == {"svm.db"}
    run(svm, small)
    assert capsys.readouterr().out == first
    suggest, report = re.findall(r"^  (scaml .*)", first, re.M)
    assert scaml([*shlex.split(suggest)[1:], "-q"]) == 0
    assert "gamma" in capsys.readouterr().out
    assert shlex.split(report)[2:] == shlex.split(suggest)[2:]


def test_without_a_storage_nothing_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(svm, "--past-trials 3 --trials 1 --runs 1 --rows 100 --new iris")
    shown = capsys.readouterr().out
    assert "New data set iris" in shown
    assert "svm-iris" not in shown
    assert not files(tmp_path)


def test_the_spreadsheet_is_what_the_script_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made.csv"
    monkeypatch.setattr(reactions, "TABLE", made)
    reactions.main(["--write"])
    assert made.read_bytes() == (FOLDER / "reactions.csv").read_bytes()
    with made.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    counts = Counter(row["task"] for row in rows)
    assert len(counts) == 6
    assert all(15 <= n <= 20 for n in counts.values())
    assert all(0 <= int(row["yield"]) <= 100 for row in rows)


def test_chemistry() -> None:
    """Too cold nothing happens, too hot nothing is left; a lower barrier gives more."""
    rng = np.random.default_rng(0)

    def value(task: str, temperature: int, time: float) -> int:
        row = {"task": task, "temperature": temperature, "time": time}
        found = reactions.measured({**row, "equivalents": 1.5, "catalyst": "Pd(dppf)Cl2"}, rng)
        return int(found["yield"])

    assert value("bromobenzene", 40, 1) < 10
    assert value("bromobenzene", 120, 24) < value("bromobenzene", 90, 6) - 20
    assert value("4-iodoanisole", 70, 4) > value("4-chloroanisole", 70, 4) + 20


def test_a_campaign_in_the_lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(FOLDER)
    run(reactions, "--rounds 2")
    shown = capsys.readouterr().out
    rounds = [list(map(int, re.findall(r"(\d+) %", line))) for line in shown.splitlines()[3:]]
    assert len(rounds) == 2
    first, last = rounds
    assert all(late >= early for early, late in zip(first, last, strict=True))
    ours, _, chance = last
    assert ours > chance
    assert files(FOLDER) == before
    assert not files(tmp_path)


def test_the_loop_of_botorch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(botorch_loop, "--past 3 --new 1 --rounds 2")
    shown = capsys.readouterr().out
    (mean,) = (line for line in shown.splitlines() if line.startswith("  mean"))
    ours, plain = (list(map(float, re.findall(NUMBER, part))) for part in mean.split("SingleTaskGP"))
    assert len(ours) == len(plain) == 2
    assert ours[0] >= ours[1] >= 0
    assert ours[1] < plain[0]
    assert re.search(r"Weights behind new-0: (past-\d \d|all 0)", shown)
    assert not files(tmp_path)


def test_rank_correlation() -> None:
    generator = torch.Generator().manual_seed(0)
    means, y = torch.randn(3, 9, generator=generator), torch.randn(9, generator=generator)
    found = custom.rank_correlation(means, y)
    assert found.tolist() == pytest.approx([kendalltau(row, y).statistic for row in means])
    assert custom.rank_correlation(means[:, :1], y[:1]).tolist() == [0, 0, 0]


def test_past_tasks_in_the_right_order_get_the_weight() -> None:
    suite = custom.TestMine()
    prior = custom.Mine(sharpness=50.0).meta_fit(suite.past(), seed=0)
    old = prior.meta[1]
    model = prior.condition(type(old)(old.X, old.y))
    assert model.weights.argmax() == 1
    assert float(model.weights.sum()) + model.own_weight == pytest.approx(1.0)


def test_a_method_of_ones_own_beside_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(custom, "--runs 1 --evaluations 2")
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown[2:]] == ["scaml", "gpbo", "Mine"]
    for line in shown[2:]:
        first, last = map(float, line.split()[1:])
        assert first >= last >= 0
    assert not files(tmp_path)


def test_a_method_of_ones_own_in_a_study(capsys: pytest.CaptureFixture[str]) -> None:
    mine = f"{FOLDER / 'custom_method.py'}:Mine"
    words = f"--methods scaml {mine} --runs 1 --meta-tasks 2 --points 8 --evaluations 2 --quiet"
    assert scaml(["bench", "run", "branin", *words.split()]) == 0
    assert "2 runs" in capsys.readouterr().out
    assert scaml(["bench", "table", "runs", "--format", "csv"]) == 0
    assert "custom_method.py:Mine" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["svm_optuna", "reactions", "botorch_loop", "custom_method"])
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        sys.modules[name].main(["--help"])
    assert end.value.code == 0
    assert f"python examples/{name}.py" in " ".join(capsys.readouterr().out.split())
