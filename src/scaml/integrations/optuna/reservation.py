"""Which points other workers of a study are at, and how two workers do not take the same one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from scaml.search.cube import DISTINCT
from scaml.spaces.space import Space

__all__ = ["LONGEST_ATTRIBUTE", "intended", "is_ours", "reserve", "reserved"]

LONGEST_ATTRIBUTE = 2045  # what Optuna's relational storages take
_RESERVED = "scaml:params"
_PATIENCE = 1.0  # seconds to wait for another worker to make up its mind


def reserve(study: Study, trial: FrozenTrial, params: Mapping[str, Any]) -> None:
    """Announce what a trial will evaluate, before Optuna knows it."""
    try:
        text = json.dumps(params)
    except TypeError:  # choices that are no plain values, which only a storage in memory takes
        return
    if len(text) <= LONGEST_ATTRIBUTE:
        study._storage.set_trial_system_attr(trial._trial_id, _RESERVED, text)


def _fits(params: Mapping[str, Any], space: Space) -> bool:
    """Whether the space can take these values."""
    try:
        return all(d._contains(d.to_internal_repr(params[n])) for n, d in space.distributions.items())
    except (ValueError, TypeError):  # a choice that there is not, or a value of another kind
        return False


def _others(study: Study, trial: FrozenTrial, known: set[int]) -> list[FrozenTrial]:
    """Trials that are running, ended without a value that can be used, or after `known` was read."""
    return [
        t
        for t in study.get_trials(deepcopy=False)
        if t.state != TrialState.WAITING and t.number not in known and t.number != trial.number
    ]


def intended(trial: FrozenTrial, space: Space) -> dict[str, Any] | None:
    """What a trial evaluates, or said it would."""
    params = dict(trial.params)
    if not set(space.names) <= set(params):
        params = json.loads(trial.system_attrs.get(_RESERVED, "{}")) | params
    if not set(space.names) <= set(params) or not _fits(params, space):
        return None
    return {name: params[name] for name in space.names}


def reserved(study: Study, trial: FrozenTrial, space: Space, known: set[int]) -> list[dict[str, Any]]:
    """The distinct points that other workers are at."""
    points: list[dict[str, Any]] = []
    for other in _others(study, trial, known):
        params = intended(other, space)
        if params is not None and params not in points:
            points.append(params)
    return points


def is_ours(study: Study, trial: FrozenTrial, space: Space, known: set[int], x: Tensor) -> bool:
    """Whether no other worker is at this point: everybody announces a point before looking around.

    Of two that meet, the trial of the lower number stays, unless the other has not seen it and has
    already begun.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        same = [
            t
            for t in _others(study, trial, known)
            if (params := intended(t, space)) is not None
            and float((space.encode(params) - x).abs().max()) < DISTINCT
        ]
        if not same:
            return True
        begun = any(set(space.names) <= set(t.params) for t in same)
        if begun or min(t.number for t in same) < trial.number or time.monotonic() > deadline:
            return False
        time.sleep(0.02)
