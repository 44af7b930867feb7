from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cases import experiments, write


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with runs.csv, where relative paths lead; no terminal, which some CI services fake."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    write(tmp_path / "runs.csv", experiments())
