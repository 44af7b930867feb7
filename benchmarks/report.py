"""Where a benchmark's figures come from, and the file that keeps both."""

from __future__ import annotations

import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "botorch", "gpytorch", "optuna", "scikit-learn")


def provenance(command: str, *packages: str) -> dict[str, Any]:
    """The command, the revision and the versions; ask before the work, not after it.

    Args:
        command: What was run.
        *packages: Further packages whose versions matter.
    """
    found = [
        subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()
        for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "src", "benchmarks"))
    ]
    changed = [line for line in found[1].splitlines() if not line.endswith(".json")]
    return {
        "command": command,
        "revision": found[0] + (" with changes" if changed else ""),
        "python": platform.python_version(),
        **{package: version(package) for package in (*PACKAGES, *packages)},
    }


def write(path: Path, source: dict[str, Any], **parts: Any) -> None:
    """Keep provenance and results together."""
    path.write_text(json.dumps({**source, **parts}, indent=1) + "\n", encoding="utf-8")
