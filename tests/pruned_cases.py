"""Pruned trials, studies that have some, and the rule for their values the long way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import median
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import MedianPruner
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from tests.sampler_cases import UNIT, Objective, study_of

X: dict[str, BaseDistribution] = {"x": UNIT}
MINIMIZE, MAXIMIZE = StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE
COMPLETE, PRUNED = TrialState.COMPLETE, TrialState.PRUNED
NAN, INF = math.nan, math.inf
Reports = Mapping[int, float]


def trial_of(value: float | None, reports: Reports, x: float = 0.5) -> FrozenTrial:
    """A complete trial, or a pruned one where the value is None."""
    if value is None:  # as Optuna has it: the last report is the value, unless it is NaN
        last = reports[max(reports)] if reports else NAN
        value, state = None if math.isnan(last) else last, PRUNED
    else:
        state = COMPLETE
    return create_trial(
        state=state,
        value=value,
        params={"x": x},
        distributions=X,
        intermediate_values=dict(reports),
    )


def numbered(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    for number, trial in enumerate(trials):
        trial.number = number
    return list(trials)


def study_with(trials: Sequence[FrozenTrial], **settings: Any) -> optuna.Study:
    study = optuna.create_study(**settings)
    study.add_trials(trials)
    return study


def long_way(trials: Sequence[FrozenTrial], direction: StudyDirection) -> dict[int, float]:
    """The final values of the pruned trials in the units of the study, by the words of the rule."""
    maximize = direction == MAXIMIZE

    def badness(value: float) -> float:
        return INF if math.isnan(value) else -value if maximize else value

    found = {}
    for trial in trials:
        if trial.state != PRUNED:
            continue
        for step in sorted(trial.intermediate_values, reverse=True):
            value = trial.intermediate_values[step]
            peers = [t for t in trials if t.state == COMPLETE and step in t.intermediate_values]
            if len(peers) < 2:
                continue
            best_first = sorted((t.value for t in peers if t.value is not None), reverse=maximize)
            bad = [badness(t.intermediate_values[step]) for t in peers]
            better = sum(b < badness(value) for b in bad)
            tied = sum(b == badness(value) for b in bad)
            if math.isnan(value) or better == len(peers):
                found[trial.number] = best_first[-1]
            else:
                found[trial.number] = quantile(best_first, better + Fraction(tied, 2))
                middle, limit = median(best_first), min if maximize else max
                found[trial.number] = limit(found[trial.number], middle)
            break
    return found


def quantile(values: Sequence[float], before: Fraction) -> float:
    """Interpolated between the values, the i-th of which has i - 1/2 before it, counted from 1."""
    position = min(max(before - Fraction(1, 2), Fraction(0)), Fraction(len(values) - 1))
    low = math.floor(position)
    high = min(low + 1, len(values) - 1)
    share = float(position - low)
    return (1.0 - share) * values[low] + share * values[high]


def curve(noise: float = 0.0) -> Objective:
    """A loss that is reported at three steps, lowest at x = 0.7."""

    def objective(trial: optuna.Trial) -> float:
        value = (trial.suggest_float("x", 0.0, 1.0) - 0.7) ** 2
        for step in range(3):
            trial.report(value + noise * math.sin(40 * value + step) + 1.0 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    return objective


def pruned_past(n: int = 20) -> optuna.Study:
    return study_of(curve(0.05), n, pruner=MedianPruner(n_startup_trials=4, n_warmup_steps=0))


def number_of(study: optuna.Study, state: TrialState) -> int:
    return sum(trial.state == state for trial in study.trials)
