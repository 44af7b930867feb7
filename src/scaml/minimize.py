"""Many small bound-constrained smooth problems minimized in lock step.

A projected L-BFGS (two-metric projection: variables that sit at a bound and are pushed against it
are held, the others take a quasi-Newton step that is clipped to the box) with every vector
operation batched over the problems, so that the solver costs microseconds an evaluation where one
L-BFGS-B call per problem costs tens. Problems that are finished leave the batch.

Problems may compete: those of one group (the starts of one fit) seek the same minimum, and only
the group's best counts. A start leaves early once it is so close to a better one that both will
end in the same place, or once its own quadratic model says that it can no longer catch up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

__all__ = ["Minimum", "Objective", "minimize"]

Objective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Maps points, `b x p`, and the problems they belong to, `b`, to values, `b`, and slopes, `b x p`."""

_MEMORY = 20  # pairs that the quasi-Newton model remembers, at most two a variable
_ARMIJO = 1e-4
_LONGEST_STEP = 8.0
_FIRST_STEP = 1.0
_SHORTEST_STEP = 1e-8
_SETTLED = 6  # steps before a start's own model is trusted
_CATCH_UP = 100.0  # a start may still win if so many predicted decreases reach the leader


@dataclass(frozen=True)
class Minimum:
    """The best point of every group."""

    x: Tensor  # groups x p
    value: Tensor  # groups; infinite if no start of the group could be evaluated
    evaluations: int  # objective values computed, over all problems


@dataclass(frozen=True)
class _State:
    """The b problems still running."""

    problem: Tensor  # b, places in the original batch
    x: Tensor  # b x p
    value: Tensor  # b
    slope: Tensor  # b x p
    S: Tensor  # b x memory x p, steps, newest last, zero where empty
    Y: Tensor  # b x memory x p, changes of slope
    direction: Tensor  # b x p
    length: Tensor  # b, share of the direction that is tried next
    taken: Tensor  # b, number of steps taken

    def keep(self, chosen: Tensor) -> _State:
        return _State(**{f.name: getattr(self, f.name)[chosen] for f in fields(self)})


def minimize(
    objective: Objective,
    x0: Tensor,
    lower: Tensor,
    upper: Tensor,
    group: Tensor,
    *,
    same_basin: float,
    tolerance: float = 1e-9,
    max_rounds: int = 300,
) -> Minimum:
    """Minimize `objective` from every row of `x0` inside the box, best of each group.

    Args:
        objective: Values and slopes of a batch; a value that is not finite is a wall.
        x0: `problems x p` starts.
        lower: p lower bounds, may be -inf.
        upper: p upper bounds, may be inf.
        group: The group of every problem, 0 to groups - 1.
        same_basin: A start this close to its group's leader in every coordinate ends where the
            leader ends.
        tolerance: A problem is solved when neither the last step nor the model's next
            one gains more than this.
        max_rounds: Evaluations a problem may use.

    Returns:
        Best point and value of every group.
    """
    problems, p = x0.shape
    groups = int(group.max()) + 1
    best = torch.full((groups,), torch.inf, dtype=x0.dtype)
    best_x = torch.zeros(groups, p, dtype=x0.dtype)
    every = torch.arange(problems)
    x0 = x0.clamp(lower, upper)
    value, slope = objective(x0, every)
    evaluations = problems
    memory = torch.zeros(problems, min(_MEMORY, 2 * p), p, dtype=x0.dtype)
    state = _State(
        every, x0, value, slope, memory, memory, -slope, torch.ones_like(value), torch.zeros_like(every)
    )
    state = state.keep(_finite(value, slope))
    state = replace(state, direction=_direction(state, lower, upper))
    for _ in range(max_rounds):
        _record(state, group, best, best_x)
        if not len(state.problem):
            break
        x = (state.x + state.length[:, None] * state.direction).clamp(lower, upper)
        value, slope = objective(x, state.problem)
        evaluations += len(value)
        state, done = _advance(state, x, value, slope, lower, upper, tolerance)
        _record(state, group, best, best_x)
        mine = group[state.problem]
        done |= _hopeless(state, best[mine], best_x[mine], same_basin)
        if done.any():
            state = state.keep(~done)
    return Minimum(best_x, best, evaluations)


def _finite(value: Tensor, slope: Tensor) -> Tensor:
    return value.isfinite() & slope.isfinite().all(-1)


def _record(state: _State, group: Tensor, best: Tensor, best_x: Tensor) -> None:
    """Update every group's leader, in place."""
    if not len(state.problem):
        return
    mine = group[state.problem]
    before = best.clone()
    best.scatter_reduce_(0, mine, state.value, "amin")
    leads = (state.value == best[mine]) & (state.value < before[mine])
    best_x[mine[leads]] = state.x[leads]


def _advance(
    state: _State,
    x: Tensor,
    value: Tensor,
    slope: Tensor,
    lower: Tensor,
    upper: Tensor,
    tolerance: float,
) -> tuple[_State, Tensor]:
    """Take the steps that are good enough, shorten the others; say who is done."""
    s, y = x - state.x, slope - state.slope
    promised = (state.slope * s).sum(-1)
    gain = state.value - value
    good = _finite(value, slope) & (gain >= -_ARMIJO * promised)
    # A step that failed is shortened by the minimum of the parabola through what is known.
    curvature = -gain - promised
    shorten = (
        torch.where(curvature > 0, -0.5 * promised / curvature, 0.25).nan_to_num(0.25).clamp(0.1, 0.5)
    )
    length = torch.where(good, 1.0, state.length * shorten)
    column = good[:, None]
    bends = good & ((s * y).sum(-1) > 1e-10 * y.square().sum(-1))
    tall = bends[:, None, None]
    S = torch.where(tall, torch.cat([state.S[:, 1:], s[:, None]], dim=1), state.S)
    Y = torch.where(tall, torch.cat([state.Y[:, 1:], y[:, None]], dim=1), state.Y)
    moved = replace(
        state,
        x=torch.where(column, x, state.x),
        value=torch.where(good, value, state.value),
        slope=torch.where(column, slope, state.slope),
        S=S,
        Y=Y,
        length=length,
        taken=state.taken + good,
    )
    direction = torch.where(column, _direction(moved, lower, upper), state.direction)
    moved = replace(moved, direction=direction)
    solved = good & (gain <= tolerance) & (_predicted(moved) <= tolerance)
    stuck = ~good & (length * direction.abs().amax(-1) < _SHORTEST_STEP)
    held = good & (direction == 0).all(-1)
    return moved, solved | stuck | held


def _predicted(state: _State) -> Tensor:
    """What the quadratic model promises for its full step."""
    return -0.5 * (state.slope * state.direction).sum(-1)


def _hopeless(state: _State, best: Tensor, best_x: Tensor, same_basin: float) -> Tensor:
    behind = state.value > best
    near = (state.x - best_x).abs().amax(-1) < same_basin
    cannot = (state.taken >= _SETTLED) & (state.value - _CATCH_UP * _predicted(state) > best)
    return behind & (near | cannot)


def _direction(state: _State, lower: Tensor, upper: Tensor) -> Tensor:
    """-H g on the free variables, H the compact L-BFGS inverse (Byrd, Nocedal, Schnabel 1994)."""
    x, g = state.x, state.slope
    free = ~(((x <= lower) & (g > 0)) | ((x >= upper) & (g < 0)))
    g = g * free
    S, Y = state.S * free[:, None], state.Y * free[:, None]
    SY = S @ Y.mT
    D, yy = SY.diagonal(dim1=-2, dim2=-1), Y.square().sum(-1)
    # Pairs whose curvature lay in the variables now held say nothing about the others.
    valid = D > 1e-10 * yy
    SY = SY * (valid[:, :, None] & valid[:, None, :])
    S, Y = S * valid[:, :, None], Y * valid[:, :, None]
    R = SY.triu() + torch.diag_embed((~valid).to(SY.dtype))
    newest = valid[:, -1]
    largest = g.abs().amax(-1).clamp_min(1e-300)
    gamma = torch.where(newest, D[:, -1] / yy[:, -1].clamp_min(1e-300), _FIRST_STEP / largest)[:, None]
    gc = g[:, :, None]
    u = torch.linalg.solve_triangular(R, S @ gc, upper=True)
    middle = (D * valid)[:, :, None] * u + gamma[:, :, None] * (Y @ (Y.mT @ u) - Y @ gc)
    v = torch.linalg.solve_triangular(R.mT, middle, upper=False)
    Hg = gamma * g + (S.mT @ v - gamma[:, :, None] * (Y.mT @ u)).squeeze(-1)
    direction: Tensor = -Hg * free
    longest = direction.abs().amax(-1, keepdim=True)
    return direction * (_LONGEST_STEP / longest.clamp_min(_LONGEST_STEP))
