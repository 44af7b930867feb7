"""`learn`: from past tasks in their own parameters to a prior in a new space."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from scaml.common.progress import StepProgress
from scaml.methods.base import MetaPrior, Method
from scaml.methods.gpbo import GPBO, GPBOPrior
from scaml.priors.fit_cache import FolderCache
from scaml.priors.meta_fit import meta_fit
from scaml.spaces.matching import Matching, match
from scaml.spaces.space import Space
from scaml.tasks.meta_data import MetaData
from scaml.tasks.past_task import PastTask

__all__ = ["learn"]


def learn(
    past: Iterable[PastTask],
    space: Space,
    method: Method,
    *,
    fixed: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: StepProgress | None = None,
) -> tuple[MetaPrior, Matching]:
    """Match past tasks to a space and fit a method to them.

    Args:
        past: The past tasks.
        space: The new space.
        method: The meta-learning method. If no past task can be used, the prior is that of a plain GP,
            which has no names.
        fixed: Values at which parameters that only past tasks have are held.
        cache: A folder that keeps meta-fits across processes.
        seed: Of the meta-fit.
        n_jobs: Processes of the meta-fit.
        progress: Called with the number of tasks fitted so far and with M, if the method fits them one
            by one.

    Returns:
        A prior that knows the space, and what was matched, held and ignored of every past task.
    """
    tasks, matching = match(past, space, fixed=fixed)
    if not tasks:
        kernel: Any = getattr(method, "kernel", "se")
        # Without a past that could decide, the kernel of Optuna's GPSampler.
        plain = GPBO(
            kernel="matern52" if kernel == "past" else kernel,
            acquisition=method.acquisition,
            sqrt_beta=method.sqrt_beta,
        )
        return GPBOPrior(plain, space.d).in_space(space), matching
    kept = None if cache is None else FolderCache(cache)
    meta = MetaData(tasks)
    prior = meta_fit(method, meta, seed=seed, n_jobs=n_jobs, cache=kept, progress=progress)
    return prior.in_space(space), matching
