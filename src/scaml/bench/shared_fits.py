"""`RecentFits`: meta-fits that several methods of one run share, made once and timed for each of them.

RGPE, SGPT, RM-GP-UCB and all settings of ScaML-GP start from one exact GP per past task. In a study
they follow each other on the same meta-data, so a process keeps the fits of the last tasks.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from scaml.methods.base import MetaPrior, Method
from scaml.methods.shared.modular import ModularMethod
from scaml.priors.meta_fit import State, meta_fit
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["RecentFits", "timed_meta_fit"]

_KEPT = 1024  # tasks: several kernels and normalizations of one run's past


class _Fit(NamedTuple):
    state: State
    seconds: float


class RecentFits:
    """Keeps the last fits in memory, by what the fit of a task depends on, whatever the method.

    `saved` is the processor time that the found fits once took.
    """

    def __init__(self) -> None:
        self._fits: OrderedDict[bytes, _Fit] = OrderedDict()
        self._since = time.process_time()
        self.saved = 0.0

    def find(self, method: Method, tasks: Sequence[Task], seed: int) -> State | None:
        """The state of these tasks, if a method that fits them alike has asked before."""
        self._since = time.process_time()
        key = _key(method, tasks, seed)
        fit = None if key is None else self._fits.get(key)
        if fit is None or key is None:
            return None
        self._fits.move_to_end(key)
        self.saved += fit.seconds
        return fit.state

    def keep(self, method: Method, tasks: Sequence[Task], seed: int, state: State) -> None:
        """Keep a state with the processor time since the last call."""
        now = time.process_time()
        key = _key(method, tasks, seed)
        if key is not None:
            self._fits[key] = _Fit(state, now - self._since)
            while len(self._fits) > _KEPT:
                self._fits.popitem(last=False)
        self._since = now


_RECENT = RecentFits()


def timed_meta_fit(method: Method, meta: MetaData, seed: int) -> tuple[MetaPrior, float]:
    """A prior and the processor time of its meta-fit, as if no other method had fitted these tasks."""
    start, saved = time.process_time(), _RECENT.saved
    prior = meta_fit(method, meta, seed=seed, cache=_RECENT if _shares(method) else None)
    return prior, time.process_time() - start + _RECENT.saved - saved


def _shares(method: Method) -> bool:
    """Whether the fit is one GP per task and nothing else."""
    kind, usual = type(method), ModularMethod
    return (
        issubclass(kind, usual)
        and kind.meta_fit is usual.meta_fit
        and kind.fit_state is usual.fit_state
    )


def _key(method: Method, tasks: Sequence[Task], seed: int) -> bytes | None:
    """Equal for methods that fit these tasks alike; None for methods that share nothing."""
    if not isinstance(method, ModularMethod):
        return None
    seen = method.seen(MetaData(tasks)).seen
    return repr((method.kernel, seed, [task.digest() for task in seen])).encode()
