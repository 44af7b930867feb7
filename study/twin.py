"""Is the one good past task found, and how soon?

In a family such as "one-good" one past task, the twin, resembles the new one, and all others are
unrelated. After every evaluation, a method is asked how probable it is that each past task matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from scaml.ask import choose
from scaml.bench.contestants import Contestant
from scaml.bench.problems import problem
from scaml.bench.safety import SAFETY
from scaml.bench.shared_fits import timed_meta_fit
from scaml.bench.single_run import SEEDS_PER_RUN
from scaml.common.checks import check_integer
from scaml.common.parallel import each
from scaml.errors import SettingError
from scaml.tasks.task import Task

__all__ = ["AFTER", "PROBABLE", "find_twins", "probabilities_of", "summary"]

_DIGITS = 4  # of probabilities in the file; more would be most of its size

PROBABLE = 0.5
"""A twin with at least this probability is found."""
AFTER = 20
"""The number of evaluations after which the most probable task should be the twin."""


def probabilities_of(model: Any, names: Sequence[str]) -> dict[str, float]:
    """How probable it is that each past task matters.

    Args:
        model: A model that explains itself: `model.explain().matters` maps names of past tasks to
            probabilities. For one with nothing but weights, the share of each in the sum of their
            absolute values stands in.
        names: The names of the past tasks, in the order of the weights.

    Raises:
        SettingError: If the model has neither an explanation nor one weight per task.
    """
    if hasattr(model, "explain"):
        matters = model.explain().matters
        return {name: float(matters[name]) for name in names}
    weights = getattr(model, "weights", None)
    if not isinstance(weights, Tensor) or weights.shape != (len(names),):
        raise SettingError(
            f"A {type(model).__name__} has no weight for every past task; give a method that has, such "
            "as scaml."
        )
    sizes = weights.detach().abs()
    shares = sizes / sizes.sum().clamp_min(torch.finfo(sizes.dtype).tiny)
    return dict(zip(names, shares.tolist(), strict=True))


def find_twins(
    problems: Sequence[str],
    contestants: Sequence[Contestant],
    runs: int,
    evaluations: int,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Ask methods after every evaluation which past tasks matter.

    Args:
        problems: The names of safety families with one good past task.
        contestants: The methods.
        runs: The number of runs, numbered from 0. They are those of `scaml bench run`.
        evaluations: The number of evaluations of a run.
        n_jobs: Processes to use, -1 for one per core. The result does not depend on it.
        progress: Called with the number of finished runs and the number of all runs.

    Returns:
        One row per problem, method, run and number of `evaluations`, from 0: the place of the `twin`
        among the past tasks; that of the task that is more probable than all others, `first`, or -1 if
        there is none; and all `probabilities`.
    """
    check_integer(runs, "The number of runs", least=1)
    check_integer(evaluations, "The number of evaluations", least=1)
    for name in problems:
        problem(name)
        if name not in SAFETY or SAFETY[name].good != 1:
            raise SettingError(f"{name!r} has no single good past task; give one-good or one-good-99.")
    for contestant in contestants:
        if contestant.method is None or not contestant.method.uses_past:
            raise SettingError(f"{contestant.name!r} has no past tasks; give another method.")
    cases = [_Case(*key, evaluations) for key in product(problems, contestants, range(runs))]
    report = progress or (lambda done, total: None)
    report(0, len(cases))
    rows: list[dict[str, Any]] = []
    for done, found in enumerate(each(_asked, cases, n_jobs), start=1):
        rows += found
        report(done, len(cases))
    order = ["problem", "method", "run", "evaluations"]
    return pd.DataFrame(rows).sort_values(order, ignore_index=True)


@dataclass(frozen=True)
class _Case:
    problem: str
    contestant: Contestant
    run: int
    evaluations: int


def _asked(case: _Case) -> list[dict[str, Any]]:
    assert case.contestant.method is not None
    where = problem(case.problem)
    instance = where.draw(case.run)
    noise = where.noise_of(case.run, case.evaluations, instance.noise)
    names = instance.meta.names
    (good,) = SAFETY[case.problem].good_tasks(len(names), case.run)
    prior, _ = timed_meta_fit(case.contestant.method, instance.meta, case.run)
    task, nothing = Task.empty(where.d), torch.empty(0, where.d, dtype=torch.float64)
    rows: list[dict[str, Any]] = []
    for n in range(case.evaluations + 1):
        seed = SEEDS_PER_RUN * case.run + n
        model = prior.condition(task, seed=seed)
        probabilities = list(probabilities_of(model, names).values())
        rows.append(
            {
                "problem": case.problem,
                "method": case.contestant.name,
                "run": case.run,
                "evaluations": n,
                "twin": names.index(good),
                "first": _first(probabilities),
                "probabilities": [round(p, _DIGITS) for p in probabilities],
            }
        )
        if n < case.evaluations:
            x = choose(prior, model, task, 1, nothing, seed)
            task = task.append(x, instance.function(x).item() + noise[n])
    return rows


def _first(probabilities: Sequence[float]) -> int:
    """The place of the largest number; -1 if several are the largest."""
    most = max(probabilities)
    return probabilities.index(most) if probabilities.count(most) == 1 else -1


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """How soon the twin is found, and how often: one row per problem and method.

    Args:
        frame: The result of `find_twins`.

    Returns:
        Columns `problem`, `method` and `runs`; `until`, the median number of evaluations until the twin
        has a probability of at least one half, infinite for a run in which it never has; and `first`,
        the share of runs in which the twin is the most probable task after 20 evaluations, or at the
        end of shorter runs.
    """
    rows: list[dict[str, Any]] = []
    for (name, method), group in frame.groupby(["problem", "method"], sort=False):
        parts = [run for _, run in group.groupby("run")]
        row = {"problem": name, "method": method, "runs": len(parts)}
        first = sum(map(_is_first, parts)) / len(parts)
        rows.append(row | {"until": median(map(_evaluations_until, parts)), "first": first})
    return pd.DataFrame(rows)


def _evaluations_until(run: pd.DataFrame) -> float:
    for n, twin, probabilities in zip(
        run["evaluations"], run["twin"], run["probabilities"], strict=True
    ):
        if probabilities[twin] >= PROBABLE:
            return float(n)
    return math.inf


def _is_first(run: pd.DataFrame) -> bool:
    last = run[run["evaluations"] <= AFTER].iloc[-1]
    return bool(last["first"] == last["twin"])
