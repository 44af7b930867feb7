"""`PastTask`: a finished task in its own parameters, before it is brought to the space of a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

__all__ = ["MOST_TRIALS", "PastTask", "thinned"]

# Of one past task: an exact GP of more points costs minutes and teaches little more.
MOST_TRIALS = 300


@dataclass(frozen=True)
class PastTask:
    """A finished task in its own parameters. Larger y is better."""

    name: str
    distributions: Mapping[str, BaseDistribution]
    params: Sequence[Mapping[str, Any]]
    y: Sequence[float]


def thinned(y: Sequence[float], *, minimize: bool, most: int = MOST_TRIALS) -> list[int]:
    """The places of the values of a task that are kept: of a long one half are its best."""
    if len(y) <= most:
        return list(range(len(y)))
    values = np.array(y)
    order = np.argsort(values if minimize else -values, kind="stable")
    best, others = order[: most // 2], order[most // 2 :]
    drawn = np.random.default_rng(0).choice(others, most - len(best), replace=False)
    return sorted([*best.tolist(), *drawn.tolist()])
