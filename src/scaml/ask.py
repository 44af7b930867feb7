"""`suggest`: the pure ask step that everything else shares."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction, OneShotAcquisitionFunction
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.models.model import Model
from botorch.utils.sampling import manual_seed
from torch import Tensor
from torch.quasirandom import SobolEngine

from scaml.common.checks import check_integer, check_seed
from scaml.common.parallel import one_thread
from scaml.errors import SettingError, SpaceError
from scaml.gp.posterior import mean_and_variance
from scaml.gp.units import standardize
from scaml.methods.base import MetaPrior
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.protocols import AverageModel, ExactModel
from scaml.search.cube import evaluate, maximize_on_cube
from scaml.search.fine_step import fine_step
from scaml.search.mixed_space import all_points, maximize_mixed
from scaml.search.protocols import Explores, HasBestPoints, OfMoments
from scaml.search.ucb import UpperConfidenceBound
from scaml.tasks.arrays import check_points
from scaml.tasks.task import Task

__all__ = ["choose", "choose_new", "suggest"]

# A space without continuous parameters and with at most so many points is a table of them.
_MOST_ROWS = 4096
_SAME_ROW = 1e-12
# A point this close to another one in every coordinate counts as repeated. An overconfident model would
# repeat it for the rest of a study, so √β doubles until the search leaves it.
_REPEATED = 1e-3
_SAME_POINT = 1e-9  # closer than this, even an objective without noise has nothing new to tell
_DOUBLINGS = 10
_LEAST_SQRT_BETA = 0.1
_ANYWHERE = 256  # points to choose from if doubling does not help


def suggest(
    prior: MetaPrior,
    task: Task,
    *,
    q: int = 1,
    candidates: Any = None,
    pending: Any = None,
    seed: int = 0,
    acquisition: Callable[[Model], AcquisitionFunction] | None = None,
) -> Tensor:
    """The next q points to evaluate.

    The points account for each other and for the pending ones: each is chosen as if the values at those
    before it were the ones that the model expects. If the prior knows its space, integers, steps and
    categories are at values that they can take.

    Args:
        prior: What was learned from the past.
        task: The new task so far; may be empty.
        q: Number of points.
        candidates: `n x d` table to choose rows from; None for the whole space. An evaluated row is
            chosen again only after all rows have been evaluated.
        pending: `k x d` points that are being evaluated now.
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
    busy = torch.empty(0, prior.d, dtype=torch.float64)
    if pending is not None and len(pending):
        busy = check_points(pending, "The pending points", d=prior.d)
    model = prior.condition(task, seed=seed)
    return choose(prior, model, task, q, busy, seed, table=table, acquisition=acquisition)


def choose(
    prior: MetaPrior,
    model: Model,
    task: Task,
    q: int,
    pending: Tensor,
    seed: int,
    *,
    table: Tensor | None = None,
    acquisition: Callable[[Model], AcquisitionFunction] | None = None,
) -> Tensor:
    """What `suggest` does once the prior is conditioned on the task."""
    make = acquisition or prior.acquisition
    table, taken = _rows(prior) if table is None else table, pending
    with one_thread(), manual_seed(seed):
        if len(pending):
            model = _believed(make(model), model, pending)
        for i in range(q):
            function = make(model)
            if len(taken) and not isinstance(function, AnalyticAcquisitionFunction):
                function.set_X_pending(taken)
            x = _maximizer(function, prior, task, taken, table, seed + i)
            taken = torch.cat([taken, x[None]])
            if i + 1 < q:
                model = _believed(function, model, x[None])
    return taken[len(pending) :]


def choose_new(
    prior: MetaPrior, model: Model, task: Task, q: int, pending: Tensor, seed: int
) -> Tensor:
    """`choose`, but where it repeats a point of the task or a pending one, look elsewhere.

    That is beside the best point if the model still expects to gain something there (`fine_step`), or
    else where a bolder UCB has its maximum.
    """
    taken = pending
    for i in range(q):
        x = choose(prior, model, task, 1, taken, seed + i)
        if _repeats(x, torch.cat([task.X, taken])):
            finer = _finer(prior, model, task, taken, seed + i)
            x = _bolder(prior, model, task, taken, seed + i, x) if finer is None else finer
        taken = torch.cat([taken, x])
    return taken[len(pending) :]


def _finer(prior: MetaPrior, model: Model, task: Task, taken: Tensor, seed: int) -> Tensor | None:
    """A point, `1 x d`, beside the best one that is worth an evaluation; None if there is none."""
    fixed = torch.zeros(prior.d, dtype=torch.bool)
    if prior.space is not None:
        for block in prior.space.blocks:
            fixed[list(block.columns)] = block.kind != "number"
    with one_thread():
        if task.n and not isinstance(model, ExactModel):  # this close, the task's own data decide
            model = fit_plain_gp(task, standardize(task.y), kernel="se", seed=seed)
        x = fine_step(model, _REPEATED, fixed, seed=seed)
    if x is None or _repeats(x, taken):
        return None
    if prior.space is not None:  # a range with many small steps is searched as if it had none
        x = prior.space.encode(prior.space.decode(x))
    return None if bool(((task.X - x).abs().amax(-1) < _SAME_POINT).any()) else x[None]


def _bolder(prior: MetaPrior, model: Model, task: Task, taken: Tensor, seed: int, x: Tensor) -> Tensor:
    """Where a bolder UCB has its maximum, roughly, `1 x d`; x itself if that does not help."""
    own, known = prior.acquisition(model), torch.cat([task.X, taken])
    if not isinstance(own, Explores):
        return x
    sqrt_beta, table = max(own.exploration, _LEAST_SQRT_BETA), _rows(prior)
    with one_thread(), manual_seed(seed):
        believed = _believed(own, model, taken) if len(taken) else model
        for _ in range(_DOUBLINGS):
            sqrt_beta *= 2.0
            bolder = UpperConfidenceBound(believed, sqrt_beta=sqrt_beta)
            found = _maximizer(bolder, prior, task, taken, table, seed, rough=True)
            if not _repeats(found, known):
                return found[None]
    if prior.space is None or prior.space.continuous:
        # The model sees only noise, and a corner stays the most uncertain point: go anywhere else.
        points = SobolEngine(prior.d, scramble=True, seed=seed).draw(_ANYWHERE, dtype=torch.float64)
        points = points[[not _repeats(point, known) for point in points]]
        if len(points):
            make = partial(UpperConfidenceBound, sqrt_beta=sqrt_beta)
            return choose(prior, model, task, 1, taken, seed, table=points, acquisition=make)
    return found[None]


def _rows(prior: MetaPrior) -> Tensor | None:
    """All points of the prior's space, if they are few."""
    return None if prior.space is None else all_points(prior.space.blocks, _MOST_ROWS)


def _repeats(x: Tensor, known: Tensor) -> bool:
    return bool(((known - x).abs().amax(-1) < _REPEATED).any())


def _believed(function: AcquisitionFunction, model: Model, X: Tensor) -> Model:
    """The model that has observed its own mean at X, for functions that cannot take pending points.

    Such observations change no mean, so X may be added at once or row by row.
    """
    if not isinstance(function, AnalyticAcquisitionFunction):
        return model
    if isinstance(model, AverageModel):
        return model.believing(X)
    with torch.no_grad():
        return model.condition_on_observations(X, mean_and_variance(model.posterior(X))[0])


def _maximizer(
    function: AcquisitionFunction,
    prior: MetaPrior,
    task: Task,
    taken: Tensor,
    table: Tensor | None,
    seed: int,
    *,
    rough: bool = False,
) -> Tensor:
    if table is not None:
        return _best_row(function, prior, table, torch.cat([task.X, taken]), seed)
    if prior.space is None or prior.space.continuous:
        return maximize_on_cube(
            function,
            prior.d,
            seed=seed,
            avoid=taken if len(taken) else None,
            around=_promising(function),
            kept=_kept(function, prior),
            rough=rough,
        )
    _check_not_one_shot(function, "a space with integers, steps or categories")
    blocks, around = prior.space.blocks, _promising(function)
    kept = _kept(function, prior)
    return maximize_mixed(function, blocks, seed=seed, avoid=taken, around=around, kept=kept)


def _promising(function: AcquisitionFunction) -> Tensor | None:
    """`k x d` points beside which the function may have its maximum; None if it names none."""
    return function.best_points if isinstance(function, HasBestPoints) else None


def _table(candidates: Any, d: int) -> Tensor:
    table = check_points(candidates, "The table of candidates", d=d)
    if not len(table):
        raise SpaceError("The table of candidates has no row; give at least one.")
    return table


def _best_row(
    function: AcquisitionFunction, prior: MetaPrior, table: Tensor, used: Tensor, seed: int
) -> Tensor:
    """The best row among those used least often; ties are broken at random."""
    _check_not_one_shot(function, "a table of candidates")
    times = torch.zeros(len(table), dtype=torch.long)
    for x in used:
        times += (table - x).abs().amax(-1) <= _SAME_ROW
    rows = (times == times.min()).nonzero().flatten()
    values = _on_table(function, prior, table)
    values = evaluate(function, table[rows]) if values is None else values[rows]
    # Without data all rows may tie, and the first row of a sorted table is a corner.
    best = rows[values == values.max()]
    return table[best[torch.randint(len(best), (), generator=torch.Generator().manual_seed(seed))]]


def _kept(function: AcquisitionFunction, prior: MetaPrior) -> tuple[Tensor, Tensor] | None:
    """Raw points at which the prior keeps posteriors, and the values there."""
    raw = prior.raw_points()
    values = None if raw is None else _on_table(function, prior, raw)
    return None if raw is None or values is None else (raw, values)


def _on_table(function: AcquisitionFunction, prior: MetaPrior, table: Tensor) -> Tensor | None:
    """Values at the rows of a table from the posteriors that the prior keeps there, if any."""
    if not (isinstance(function, OfMoments) and function.by_moments):
        return None
    with torch.no_grad():
        moments = prior.on_table(function.model, table)
        return None if moments is None else function.of_moments(*moments)


def _check_not_one_shot(function: AcquisitionFunction, where: str) -> None:
    if isinstance(function, OneShotAcquisitionFunction):
        raise SettingError(
            f"{type(function).__name__} is a one-shot acquisition function, which has no value for a "
            f"single row; choose another for {where}."
        )
