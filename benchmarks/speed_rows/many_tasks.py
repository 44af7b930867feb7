"""A step with a thousand past tasks: its time and the largest memory of its process."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.evaluations import counting
from benchmarks.speed_rows import floor
from benchmarks.speed_rows.steps import Growing, observed_task
from benchmarks.timing import medians
from scaml import ScaML, load, suggest
from scaml.bench import FAMILIES

__all__ = ["many_tasks"]

SEED = 0
_FAMILY, _POINTS, _OBSERVED = "hartmann6", 64, 40


def many_tasks(tasks: int, repeats: int) -> dict[str, Any]:
    """Steps in a new process with the saved prior: a process never gives its largest memory back."""
    meta = FAMILIES[_FAMILY].meta_data(tasks, _POINTS, SEED)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prior.safetensors"
        ScaML().meta_fit(meta, seed=SEED).save(path)
        command = [sys.executable, "-m", __name__, str(path), str(repeats)]
        found = json.loads(subprocess.check_output(command, text=True).splitlines()[-1])
    shape = tasks, _POINTS, meta.d
    bare = floor.step(shape, _OBSERVED, found["likelihoods"], found["acquisitions"], repeats=1)
    return {
        "what": f"one step, {tasks} x {_POINTS} x {meta.d}D past tasks, n_t = {_OBSERVED}",
        **found,
        "arithmetic_cpu_seconds": bare.cpu,
        "times_arithmetic": found["scaml_cpu_seconds"] / bare.cpu,
    }


def _measured(path: str, repeats: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    prior = load(path)
    loaded = _largest_memory()
    asked = Growing(observed_task(_FAMILY, _OBSERVED), lambda task: suggest(prior, task, seed=SEED))
    ours = medians(asked, repeats=repeats, warm=False)[0]
    largest = _largest_memory()
    with counting() as counts:
        asked()
    return {
        "scaml_cpu_seconds": ours.cpu,
        "scaml_wall_seconds": ours.wall,
        "largest_gigabytes": largest,
        "largest_gigabytes_before_the_step": loaded,
        "likelihoods": counts.likelihood,
        "acquisitions": counts.acquisition,
    }


def _largest_memory() -> float:
    """The most that this process ever had, in 10^9 bytes; Linux counts in kilobytes, macOS in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]))))
