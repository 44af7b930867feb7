"""Fixtures that read a CSV file of given contents."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.sheets.cases import Reader, Refuser, refusal, sheet_of


@pytest.fixture
def sheet(tmp_path: Path) -> Reader:
    return partial(sheet_of, tmp_path)


@pytest.fixture
def refused(tmp_path: Path) -> Refuser:
    return partial(refusal, tmp_path)
