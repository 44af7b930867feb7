"""Every fault still applies to the source, and there are enough of them everywhere."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import scaml
from tests.mutants.faults import FAULTS, Fault

PACKAGE = Path(scaml.__file__).parent


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_changes_the_source_into_other_valid_source(fault: Fault) -> None:
    source = (PACKAGE / fault.file).read_text(encoding="utf-8")
    faulty = fault.applied(source)
    assert ast.dump(ast.parse(faulty)) != ast.dump(ast.parse(source))


def test_there_are_at_least_50_and_some_in_every_package() -> None:
    assert len(set(FAULTS)) == len(FAULTS) >= 50
    packages = Counter(Path(fault.file).parts[0] for fault in FAULTS)
    names = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert names <= set(packages)


def test_a_fault_that_no_longer_applies_is_refused() -> None:
    fault = Fault("a.py", "nothing", before="x", after="y")
    for source in ("z", "x x"):
        with pytest.raises(ValueError, match="not once"):
            fault.applied(source)
