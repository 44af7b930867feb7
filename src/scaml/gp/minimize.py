"""Many small bound-constrained smooth problems minimized in lock step.

The solver is a projected L-BFGS (two-metric projection): variables at a bound whose gradient pushes
them against it are held, and the others take a quasi-Newton step that is clipped to the box. Every
vector operation is batched over the problems. So the solver takes microseconds per evaluation, where
one L-BFGS-B call per problem takes tens of microseconds. Finished problems leave the batch. No bit of
a problem's result depends on the other problems in the batch. The solver uses NumPy for its own arrays:
they are small, and a NumPy operation takes a third of the time of a torch operation.

Problems can form groups, such as the starts of one fit. Only the best problem of a group, its leader,
counts. A problem stops early if it is about to end at the leader's minimum, or if its quadratic model
and its recent progress say that it can no longer catch up with the leader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Metric", "Minimum", "Objective", "minimize"]

Objective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Maps points, `b x p`, and the problems they belong to, `b`, to values, `b`, and slopes, `b x p`."""

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]

Metric = Callable[[Floats, Flags, Places], Callable[[Floats], Floats]]
"""Maps points, `b x p`, their free variables and the problems they belong to, to a rough inverse
Hessian on the free variables: a function that multiplies it with vectors, `b x p`."""

_MEMORY = 10  # pairs that the quasi-Newton model remembers, at most two per variable
_MOST_ROUNDS = 300  # evaluations per problem
_ARMIJO = 1e-4
_LONGEST_STEP = 8.0
_LONGEST_IN_METRIC = 2.0  # measured on fits of GPs, in their logarithms
_FIRST_STEP = 1.0
_SHORTEST_STEP = 1e-8
_AT_BOUND = 1e-6  # a variable this close to a bound, and pushed towards it, is put on the bound
_RECENT = 3  # steps over which progress is measured; no problem stops early before them
_CATCH_UP = 5.0  # a problem can still catch up if this many predicted decreases ...
_SLOW_CATCH_UP = 1.0  # ... plus this many times its recent progress reach the leader


@dataclass(frozen=True)
class Minimum:
    """The best point of each group."""

    x: Tensor  # groups x p
    value: Tensor  # groups; infinite if the objective was not finite at any start of the group
    evaluations: int  # number of objective values computed, over all problems


@dataclass(frozen=True)
class _Box:
    """The bounds, p long each, or `problems x p`."""

    lower: Floats
    upper: Floats

    def of(self, problem: Places) -> _Box:
        """The bounds of some problems."""
        return self if self.lower.ndim == 1 else _Box(self.lower[problem], self.upper[problem])

    def clip(self, x: Floats) -> Floats:
        return np.minimum(np.maximum(x, self.lower), self.upper)


@dataclass(frozen=True)
class _State:
    """The b problems that are still running."""

    problem: Places  # b, indices in the original batch
    x: Floats  # b x p
    value: Floats  # b
    slope: Floats  # b x p
    pairs: Floats  # b x memory x 2 x p, the last steps and the changes of slope in them, newest last
    direction: Floats  # b x p
    length: Floats  # b, share of the direction to try next
    recent: Floats  # b x recent, values before the last steps; infinite where there is none

    def keep(self, chosen: Flags) -> _State:
        return _State(**{f.name: getattr(self, f.name)[chosen] for f in fields(self)})


@dataclass(frozen=True)
class _Leaders:
    """The best point of each group so far; updated in place."""

    x: Floats  # groups x p
    value: Floats  # groups

    @classmethod
    def none(cls, groups: int, p: int) -> _Leaders:
        return cls(np.zeros((groups, p)), np.full(groups, np.inf))

    def update(self, state: _State, group: Places) -> None:
        before = self.value[group]
        np.minimum.at(self.value, group, state.value)
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
    metric: Metric | None = None,
) -> Minimum:
    """Minimize `objective` within bounds from every row of `x0`; return the best of each group.

    Args:
        objective: Values and slopes of a batch; steps to values that are not finite are refused.
        x0: `problems x p` starts, float64.
        lower: p lower bounds, may be -inf; or `problems x p`.
        upper: p upper bounds, may be inf; or `problems x p`.
        group: The group of each problem, 0 to groups - 1.
        same_basin: A problem whose point is this close to its group's leader in every coordinate
            stops, because it would end at the same minimum.
        tolerance: A problem is solved if its last step gained no more than this, and its quadratic
            model predicts no more for the next one.
        metric: A rough inverse Hessian, which the quasi-Newton model starts from at every point; by
            default, a multiple of the identity.

    Returns:
        Best point and value of each group.
    """

    def evaluate(x: Floats, problem: Places) -> tuple[Floats, Floats]:
        value, slope = objective(torch.from_numpy(x), torch.from_numpy(problem))
        return value.numpy(), slope.numpy()

    box, groups = _Box(lower.numpy(), upper.numpy()), group.numpy()
    with np.errstate(all="ignore"):  # values that are not finite are refused below
        state = _first(evaluate, box.clip(x0.numpy()), box, metric)
        evaluations = len(groups)
        leaders = _Leaders.none(int(groups.max()) + 1, x0.shape[-1])
        leaders.update(state, groups[state.problem])
        for _ in range(_MOST_ROUNDS):
            if not len(state.problem):
                break
            mine = box.of(state.problem)
            x = mine.clip(state.x + state.length[:, None] * state.direction)
            value, slope = evaluate(x, state.problem)
            evaluations += len(value)
            state, done = _advance(state, x, value, slope, mine, tolerance, metric)
            group_of = groups[state.problem]
            leaders.update(state, group_of)
            done |= _beaten(state, leaders, group_of, same_basin)
            if done.any():
                state = state.keep(~done)
    return Minimum(torch.from_numpy(leaders.x), torch.from_numpy(leaders.value), evaluations)


def _first(
    evaluate: Callable[[Floats, Places], tuple[Floats, Floats]],
    x: Floats,
    box: _Box,
    metric: Metric | None,
) -> _State:
    """All problems at their starts, without those whose value or slope is not finite."""
    problems, p = x.shape
    every = np.arange(problems)
    value, slope = evaluate(x, every)
    pairs = np.zeros((problems, min(_MEMORY, 2 * p), 2, p))
    recent = np.full((problems, _RECENT), np.inf)
    state = _State(every, x, value, slope, pairs, -slope, np.ones(problems), recent)
    state = state.keep(_finite(value, slope))
    return replace(state, direction=_direction(state, box.of(state.problem), metric))


def _finite(value: Floats, slope: Floats) -> Flags:
    finite: Flags = np.isfinite(value) & np.isfinite(slope).all(-1)
    return finite


def _advance(
    state: _State,
    x: Floats,
    value: Floats,
    slope: Floats,
    box: _Box,
    tolerance: float,
    metric: Metric | None,
) -> tuple[_State, Flags]:
    """Take the steps that are good enough, shorten the others; also return which problems are done."""
    s, y = x - state.x, slope - state.slope
    promised = (state.slope * s).sum(-1)
    gain = state.value - value
    good = _finite(value, slope) & (gain >= -_ARMIJO * promised)
    # A failed step is shortened to the minimum of the parabola through the two values and the slope.
    curvature = -gain - promised
    shorter = np.where(curvature > 0, -0.5 * promised / curvature, 0.25)
    shorter = np.clip(np.where(np.isfinite(shorter), shorter, 0.25), 0.1, 0.5)
    length = np.where(good, 1.0, state.length * shorter)
    bends = good & ((s * y).sum(-1) > 1e-10 * (y * y).sum(-1))
    pairs = _push(state.pairs, np.stack([s, y], axis=1), bends)
    recent = _push(state.recent, state.value, good)
    if not good.all():
        column = good[:, None]
        x, slope = np.where(column, x, state.x), np.where(column, slope, state.slope)
        value = np.where(good, value, state.value)
    moved = _State(state.problem, x, value, slope, pairs, state.direction, length, recent)
    direction = _direction(moved, box, metric)
    if not good.all():
        direction = np.where(column, direction, state.direction)
    moved = replace(moved, direction=direction)
    solved = good & (gain <= tolerance) & (_predicted(moved) <= tolerance)
    stuck = ~good & (length * np.abs(direction).max(-1) < _SHORTEST_STEP)
    held = good & (direction == 0).all(-1)
    return moved, solved | stuck | held


def _push(memory: Floats, newest: Floats, chosen: Flags) -> Floats:
    """The memory with the newest entry at its end, for the chosen problems."""
    pushed = np.empty_like(memory)
    pushed[:, :-1], pushed[:, -1] = memory[:, 1:], newest
    if not chosen.all():
        pushed[~chosen] = memory[~chosen]
    return pushed


def _predicted(state: _State) -> Floats:
    """The decrease that the quadratic model predicts for its full step."""
    predicted: Floats = -0.5 * (state.slope * state.direction).sum(-1)
    return predicted


def _beaten(state: _State, leaders: _Leaders, group: Places, same_basin: float) -> Flags:
    """Which problems will end at their leader's minimum, or above it."""
    way, drop = leaders.x[group] - state.x, leaders.value[group] - state.value
    distance = np.abs(way).max(-1)
    progress = state.recent[:, 0] - state.value
    hope = _CATCH_UP * _predicted(state) + _SLOW_CATCH_UP * progress
    beaten: Flags = (drop < 0) & ((distance < same_basin) | (hope < -drop))
    return beaten


def _direction(state: _State, box: _Box, metric: Metric | None) -> Floats:
    """-H g on the free variables, H the compact L-BFGS inverse (Byrd, Nocedal, Schnabel 1994).

    With H_0 the metric, $H = H_0 + (S, H_0 Y)$ times a small matrix times its transpose, so that one
    product with H_0 is enough.
    """
    x, g = state.x, state.slope
    at_lower, at_upper = (x <= box.lower + _AT_BOUND) & (g > 0), (x >= box.upper - _AT_BOUND) & (g < 0)
    free = ~(at_lower | at_upper)
    home = np.where(at_lower, box.lower - x, np.where(at_upper, box.upper - x, 0.0))
    held = not free.all()
    pairs = state.pairs
    if held:
        g, pairs = g * free, pairs * free[:, None, None]
    S, Y = pairs[:, :, 0], pairs[:, :, 1]
    products = pairs.reshape(len(x), 2 * Y.shape[1], x.shape[-1]) @ Y.swapaxes(-2, -1)
    R, D, yy = products[:, ::2], products[:, ::2].diagonal(0, 1, 2), products[:, 1::2].diagonal(0, 1, 2)
    # Drop pairs whose curvature was in the variables that are held now.
    valid = D > 1e-10 * yy
    k = np.arange(R.shape[-1])
    R = np.where((k[:, None] <= k) & valid[:, None] & valid[:, :, None], R, 0.0)
    R[:, k, k] += ~valid
    u = valid * _solve(R, S @ g[:, :, None], upper=True)
    rest = g - (u[:, None] @ Y)[:, 0]
    if metric is None:
        largest = np.maximum(np.abs(g).max(-1), 1e-300)
        newest = D[:, -1] / np.maximum(yy[:, -1], 1e-300)
        rest *= np.where(valid[:, -1], newest, _FIRST_STEP / largest)[:, None]
    else:
        rest = metric(x, free, state.problem)(rest)
    middle = D * u - (Y @ rest[:, :, None])[:, :, 0]
    v = valid * _solve(R.swapaxes(-2, -1), middle[:, :, None], upper=False)
    direction = -(rest + (v[:, None] @ S)[:, 0])
    if held:
        direction *= free
    longest = np.abs(direction).max(-1, keepdims=True)
    most = _LONGEST_STEP if metric is None else _LONGEST_IN_METRIC
    result: Floats = direction * (most / np.maximum(longest, most)) + home
    return result


def _solve(R: Floats, right: Floats, *, upper: bool) -> Floats:
    """R^-1 times columns, R triangular, for each problem."""
    solved: Floats = torch.linalg.solve_triangular(
        torch.from_numpy(R), torch.from_numpy(right), upper=upper
    ).numpy()[:, :, 0]
    return solved
