"""`PastTask`: a finished task in its own parameters, before `spaces/matching.py` maps it to a space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

__all__ = ["MOST_TRIALS", "PastTask", "thinned"]

# Rows per past task: an exact GP of more points takes minutes and learns little more.
MOST_TRIALS = 300


@dataclass(frozen=True)
class PastTask:
    """A finished task in its own parameters. Larger y is better.

    Whoever reads a minimized objective flips its sign before it makes a `PastTask`.
    """

    name: str
    distributions: Mapping[str, BaseDistribution]
    params: Sequence[Mapping[str, Any]]
    y: Sequence[float]


def thinned(y: Sequence[float], *, most: int = MOST_TRIALS) -> list[int]:
    """The indices of the rows to keep of a task, in ascending order.

    All rows of a task with at most `most` of them. Of a longer task, half are its best rows and the
    other half are drawn at random from the rest, always with the same seed.

    Args:
        y: The values of all rows, larger is better.
        most: The largest number of rows to keep.
    """
    if len(y) <= most:
        return list(range(len(y)))
    order = np.argsort(-np.array(y), kind="stable")
    best, others = order[: most // 2], order[most // 2 :]
    drawn = np.random.default_rng(0).choice(others, most - len(best), replace=False)
    return sorted([*best.tolist(), *drawn.tolist()])
