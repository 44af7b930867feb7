"""Where results come from: every command that added some, with its revision and versions."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from shlex import join
from typing import Any

__all__ = ["note", "provenance"]

_FILE = "history.jsonl"
_PACKAGES = ("scaml", "torch", "botorch", "gpytorch", "numpy")


def provenance(command: Sequence[str]) -> dict[str, Any]:
    """The command, the revision of scaml and the versions of packages that make results.

    Call it before the work: somebody may edit the code meanwhile.

    Args:
        command: The words of the command.
    """
    source = Path(__file__).parents[1]
    revision = _git(source, "rev-parse", "--short", "HEAD")
    changed = _git(source, "status", "--porcelain", "--", ".")
    return {
        "command": join(command),
        "revision": f"{revision} with changes" if changed else revision,
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def note(folder: Path, entry: dict[str, Any]) -> None:
    """Add a line to the history of a folder of results."""
    with (folder / _FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def _git(folder: Path, *words: str) -> str | None:
    """Git's answer, or None if the package was installed and not checked out."""
    command = ["git", "-C", str(folder), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
