"""CPU and wall time of work, and medians of several pieces of work that take turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Seconds", "medians", "seconds_of"]


class Seconds(NamedTuple):
    """CPU time does not count the work of other processes on a busy machine; wall time does."""

    cpu: float
    wall: float


def seconds_of(work: Callable[[], Any]) -> Seconds:
    """The time that one call takes."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Seconds(time.process_time() - cpu, time.perf_counter() - wall)


def medians(*works: Callable[[], Any], repeats: int, warm: bool = True) -> list[Seconds]:
    """Median times of each; all of them take turns, so that a slow minute is slow for all.

    Args:
        works: What to do.
        repeats: Number of turns.
        warm: Whether to do the work once before, so that nobody pays for imports.
    """
    taken: list[list[Seconds]] = [[] for _ in works]
    for turn in range(-warm, repeats):
        for work, times in zip(works, taken, strict=True):
            seconds = seconds_of(work)
            if turn >= 0:
                times.append(seconds)
    return [Seconds(*np.median(times, axis=0).tolist()) for times in taken]
