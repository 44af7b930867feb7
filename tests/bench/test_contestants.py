"""Methods by name: all of ours, a user's own, and what is said to a wrong name."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from scaml import SettingError, methods
from scaml.bench.contestants import COMPARED, CONTESTANTS, RANDOM, contestant
from scaml.methods import ScaML
from tests.bench.study_cases import mine


def test_every_method_has_its_name() -> None:
    classes = {type(contestant(name).method).__name__ for name in CONTESTANTS if name != RANDOM}
    assert classes == {name for name in methods.__all__ if name not in ("Method", "MetaPrior")}
    on_request = {RANDOM, "scaml-shared", "scaml-explained", "gpbo-nei", "gpbo-nei-matern52"}
    assert set(COMPARED) == set(CONTESTANTS) - on_request


def test_both_settings_of_scaml() -> None:
    assert contestant("scaml").method == ScaML()
    assert contestant("scaml-ucb").method == ScaML("se", "clipped", "shared", "ucb")
    assert contestant("scaml-paper").method == ScaML.paper()


def test_a_method_of_a_file(tmp_path: Path) -> None:
    path = mine(tmp_path)
    found = contestant(f"{path}:Mine")
    assert found.settings.startswith("Mine(strength=1.0), file ")
    assert pickle.loads(pickle.dumps(found)) == found
    assert contestant(f"{path}:Mine").method == found.method


def test_a_method_of_a_file_in_another_process(tmp_path: Path) -> None:
    """It runs elsewhere, and after the file was removed."""
    path = mine(tmp_path)
    found = contestant(f"{path}:Mine")
    packed = tmp_path / "packed"
    packed.write_bytes(pickle.dumps(found))
    path.unlink()
    code = "import pickle, sys; print(repr(pickle.load(open(sys.argv[1], 'rb')).method))"
    command = [sys.executable, "-W", "ignore", "-c", code, str(packed)]
    other = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert other.stdout.strip() == "Mine(strength=1.0)"


def test_a_changed_file_is_another_method(tmp_path: Path) -> None:
    path = mine(tmp_path)
    before = contestant(f"{path}:Mine")
    path.write_text(path.read_text().replace("1.0", "2.0"))
    after = contestant(f"{path}:Mine")
    assert repr(after.method) == "Mine(strength=2.0)"
    assert after.settings.split()[-1] != before.settings.split()[-1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gbpo", r"There is no method 'gbpo'; did you mean 'gpbo'\? .* as in ./mine.py:Mine\.$"),
        ("mine", r"There is no method 'mine'; did you mean"),
        ("kernel=matern52", r"There is no method 'kernel=matern52'; did you mean"),
        ("nowhere.py:Mine", r"The file 'nowhere.py' of method .* \(No such file or directory\); give"),
        (
            "{mine}:Yours",
            r"has no method class 'Yours', but Mine, Needy, Broken; a method is a subclass",
        ),
        ("{mine}:dataclass", r"has no method class 'dataclass'"),
        ("{mine}:Needy", r"cannot be made without arguments \(demand is missing\); give its hyper"),
        ("{bad}:Mine", r"does not run \(ZeroDivisionError: division by zero\); correct it"),
        ("{empty}:Mine", r"has no method class 'Mine', nor another; a method"),
    ],
)
def test_what_is_not_a_method(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "bad.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    paths = {"mine": mine(tmp_path), "bad": tmp_path / "bad.py", "empty": tmp_path / "empty.py"}
    with pytest.raises(SettingError, match=message):
        contestant(name.format(**paths))
