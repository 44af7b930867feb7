"""From past tasks in their own parameters to a prior in a new space."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from scaml.common.parallel import each
from scaml.methods.base import MetaPrior, Method, joined
from scaml.methods.gpbo import GPBO, GPBOPrior
from scaml.methods.scaml import ScaML
from scaml.methods.shared.modular import ModularMethod, hyperparameters_of
from scaml.priors.fit_cache import meta_fit_cached
from scaml.spaces.matching import Matching, match
from scaml.spaces.space import Space
from scaml.tasks.meta_data import MetaData
from scaml.tasks.past_task import PastTask
from scaml.tasks.task import Task

__all__ = ["learn"]

# Entries of the kernel matrices of the tasks between two calls of `progress`: half a second or so.
_AT_ONCE = 2**17


def learn(
    past: Iterable[PastTask],
    space: Space,
    method: Method,
    *,
    fixed: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[MetaPrior, Matching]:
    """A prior that knows the space, and what was made of every past task.

    Args:
        past: The past tasks, larger y better.
        space: The new space.
        method: The meta-learning method. Where no past task can be used, a plain GP takes its place,
            whose prior has no names.
        fixed: Values at which parameters that only past tasks have are held.
        cache: A folder that keeps meta-fits across processes.
        seed: Of the meta-fit.
        n_jobs: Processes of the meta-fit.
        progress: Told how many past tasks are learned, and out of how many. Not told by methods that
            learn them all at once, nor with a cache.
    """
    tasks, matching = match(past, space, fixed=fixed)
    if not tasks:
        kernel = method.kernel if isinstance(method, ScaML | GPBO) else "se"
        plain = GPBO(kernel=kernel, sqrt_beta=method.sqrt_beta)
        return GPBOPrior(plain, space.d).in_space(space), matching
    meta = MetaData(tasks)
    prior: MetaPrior
    if cache is not None:
        prior = meta_fit_cached(method, meta, folder=cache, seed=seed, n_jobs=n_jobs)
    elif progress is not None and isinstance(method, ModularMethod):
        prior = _fit_in_parts(method, meta, seed, n_jobs, progress)
    else:
        prior = method.meta_fit(meta, seed=seed, n_jobs=n_jobs)
    return prior.in_space(space), matching


def _fit_in_parts(
    method: ModularMethod[Any],
    meta: MetaData,
    seed: int,
    n_jobs: int,
    progress: Callable[[int, int], None],
) -> MetaPrior:
    """`method.meta_fit`, to the last bit, a few tasks at a time."""
    parts: list[list[Task]] = []
    entries = _AT_ONCE
    for name, task in zip(meta.names, meta, strict=True):
        entries += task.n**2
        if entries > _AT_ONCE:
            parts.append([])
            entries = task.n**2
        parts[-1].append(task.called(name))
    states: dict[int, dict[str, Tensor]] = {}
    progress(0, len(meta))
    for place, state in each(partial(_state, method, seed), enumerate(parts), n_jobs):
        states[place] = state
        progress(sum(len(parts[i]) for i in states), len(meta))
    prior: MetaPrior = method.restore(meta, joined([states[i] for i in range(len(parts))]))
    return prior


def _state(
    method: ModularMethod[Any], seed: int, part: tuple[int, list[Task]]
) -> tuple[int, dict[str, Tensor]]:
    place, tasks = part
    return place, hyperparameters_of(method.task_gps(MetaData(tasks), seed=seed))
