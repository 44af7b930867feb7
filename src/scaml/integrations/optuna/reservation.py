"""Parallel workers of a study reserve the points that they evaluate, so that no two take the same."""

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

LONGEST_ATTRIBUTE = 2045  # the longest that Optuna's relational storages take
_RESERVED = "scaml:params"
_PATIENCE = 1.0  # seconds to wait until another worker has decided


def reserve(study: Study, trial: FrozenTrial, params: Mapping[str, Any]) -> None:
    """Store the parameters that a trial will evaluate, before Optuna stores them itself."""
    try:
        text = json.dumps(params)
    except TypeError:  # choices that JSON cannot represent, which only a storage in memory takes
        return
    if len(text) <= LONGEST_ATTRIBUTE:
        study._storage.set_trial_system_attr(trial._trial_id, _RESERVED, text)


def _fits(params: Mapping[str, Any], space: Space) -> bool:
    """Whether the values are valid in the space."""
    try:
        return all(d._contains(d.to_internal_repr(params[n])) for n, d in space.distributions.items())
    except (ValueError, TypeError):  # an unknown choice, or a value of another type
        return False


def _others(study: Study, trial: FrozenTrial, known: set[int]) -> list[FrozenTrial]:
    """The other trials that are not among the observations `known`.

    They are running, ended without a usable value, or ended after `known` was read.
    """
    return [
        t
        for t in study.get_trials(deepcopy=False)
        if t.state != TrialState.WAITING and t.number not in known and t.number != trial.number
    ]


def intended(trial: FrozenTrial, space: Space) -> dict[str, Any] | None:
    """The parameters that a trial evaluates or has reserved; None if the space cannot take them."""
    params = dict(trial.params)
    if not set(space.names) <= set(params):
        params = json.loads(trial.system_attrs.get(_RESERVED, "{}")) | params
    if not set(space.names) <= set(params) or not _fits(params, space):
        return None
    return {name: params[name] for name in space.names}


def reserved(study: Study, trial: FrozenTrial, space: Space, known: set[int]) -> list[dict[str, Any]]:
    """The distinct points that other workers evaluate or have reserved."""
    points: list[dict[str, Any]] = []
    for other in _others(study, trial, known):
        params = intended(other, space)
        if params is not None and params not in points:
            points.append(params)
    return points


def is_ours(study: Study, trial: FrozenTrial, space: Space, known: set[int], x: Tensor) -> bool:
    """Whether no other worker has this point. Call `reserve` first, so that the others can see it.

    If two workers have reserved the same point, the trial with the lower number keeps it: it waits
    until the other has chosen another point. It gives the point up if the other has already begun to
    evaluate it, or does not move away in time.
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
