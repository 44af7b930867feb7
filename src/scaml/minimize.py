"""Many small bound-constrained smooth problems minimized in lock step.

A projected L-BFGS (two-metric projection: variables that sit at a bound and are pushed against it
are held, the others take a quasi-Newton step that is clipped to the box) with every vector
operation batched over the problems, so that the solver costs microseconds an evaluation where one
L-BFGS-B call per problem costs tens. Problems that are finished leave the batch; none feels, in any
bit, who else is in it.

Problems may compete: those of one group (the starts of one fit) seek the same minimum, and only
the group's best, its leader, counts. A start leaves early once it will end where the leader ends, or
once its own model and its recent progress say that it can no longer catch up.
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
_AT_BOUND = 1e-6  # variables this close to a bound that pulls them are put on it
_RECENT = 4  # steps over which progress is measured; before them no start is judged
_CATCH_UP = 10.0  # a start may still win if so many predicted decreases ...
_SLOW_CATCH_UP = 1.0  # ... and so many times its recent progress reach the leader


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
    recent: Tensor  # b x recent, values before the last steps; infinite before the first

    def keep(self, chosen: Tensor) -> _State:
        return _State(**{f.name: getattr(self, f.name)[chosen] for f in fields(self)})


@dataclass(frozen=True)
class _Leaders:
    """The best of every group so far; updated in place."""

    x: Tensor  # groups x p
    value: Tensor  # groups

    @classmethod
    def none(cls, groups: int, p: int) -> _Leaders:
        x = torch.zeros(groups, p, dtype=torch.float64)
        return cls(x, torch.full((groups,), torch.inf, dtype=torch.float64))

    def update(self, state: _State, group: Tensor) -> None:
        before = self.value[group]
        self.value.scatter_reduce_(0, group, state.value, "amin")
        ahead = (state.value == self.value[group]) & (state.value < before)
        self.x[group[ahead]] = state.x[ahead]


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
        x0: `problems x p` starts, float64.
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
    leaders = _Leaders.none(int(group.max()) + 1, p)
    every = torch.arange(problems)
    x0 = x0.clamp(lower, upper)
    value, slope = objective(x0, every)
    evaluations = problems
    memory = torch.zeros(problems, min(_MEMORY, 2 * p), p, dtype=x0.dtype)
    recent = torch.full((problems, _RECENT), torch.inf, dtype=x0.dtype)
    state = _State(every, x0, value, slope, memory, memory, -slope, torch.ones_like(value), recent)
    state = state.keep(_finite(value, slope))
    state = replace(state, direction=_direction(state, lower, upper))
    leaders.update(state, group[state.problem])
    for _ in range(max_rounds):
        if not len(state.problem):
            break
        x = (state.x + state.length[:, None] * state.direction).clamp(lower, upper)
        value, slope = objective(x, state.problem)
        evaluations += len(value)
        state, done = _advance(state, x, value, slope, lower, upper, tolerance)
        mine = group[state.problem]
        leaders.update(state, mine)
        done |= _beaten(state, leaders, mine, same_basin)
        if done.any():
            state = state.keep(~done)
    return Minimum(leaders.x, leaders.value, evaluations)


def _finite(value: Tensor, slope: Tensor) -> Tensor:
    return value.isfinite() & slope.isfinite().all(-1)


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
    # A step that failed is shortened to the minimum of the parabola through what is known.
    curvature = -gain - promised
    shorter = torch.where(curvature > 0, -0.5 * promised / curvature, 0.25).nan_to_num(0.25)
    length = torch.where(good, 1.0, state.length * shorter.clamp(0.1, 0.5))
    column = good[:, None]
    bends = good & ((s * y).sum(-1) > 1e-10 * y.square().sum(-1))
    tall = bends[:, None, None]
    moved = replace(
        state,
        x=torch.where(column, x, state.x),
        value=torch.where(good, value, state.value),
        slope=torch.where(column, slope, state.slope),
        S=torch.where(tall, _push(state.S, s), state.S),
        Y=torch.where(tall, _push(state.Y, y), state.Y),
        length=length,
        recent=torch.where(column, _push(state.recent, state.value), state.recent),
    )
    direction = torch.where(column, _direction(moved, lower, upper), state.direction)
    moved = replace(moved, direction=direction)
    solved = good & (gain <= tolerance) & (_predicted(moved) <= tolerance)
    stuck = ~good & (length * direction.abs().amax(-1) < _SHORTEST_STEP)
    held = good & (direction == 0).all(-1)
    return moved, solved | stuck | held


def _push(memory: Tensor, newest: Tensor) -> Tensor:
    return torch.cat([memory[:, 1:], newest.unsqueeze(1)], dim=1)


def _predicted(state: _State) -> Tensor:
    """What the quadratic model promises for its full step."""
    return -0.5 * (state.slope * state.direction).sum(-1)


def _beaten(state: _State, leaders: _Leaders, group: Tensor, same_basin: float) -> Tensor:
    """Starts that will end where their leader ends, or above it."""
    way, drop = leaders.x[group] - state.x, leaders.value[group] - state.value
    distance = way.abs().amax(-1)
    progress = state.recent[:, 0] - state.value
    hope = _CATCH_UP * _predicted(state) + _SLOW_CATCH_UP * progress
    return (drop < 0) & ((distance < same_basin) | (hope < -drop))


def _direction(state: _State, lower: Tensor, upper: Tensor) -> Tensor:
    """-H g on the free variables, H the compact L-BFGS inverse (Byrd, Nocedal, Schnabel 1994)."""
    x, g = state.x, state.slope
    at_lower, at_upper = (x <= lower + _AT_BOUND) & (g > 0), (x >= upper - _AT_BOUND) & (g < 0)
    free = ~(at_lower | at_upper)
    home = torch.where(at_lower, lower - x, torch.where(at_upper, upper - x, 0.0))
    g = g * free
    S, Y = state.S * free[:, None], state.Y * free[:, None]
    D, yy = (S * Y).sum(-1), Y.square().sum(-1)
    # Pairs whose curvature lay in the variables now held say nothing about the others.
    valid = D > 1e-10 * yy
    S, Y, D = S * valid[:, :, None], Y * valid[:, :, None], D * valid
    R = (S @ Y.mT).triu() + torch.diag_embed((~valid).to(D.dtype))
    largest = g.abs().amax(-1).clamp_min(1e-300)
    newest = D[:, -1] / yy[:, -1].clamp_min(1e-300)
    gamma = torch.where(valid[:, -1], newest, _FIRST_STEP / largest)[:, None]
    u = torch.linalg.solve_triangular(R, _times(S, g)[:, :, None], upper=True)
    Yu = (Y.mT @ u).squeeze(-1)
    middle = D * u.squeeze(-1) + gamma * _times(Y, Yu - g)
    v = torch.linalg.solve_triangular(R.mT, middle[:, :, None], upper=False)
    Hg = gamma * (g - Yu) + (S.mT @ v).squeeze(-1)
    direction: Tensor = -Hg * free
    longest = direction.abs().amax(-1, keepdim=True)
    return direction * (_LONGEST_STEP / longest.clamp_min(_LONGEST_STEP)) + home


def _times(A: Tensor, v: Tensor) -> Tensor:
    """A v for every problem. torch's own product rounds differently for a batch of one."""
    return (A * v[:, None]).sum(-1)
