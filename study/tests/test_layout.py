"""The study stays outside scaml, and its files and functions stay small."""

from __future__ import annotations

from pathlib import Path

import pytest

import scaml
import study
from tests.test_architecture import LONGEST_FILE, long_functions

MODULES = sorted(Path(study.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_files_and_functions_stay_small(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= LONGEST_FILE
    if "tests" not in path.parts:
        assert not long_functions(source)


def test_scaml_knows_nothing_of_the_study() -> None:
    for path in Path(scaml.__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert "from study" not in source, path
        assert "import study" not in source, path
