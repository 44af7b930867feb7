"""`make mutants`: apply every fault in a copy of the source and run the tests of its package.

    python -m tests.mutants [--jobs 2] [WORD]...

A fault is caught if a test fails. The file of tests of the faulty module runs first, then those of its
package. Prints a table, writes it to build/mutants.md, and ends with 1 if a fault survives. Words
select the faults whose file or description has one of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
LONGEST = 600  # seconds per run of tests


@dataclass(frozen=True)
class Outcome:
    """What the tests made of a fault."""

    fault: Fault
    caught_by: str  # a test's name; empty if the fault survived
    seconds: float


def main() -> int:
    """Run all faults and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="select faults by words of their file or description")
    parser.add_argument("--jobs", type=int, default=2, help="faults at once")
    arguments = parser.parse_args()
    chosen = [fault for fault in FAULTS if _selected(fault, arguments.words)]
    outcomes: dict[Fault, Outcome] = {}
    start = time.monotonic()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for done in as_completed([pool.submit(_try, fault) for fault in chosen]):
            outcome = done.result()
            outcomes[outcome.fault] = outcome
            verdict = outcome.caught_by or "SURVIVED"
            print(f"{len(outcomes)}/{len(chosen)} {outcome.fault}: {verdict}", flush=True)
    table = _table([outcomes[fault] for fault in chosen], time.monotonic() - start)
    print(f"\n{table}")
    report = ROOT / "build" / "mutants.md"
    report.parent.mkdir(exist_ok=True)
    report.write_text(table, encoding="utf-8")
    return int(any(not outcome.caught_by for outcome in outcomes.values()))


def _selected(fault: Fault, words: list[str]) -> bool:
    return not words or any(word in str(fault) for word in words)


def _try(fault: Fault) -> Outcome:
    """Apply a fault in a copy of the repository's code and look for a test that fails."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="scaml-mutant-") as name:
        copy = Path(name)
        for folder in ("src", "tests", "examples", "docs"):
            shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / file, copy / file)
        path = copy / "src" / "scaml" / fault.file
        path.write_text(fault.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        for tests in _tests(fault, copy):
            caught = _first_failure(copy, tests)
            if caught:
                return Outcome(fault, caught, time.monotonic() - start)
    return Outcome(fault, "", time.monotonic() - start)


def _tests(fault: Fault, copy: Path) -> Iterator[list[str]]:
    """The files of tests of the module, then all tests of its package."""
    module = Path(fault.file)
    mirrored = sorted((copy / "tests" / module.parent).glob(f"test_{module.stem}*.py"))
    if mirrored:
        yield [str(path.relative_to(copy)) for path in mirrored]
    if len(module.parts) > 1:
        yield [str(Path("tests") / module.parts[0])]


def _first_failure(copy: Path, tests: list[str]) -> str:
    """The first test that fails; empty if all pass."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        run = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"no end within {LONGEST} s of {' '.join(tests)}"
    if run.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    if found is None:  # pytest itself failed: nothing was tested
        raise RuntimeError(f"pytest ended with {run.returncode} in {tests}:\n{run.stdout}{run.stderr}")
    return found.group(1)


def _table(outcomes: list[Outcome], seconds: float) -> str:
    rows = [
        f"| {o.fault.file} | {o.fault.what} | {o.caught_by or '**survived**'} | {o.seconds:.0f} |"
        for o in outcomes
    ]
    caught = sum(bool(outcome.caught_by) for outcome in outcomes)
    head = ["| file | fault | caught by | seconds |", "|---|---|---|---|"]
    last = f"\n{caught} of {len(outcomes)} faults were caught, in {seconds / 60:.0f} minutes.\n"
    return "\n".join([*head, *rows, last])


if __name__ == "__main__":
    sys.exit(main())
