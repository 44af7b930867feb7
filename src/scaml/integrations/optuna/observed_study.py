"""What is known of an Optuna study: its observations as a task, and what the past says about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from scaml.integrations.optuna.reservation import intended
from scaml.methods.base import MetaPrior
from scaml.spaces.matching import Matching
from scaml.spaces.space import Space
from scaml.tasks.arrays import LARGEST_Y
from scaml.tasks.task import Task

__all__ = ["Known", "observations"]


@dataclass(frozen=True, eq=False)
class Known:
    """What a sampler knows of a study.

    Args:
        prior: What was learned from the past, in the coordinates of the space.
        space: The study's parameters that vary.
        task: Its finished trials, y so that larger is better.
        matching: What was matched, held and ignored; None for a prior that was given.
        pending: `k x d`, the trials that are running.
    """

    prior: MetaPrior
    space: Space
    task: Task
    matching: Matching | None
    pending: Tensor


def observations(study: Study, space: Space) -> tuple[Task, set[int]]:
    """The usable trials of a study as a task, larger y better, and their numbers."""
    sign = 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    rows = [(t, point) for t in done if (point := _observed(t, space)) is not None]
    if not rows:
        return Task.empty(space.d), set()
    X = space.encode_all([point for _, point in rows])
    task = Task(X, [sign * float(t.value or 0.0) for t, _ in rows])
    return task, {t.number for t, _ in rows}


def _observed(trial: FrozenTrial, space: Space) -> dict[str, Any] | None:
    """Where a trial with a usable value was; an unused parameter is where it was meant to be."""
    value = trial.value
    return intended(trial, space) if value is not None and abs(value) <= LARGEST_Y else None
