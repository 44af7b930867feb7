"""What the tests of sheets share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaml.errors import ScaMLError
from scaml.sheets import Sheet, read

__all__ = ["RUNS", "Reader", "Refuser", "noted"]

# Two past tasks of two parameters.
RUNS = "task,temperature,alloy,yield\na,20,x,1\na,30.5,y,2\nb,40,x,3\nb,90,y,4\n"

Reader = Callable[..., Sheet]
Refuser = Callable[..., str]


def noted(sheet: Sheet, *words: str) -> bool:
    """Whether one note has all the words."""
    return any(all(word in note for word in words) for note in sheet.notes)


def sheet_of(folder: Path, data: str | bytes, **settings: Any) -> Sheet:
    """What is read from a CSV file of these contents."""
    path = folder / "runs.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    sheet = read(path, **settings)
    assert sorted(folder.iterdir()) == [path]  # nothing is written by reading
    assert all(note.endswith(".") and "\n" not in note for note in sheet.notes)
    return sheet


def refusal(folder: Path, error: type[ScaMLError], data: str | bytes, **settings: Any) -> str:
    """The one sentence by which a CSV file of these contents is refused."""
    with pytest.raises(error) as caught:
        sheet_of(folder, data, **settings)
    message = str(caught.value)
    assert type(caught.value) is error
    assert message.endswith(".")
    assert "\n" not in message
    assert ". " not in message.replace(str(folder), "")
    assert len(message) < 400
    return message
