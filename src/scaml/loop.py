"""`suggest`: the pure ask step that everything else shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction, OneShotAcquisitionFunction
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.models.model import Model
from botorch.utils.sampling import manual_seed
from torch import Tensor

from scaml.acquisition import evaluate, maximize_on_cube
from scaml.data import Task, check_integer, check_points
from scaml.errors import SettingError, SpaceError
from scaml.methods.base import MetaPrior, check_seed
from scaml.parallel import one_thread

__all__ = ["suggest"]


def suggest(
    prior: MetaPrior,
    task: Task,
    *,
    q: int = 1,
    candidates: Any = None,
    seed: int = 0,
    acquisition: Callable[[Model], AcquisitionFunction] | None = None,
) -> Tensor:
    """The next q points to evaluate.

    Points of one call account for each other: each is chosen as if the ones before it had come out
    as the model expects.

    Args:
        prior: What was learned from the past.
        task: The new task so far; may be empty.
        q: Number of points.
        candidates: `n x d` table to choose rows of; None for the whole unit cube. A row that the
            task has already evaluated is chosen again only when all are.
        seed: Decides every random draw. Same arguments, same answer.
        acquisition: Makes a BoTorch acquisition function of the model; the prior's own by default.

    Returns:
        `q x d`, float64.
    """
    if not isinstance(prior, MetaPrior):
        raise SettingError(
            f"The prior is a {type(prior).__name__}; give what meta_fit returns, as in "
            "suggest(ScaML().meta_fit(meta), task)."
        )
    q = check_integer(q, "q", least=1)
    seed = check_seed(seed)
    table = None if candidates is None else _table(candidates, prior.d)
    make = acquisition or prior.acquisition
    model = prior.condition(task, seed=seed)
    chosen = torch.empty(0, prior.d, dtype=torch.float64)
    with one_thread(), manual_seed(seed):
        for i in range(q):
            function = make(model)
            if i and not isinstance(function, AnalyticAcquisitionFunction):
                function.set_X_pending(chosen)
            if table is None:
                x = maximize_on_cube(function, prior.d, seed=seed + i, avoid=chosen if i else None)
            else:
                x = _best_row(function, table, torch.cat([task.X, chosen]))
            chosen = torch.cat([chosen, x[None]])
            if isinstance(function, AnalyticAcquisitionFunction) and i + 1 < q:
                with torch.no_grad():
                    believed = model.posterior(x[None]).mean
                    model = model.condition_on_observations(x[None], believed)
    return chosen


def _table(candidates: Any, d: int) -> Tensor:
    table = check_points(candidates, "The table of candidates", d=d)
    if not len(table):
        raise SpaceError("The table of candidates has no row; give at least one.")
    return table


def _best_row(function: AcquisitionFunction, table: Tensor, used: Tensor) -> Tensor:
    """The best row among those used least often."""
    if isinstance(function, OneShotAcquisitionFunction):
        raise SettingError(
            f"{type(function).__name__} is a one-shot acquisition function, which has no value for a "
            "single row; choose another for a table of candidates."
        )
    times = torch.zeros(len(table), dtype=torch.long)
    for x in used:
        times += (table == x).all(-1)
    rows = (times == times.min()).nonzero().flatten()
    return table[rows[evaluate(function, table[rows]).argmax()]]
