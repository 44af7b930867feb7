"""What a sampler knows about a running Optuna study: its observations as a task, and the prior."""

from __future__ import annotations

from dataclasses import dataclass

from optuna.study import Study
from optuna.trial import TrialState
from torch import Tensor

from scaml.integrations.optuna.past_studies import values_of
from scaml.integrations.optuna.reservation import intended
from scaml.methods.base import MetaPrior
from scaml.spaces.matching import Matching
from scaml.spaces.space import Space
from scaml.tasks.task import Task

__all__ = ["ObservedStudy", "observations"]


@dataclass(frozen=True, eq=False)
class ObservedStudy:
    """What a sampler knows about a study.

    Args:
        prior: The prior learned from the past, in the coordinates of the space.
        space: The parameters of the study that vary.
        task: The finished trials of the study, pruned ones with estimated values; larger y is better.
        matching: How the past was mapped to the space; None if the user gave the prior.
        pending: `k x d`, the points of the running trials.
    """

    prior: MetaPrior
    space: Space
    task: Task
    matching: Matching | None
    pending: Tensor


def observations(study: Study, space: Space) -> tuple[Task, set[int]]:
    """The usable trials of a study as a task (larger y is better), and the numbers of these trials.

    Pruned trials are among them, with the values that `values_of` estimates.
    """
    ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    values = values_of(ended, study.direction)
    # Reserved values replace missing parameters.
    points = {t.number: intended(t, space) for t in ended if t.number in values}
    rows = {number: point for number, point in points.items() if point is not None}
    if not rows:
        return Task.empty(space.d), set()
    X = space.encode_all(list(rows.values()))
    return Task(X, [values[number] for number in rows]), set(rows)
