"""Where the experiments of a command come from."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from scaml import SettingError
from scaml.cli.source import SourceOptions
from scaml.methods import GPBO, RGPE
from tests.sampler_cases import bowl

pytestmark = pytest.mark.usefixtures("in_a_folder", "quiet")


def ignore(what: str, done: int, total: int | None) -> None:
    """No progress."""


def test_a_table_gives_a_subject_and_its_sheet(capsys: pytest.CaptureFixture[str]) -> None:
    subject, sheet = SourceOptions(table=Path("runs.csv"), task="C", n=2).learn(ignore)
    assert sheet is not None
    assert sheet.columns == ("task", "temperature", "solvent", "yield")
    assert subject.suggestions is not None
    assert len(subject.suggestions) == 2
    assert "Task 'C' has no rows yet." in capsys.readouterr().err


@pytest.mark.parametrize("silent", ["quiet", "as_json"])
def test_a_silent_command_prints_no_notes(silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    SourceOptions(table=Path("runs.csv"), task="C", **{silent: True}).learn(ignore)  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "")


def test_a_storage_gives_a_subject_without_a_sheet(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/hpo.db"
    for i in range(2):
        study = optuna.create_study(study_name=f"bowl-{i}", storage=address)
        study.sampler = optuna.samplers.RandomSampler(seed=i)
        study.optimize(bowl(0.1 * i), n_trials=6)
    stages: list[str] = []
    subject, sheet = SourceOptions(storage=address, study="new", past="bowl-*").learn(
        lambda what, done, total: stages.append(what)
    )
    assert sheet is None
    assert subject.prior.names == ("bowl-0", "bowl-1")
    assert stages == ["Reading the storage", "Learning from the past studies"]


def test_a_method_by_name_or_from_a_file() -> None:
    options = {"table": Path("runs.csv"), "task": "C", "quiet": True}
    subject, _ = SourceOptions(method="gpbo-nei", **options).learn(ignore)  # type: ignore[arg-type]
    assert subject.prior.method == GPBO(acquisition="lognei")
    Path("mine.py").write_text("from scaml.methods import RGPE\nclass Mine(RGPE):\n    pass\n")
    subject, _ = SourceOptions(method="mine.py:Mine", **options).learn(ignore)  # type: ignore[arg-type]
    assert isinstance(subject.prior.method, RGPE)
    assert type(subject.prior.method).__name__ == "Mine"
    with pytest.raises(SettingError, match=r"The file 'none\.py' of method"):
        SourceOptions(method="none.py:Mine", **options).learn(ignore)  # type: ignore[arg-type]
