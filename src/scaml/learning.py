"""From past tasks in their own parameters to a prior in a new space."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from scaml.data import MetaData
from scaml.fit_cache import meta_fit_cached
from scaml.matching import Matching, PastTask, match
from scaml.methods.base import MetaPrior, Method
from scaml.methods.gpbo import GPBO, GPBOPrior
from scaml.methods.scaml import ScaML
from scaml.space import Space

__all__ = ["default_method", "learn"]

# The paper's 3 spends most of a short search on corners that no past task has been to. A provisional
# choice, until the defaults are studied on all problems together.
_SQRT_BETA = 1.0


def default_method() -> Method:
    """ScaML-GP, with a bolder UCB than the paper's."""
    return ScaML(sqrt_beta=_SQRT_BETA)


def learn(
    past: Iterable[PastTask],
    space: Space,
    method: Method,
    *,
    fixed: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
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
    """
    tasks, matching = match(past, space, fixed=fixed)
    if not tasks:
        kernel = method.kernel if isinstance(method, ScaML | GPBO) else "se"
        return GPBOPrior(GPBO(kernel=kernel), space.d).in_space(space), matching
    meta = MetaData(tasks)
    if cache is None:
        prior = method.meta_fit(meta, seed=seed, n_jobs=n_jobs)
    else:
        prior = meta_fit_cached(method, meta, folder=cache, seed=seed, n_jobs=n_jobs)
    return prior.in_space(space), matching
