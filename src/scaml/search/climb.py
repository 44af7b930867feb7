r"""Local maxima of a smooth function on the unit cube, from all starts in lock step.

Every start has a dense quasi-Newton model: B, the Hessian of the negative function, by BFGS.
Coordinates at a bound with a slope that points outward are held. The others take the step
$-B_{FF}^{-1} g_F$, clipped to the cube, and shortened where the function does not rise enough. All
starts are evaluated together, and leave the batch when they are done.

A start also stops if it can no longer catch up with the best one: if its latest progress and its
quadratic model promise much less than what it lacks. It stops, too, where it meets a better one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["climb"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Function = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Values, k, and slopes, `k x d`, at `k x d`."""

_FIRST_STEP = 0.03  # in the coordinate that moves most
_LONGEST_STEP = 0.3
_ARMIJO = 1e-4
_AT_BOUND = 1e-12
_SHORTEST_STEP = 1e-10
_LEAST_SHARE = 1e-6  # of a step; where rounding errors decide, shorter ones are no better
_ROUNDS = 100
_RECENT = 5  # rounds over which progress is measured
_CATCH_UP = 10.0  # a start goes on if so many times its latest progress ...
_PROMISES = 2.0  # ... and so many times what its model promises of the next try reach the best one
_MET = 1e-3  # as close to a better start as this, a start will end where that one does


@dataclass
class _Running:
    """The k starts that are still running, as a minimization."""

    place: NDArray[np.int64]  # k, numbers of the starts
    x: Floats  # k x d
    value: Floats  # k
    slope: Floats  # k x d
    B: Floats  # k x d x d
    known: Flags  # k, whether B has seen a step
    step: Floats  # k x d, the quasi-Newton step
    share: Floats  # k, of the step, to try next
    recent: Floats  # k x _RECENT, values before the latest rounds

    def keep(self, chosen: Flags) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[chosen])


def climb(
    function: Function, starts: Tensor, *, fixed: Tensor | None = None, tolerance: float = 1e-9
) -> tuple[Tensor, Tensor]:
    """Local maxima, `k x d`, from starts, `k x d`, and their values.

    Args:
        function: Values and slopes; steps to values that are not finite are refused.
        starts: In the cube.
        fixed: Which of the d columns stay as they are; none by default.
        tolerance: A start is done if its last step gained no more, and its model promises no more.
    """
    free = np.ones(starts.shape[-1], dtype=bool) if fixed is None else ~fixed.numpy()

    def evaluate(x: Floats) -> tuple[Floats, Floats]:
        value, slope = function(torch.from_numpy(x))
        return -value.numpy(), np.where(free, -slope.numpy(), 0.0)

    x = starts.numpy().copy()
    with np.errstate(all="ignore"):
        value, slope = evaluate(x)
        points, values = x.copy(), value.copy()
        run = _first(x, value, slope)
        for _ in range(_ROUNDS):
            points[run.place], values[run.place] = run.x, run.value
            if not len(run.place):
                break
            tried = np.clip(run.x + run.share[:, None] * run.step, 0.0, 1.0)
            done = _advance(run, tried, *evaluate(tried), tolerance)
            points[run.place], values[run.place] = run.x, run.value
            done |= _beaten(run, points, values)
            if done.any():
                run.keep(~done)
    return torch.from_numpy(points), torch.from_numpy(-values)


def _first(x: Floats, value: Floats, slope: Floats) -> _Running:
    k, d = x.shape
    B = np.zeros((k, d, d))
    recent = np.full((k, _RECENT), np.inf)
    known = np.zeros(k, dtype=bool)
    run = _Running(np.arange(k), x, value, slope, B, known, np.zeros_like(x), np.ones(k), recent)
    run.keep(np.isfinite(value) & np.isfinite(slope).all(-1))
    run.B[:] = np.eye(d) * (np.abs(run.slope).max(-1) / _FIRST_STEP + 1e-300)[:, None, None]
    run.step = _step(run)
    run.keep((run.step != 0.0).any(-1))
    return run


def _advance(run: _Running, x: Floats, value: Floats, slope: Floats, tolerance: float) -> Flags:
    """Take the steps that are good enough, shorten the others; which starts are done."""
    s, y = x - run.x, slope - run.slope
    promised = (run.slope * s).sum(-1)
    gain = run.value - value
    good = np.isfinite(value) & np.isfinite(slope).all(-1) & (gain >= -_ARMIJO * promised)
    # A failed step is shortened to the minimum of the parabola through two values and a slope.
    shorter = -0.5 * promised / (-gain - promised)
    shorter = np.clip(np.where(np.isfinite(shorter), shorter, 0.25), 0.1, 0.5)
    run.share = np.where(good, 1.0, run.share * shorter)
    column = good[:, None]
    _learn(run, s, y, good)
    run.recent = np.concatenate([run.recent[:, 1:], run.value[:, None]], axis=1)
    run.x = np.where(column, x, run.x)
    run.value = np.where(good, value, run.value)
    run.slope = np.where(column, slope, run.slope)
    run.step = _step(run)
    solved = good & (gain <= tolerance) & (_promise(run) <= tolerance)
    short = (run.share * np.abs(run.step).max(-1) < _SHORTEST_STEP) | (run.share < _LEAST_SHARE)
    stuck = ~good & short
    done: Flags = solved | stuck | (run.step == 0.0).all(-1)
    return done


def _learn(run: _Running, s: Floats, y: Floats, good: Flags) -> None:
    """The BFGS update where a step was taken and the function bends the right way."""
    sy, yy = (s * y).sum(-1), (y * y).sum(-1)
    bends = good & (sy > 1e-8 * np.sqrt((s * s).sum(-1) * yy))
    fresh = bends & ~run.known
    scale = np.where(fresh, yy / sy, 1.0)
    run.B[fresh] = np.eye(s.shape[-1]) * scale[fresh, None, None]
    Bs = (run.B @ s[:, :, None])[:, :, 0]
    sBs = (s * Bs).sum(-1)
    a, b = np.where(bends, 1.0 / sy, 0.0), np.where(bends, 1.0 / sBs, 0.0)
    left = np.stack([np.where(bends[:, None], y, 0.0), np.where(bends[:, None], Bs, 0.0)], -1)
    right = left * np.stack([a, -b], -1)[:, None, :]
    run.B = run.B + left @ right.swapaxes(-2, -1)
    run.known = run.known | bends


def _step(run: _Running) -> Floats:
    """The quasi-Newton step in the coordinates that are free, no longer than allowed."""
    x, g = run.x, run.slope
    held = ((x <= _AT_BOUND) & (g > 0)) | ((x >= 1.0 - _AT_BOUND) & (g < 0)) | (g == 0.0)
    free = ~held
    eye = np.eye(x.shape[-1])
    B = np.where(free[:, :, None] & free[:, None, :], run.B, eye)
    step = -np.linalg.solve(B, np.where(free, g, 0.0)[:, :, None])[:, :, 0]
    longest = np.abs(step).max(-1, keepdims=True)
    shortened: Floats = step * (_LONGEST_STEP / np.maximum(longest, _LONGEST_STEP))
    return shortened


def _promise(run: _Running) -> Floats:
    """The decrease that the quadratic model expects of its step."""
    promise: Floats = -0.5 * (run.slope * run.step).sum(-1)
    return promise


def _beaten(run: _Running, points: Floats, values: Floats) -> Flags:
    """Which starts will end where a better one does, or below the best one."""
    best = np.nanmin(values)
    progress = run.recent[:, 0] - run.value
    hope = _CATCH_UP * progress + _PROMISES * run.share * _promise(run)
    hopeless = hope < run.value - best
    distance = np.abs(run.x[:, None] - points[None]).max(-1)
    better = (values[None] < run.value[:, None]) & (distance < _MET)
    beaten: Flags = hopeless | better.any(-1)
    return beaten
