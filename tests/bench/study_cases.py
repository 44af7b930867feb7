"""Small studies for tests: methods in a file outside the package, and results without any run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scaml.bench.settings import Setting

SMALL = Setting("branin", 2, 4, 3)

MINE = """
from dataclasses import dataclass

from scaml import MetaData
from scaml.methods import GPBO, MetaPrior, Method


@dataclass(frozen=True)
class Mine(Method):
    strength: float = 1.0

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        return GPBO().meta_fit(meta, seed=seed)


@dataclass(frozen=True)
class Needy(Mine):
    demand: float = None

    def __post_init__(self):
        if self.demand is None:
            raise TypeError("demand is missing")


@dataclass(frozen=True)
class Broken(Mine):
    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        if seed == 1:
            raise ZeroDivisionError("of mine")
        return GPBO().meta_fit(meta, seed=seed)
"""


def mine(folder: Path) -> Path:
    """A file with methods of a user's own."""
    path = folder / "mine.py"
    path.write_text(MINE)
    return path


def rows(setting: Setting, method: str, run: int, *, settings: str = "M()") -> list[dict[str, Any]]:
    """The rows of a run."""
    return [
        {
            "problem": setting.problem,
            "meta_tasks": setting.meta_tasks,
            "points": setting.points,
            "method": method,
            "settings": settings,
            "run": run,
            "step": step,
            "x": [0.25, step / 8],
            "y": -1.5 * step,
            "value": -1.25 * step,
            "regret": 1.0 / (step + run),
            "span": None,
            "seconds": 0.5,
            "meta_fit_seconds": 0.25,
            "weights": [0.0, 0.5] if method == "scaml" else None,
        }
        for step in range(1, setting.evaluations + 1)
    ]
