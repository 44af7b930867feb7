"""Time of the first import, beyond that of torch, and of `scaml suggest` on a small table."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Seconds

__all__ = ["imports", "suggest_from_the_shell"]

_BEYOND_TORCH = """
import time, torch
cpu, wall = time.process_time(), time.perf_counter()
import scaml; scaml.ScaMLSampler
print(time.process_time() - cpu, time.perf_counter() - wall)
"""
_TABLE = Path(__file__).resolve().parents[2] / "examples" / "reactions.csv"
_SUGGEST = f"from scaml.cli import main; main(['suggest', {str(_TABLE)!r}, '--task', 'new', '-q'])"


def _run(code: str) -> str:
    """What a new process prints; compiled files are kept, as for an installed package."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.check_output(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, text=True
    )


def imports(repeats: int) -> dict[str, Any]:
    """`import scaml; scaml.ScaMLSampler` after `import torch`, in new processes."""
    _run(_BEYOND_TORCH)  # compiles
    taken = [[float(word) for word in _run(_BEYOND_TORCH).split()] for _ in range(repeats)]
    cpu, wall = np.median(taken, axis=0).tolist()
    return {
        "what": "import scaml; scaml.ScaMLSampler, beyond import torch",
        "scaml_cpu_seconds": cpu,
        "scaml_wall_seconds": wall,
    }


def suggest_from_the_shell(repeats: int) -> dict[str, Any]:
    """A whole process, and what of it `import torch` takes."""
    _run(_SUGGEST)
    taken: dict[str, list[Seconds]] = {_SUGGEST: [], "import torch": []}
    for _ in range(repeats):
        for code, seconds in taken.items():
            seconds.append(_process(code))
    (cpu, wall), (torch_cpu, torch_wall) = (np.median(s, axis=0).tolist() for s in taken.values())
    return {
        "what": "scaml suggest examples/reactions.csv --task new",
        "scaml_cpu_seconds": cpu,
        "scaml_wall_seconds": wall,
        "import_torch_cpu_seconds": torch_cpu,
        "import_torch_wall_seconds": torch_wall,
    }


def _process(code: str) -> Seconds:
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Seconds(cpu, time.perf_counter() - wall)
