"""What a sampler knows about a running Optuna study: its observations as a task, and the prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from scaml.integrations.optuna.past_studies import values_of
from scaml.integrations.optuna.reservation import intended
from scaml.methods.base import MetaPrior
from scaml.spaces.matching import Matching
from scaml.spaces.space import Space
from scaml.tasks.arrays import LARGEST_Y
from scaml.tasks.task import Task

__all__ = ["ObservedStudy", "observations"]


@dataclass(frozen=True, eq=False)
class ObservedStudy:
    """What a sampler knows about a study.

    Args:
        prior: The prior learned from the past, in the coordinates of the space.
        space: The parameters of the study that vary.
        task: The finished trials of the study; larger y is better.
        matching: How the past was mapped to the space; None if the user gave the prior.
        pending: `k x d`, the points of the running trials.
    """

    prior: MetaPrior
    space: Space
    task: Task
    matching: Matching | None
    pending: Tensor


def observations(study: Study, space: Space) -> tuple[Task, set[int]]:
    """The usable trials of a study as a task (larger y is better), and the numbers of these trials."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    rows = [(t, point) for t in done if (point := _observed(t, space)) is not None]
    if not rows:
        return Task.empty(space.d), set()
    X = space.encode_all([point for _, point in rows])
    task = Task(X, values_of([t for t, _ in rows], study.direction))
    return task, {t.number for t, _ in rows}


def _observed(trial: FrozenTrial, space: Space) -> dict[str, Any] | None:
    """The parameters of a trial with a usable value; reserved values replace missing parameters."""
    value = trial.value
    return intended(trial, space) if value is not None and abs(value) <= LARGEST_Y else None
