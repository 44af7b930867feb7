"""A small table of experiments, which several tests of commands use."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

COLUMNS = ["task", "temperature", "solvent", "yield"]


def experiments() -> list[list[object]]:
    """The header and two past tasks, A and B, of eight experiments each."""
    generator = np.random.default_rng(0)
    found: list[list[object]] = [list(COLUMNS)]
    for task, best in (("A", 230.0), ("B", 215.0)):
        for _ in range(8):
            T, ethanol = float(generator.uniform(150, 300)), bool(generator.integers(2))
            value = 70 - ((T - best) / 30) ** 2 + 5 * ethanol
            found.append([task, round(T, 1), "ethanol" if ethanol else "water", round(value, 3)])
    return found


def write(path: Path, rows: list[list[object]]) -> None:
    """Write rows as CSV."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
