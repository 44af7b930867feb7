"""Which modules of scaml a user's first call imports, and which of these it runs.

    python -m benchmarks.loaded_modules [CHECKOUT]

Each case is in a process of its own that imports scaml from the checkout (this one by default): the
name `scaml.ScaMLSampler`, `scaml suggest examples/reactions.csv --task new`, and one trial of an Optuna
study with `ScaMLSampler`.
A module counts as run if one of its functions is called, except while modules are being imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

_HERE = Path(__file__).resolve()
# Packages that no case needs. Importing one takes 0.02 to 0.4 s.
_FOREIGN = (
    "matplotlib",
    "pandas",
    "plotly",
    "scipy.cluster",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
    "sympy",
)


def main() -> int:
    """Measure all cases and print what was imported and what was run."""
    checkout = Path(sys.argv[1] if len(sys.argv) > 1 else _HERE.parents[1]).resolve()
    for name, case in CASES.items():
        found = _measure(checkout, name)
        idle = [module for module in found["loaded"] if module not in found["run"]]
        print(case.__doc__)
        print(f"  imported: {len(found['loaded'])}, run: {len(found['run'])}")
        print(f"  run: {' '.join(found['run'])}")
        print(f"  imported, not run: {' '.join(idle)}")
        print(f"  of {', '.join(_FOREIGN)} imported: {' '.join(found['foreign']) or 'none'}")
    return 0


def _measure(checkout: Path, name: str) -> dict[str, list[str]]:
    """One case in a new process."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": str(checkout / "src")}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "modules.json"
        command = [sys.executable, str(_HERE), "--worker", name, str(checkout), str(out)]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, list[str]] = json.loads(out.read_text())
    return found


def _worker(name: str, checkout: Path, out: Path) -> None:
    called: set[str] = set()
    importing = 0  # modules whose code is being executed

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal importing
        if frame.f_code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not importing:
            called.add(frame.f_globals.get("__name__", ""))

    CASES[name](checkout, note)
    import scaml

    assert Path(scaml.__file__).is_relative_to(checkout), scaml.__file__
    loaded = sorted(module for module in sys.modules if module.split(".")[0] == "scaml")
    run = [module for module in loaded if module in called]
    foreign = [package for package in _FOREIGN if package in sys.modules]
    out.write_text(json.dumps({"loaded": loaded, "run": run, "foreign": foreign}))


def _observe(work: Callable[[], Any], note: Callable[..., None]) -> None:
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _suggest(checkout: Path, note: Callable[..., None]) -> None:
    """`scaml suggest examples/reactions.csv --task new`."""

    def work() -> None:
        from scaml.cli import main

        assert main(["suggest", str(checkout / "examples/reactions.csv"), "--task", "new"]) == 0

    _observe(work, note)


def _sampler(checkout: Path, note: Callable[..., None]) -> None:
    """One trial of a study with `ScaMLSampler`."""
    import optuna

    del checkout
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", 0.0, 9.0) - 3.0) ** 2 + trial.suggest_float("y", 0.0, 1.0)

    past = [optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=s)) for s in range(3)]
    for study in past:
        study.optimize(objective, n_trials=12)

    def work() -> None:
        from scaml import ScaMLSampler

        optuna.create_study(sampler=ScaMLSampler(past, seed=0)).optimize(objective, n_trials=1)

    _observe(work, note)


def _import(checkout: Path, note: Callable[..., None]) -> None:
    """`scaml.ScaMLSampler`."""
    del checkout

    def work() -> None:
        import scaml

        assert scaml.ScaMLSampler is not None

    _observe(work, note)


CASES: dict[str, Callable[[Path, Callable[..., None]], None]] = {
    "import": _import,
    "suggest": _suggest,
    "sampler": _sampler,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        _worker(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())
