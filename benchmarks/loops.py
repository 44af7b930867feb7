"""Ask-and-tell loops of several samplers on one objective, one trial of each in turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna

from benchmarks.evaluations import counting
from benchmarks.sampler_spaces import Space, objective, random_study
from benchmarks.timing import Seconds, seconds_of

__all__ = ["FIRST", "LAST", "RANGES", "Ask", "ask_and_tell", "summary"]

FIRST, LAST = 5, 60
RANGES = {"5-20": (5, 20), "20-40": (20, 40), "40-60": (40, 60), "all": (5, 60)}


@dataclass(frozen=True)
class Ask:
    """One suggestion, and the work behind it."""

    sampler: str
    seed: int
    done: int  # trials before it
    seconds: Seconds
    likelihood: int
    acquisition: int


def ask_and_tell(
    samplers: Mapping[str, optuna.samplers.BaseSampler],
    space: Space,
    shift: float,
    *,
    seed: int,
    last: int = LAST,
) -> tuple[list[Ask], dict[str, float]]:
    """All asks, and the best value that each sampler found.

    Every study begins with the same random trials. Afterwards each sampler sees what it asked for.
    """
    first = random_study(space, shift, FIRST, 10_000 + seed).trials
    studies = {name: optuna.create_study(sampler=sampler) for name, sampler in samplers.items()}
    for study in studies.values():
        study.add_trials(first)
    asks = []
    with counting() as counts:
        for done in range(FIRST, last):
            for name, study in studies.items():
                before = counts.likelihood, counts.acquisition
                asked: list[Any] = []

                def ask(study: optuna.Study = study, asked: list[Any] = asked) -> None:
                    trial = study.ask()
                    asked[:] = [trial, space(trial)]

                seconds = seconds_of(ask)
                work = counts.likelihood - before[0], counts.acquisition - before[1]
                asks.append(Ask(name, seed, done, seconds, *work))
                study.tell(asked[0], objective(asked[1], shift))
    return asks, {name: study.best_value for name, study in studies.items()}


def summary(asks: list[Ask], sampler: str, beside: str) -> dict[str, Any]:
    """Medians of a sampler over ranges of n, and shares of those of another sampler.

    The first ask of every loop is told apart: it fits the past.
    """
    found: dict[str, Any] = {"sampler": sampler}
    for name, (low, high) in RANGES.items():
        own, other = (
            [ask for ask in asks if ask.sampler == who and low <= ask.done < high and ask.done > FIRST]
            for who in (sampler, beside)
        )
        if not own:
            continue
        cpu, wall = np.median([ask.seconds for ask in own], axis=0).tolist()
        reference = np.median([ask.seconds for ask in other], axis=0).tolist()
        total = [sum(ask.seconds.cpu for ask in part) for part in (own, other)]
        found[name] = {
            "cpu_seconds": cpu,
            "wall_seconds": wall,
            "cpu_share": cpu / reference[0],
            "wall_share": wall / reference[1],
            "total_cpu_share": total[0] / total[1],
            "likelihoods": float(np.mean([ask.likelihood for ask in own])),
            "acquisitions": float(np.mean([ask.acquisition for ask in own])),
        }
    start = [ask.seconds for ask in asks if ask.sampler == sampler and ask.done == FIRST]
    found["first"] = dict(zip(("cpu_seconds", "wall_seconds"), np.median(start, axis=0), strict=True))
    return found
