"""Maximization of an acquisition function on the unit cube."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from botorch.acquisition import AcquisitionFunction, OneShotAcquisitionFunction
from botorch.exceptions.warnings import BadInitialCandidatesWarning, OptimizationWarning
from torch import Tensor

from scaml.search.climb import climb
from scaml.search.protocols import Sloped

__all__ = [
    "DISTINCT",
    "RAW_POINTS",
    "RESTARTS",
    "apart",
    "ascend",
    "beside",
    "evaluate",
    "maximize_on_cube",
    "scale",
    "without_warnings",
]

# Measured on models of 2 to 10 parameters: 2048 raw points found no better maxima, and 512 raw points
# or 10 starts missed the best one more often.
RAW_POINTS = 1024
RESTARTS = 20
# Raw points miss the narrow peaks that expected improvement has beside the best data.
_WIDTHS = (0.003, 0.01, 0.03, 0.1)
_AROUND = 32  # points of each width
_STARTS = 12  # of the ascent, apart from those beside the best data
_MORE, _CLOSE = 16, 0.005  # further starts beside the best data, and how far they are apart
# Where a maximum need not be the highest, nor exact.
_FEW, _ROUGH = 4, 1e5  # starts; tolerances, over the usual ones
_APART = 0.05  # starts are at least this far apart, in units of the cube's diagonal
_CHUNK = (
    256  # points evaluated at once; measured: larger chunks are not faster, smaller ones are slower
)
_ONE_AT_A_TIME = threading.RLock()
_EXPECTED = ("Optimization failed", "Failed to extract X_baseline")
DISTINCT = 1e-4  # points of one batch differ by at least this in some coordinate


def evaluate(acquisition: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    """Values, n, at single points, `n x d`."""
    with torch.no_grad():
        return torch.cat([acquisition(part.unsqueeze(-2)) for part in X.split(_CHUNK)])


def scale(acquisition: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """The unit of the values, so that a solver's tolerances do not depend on the unit of y; 0 if flat.

    A logarithm (BoTorch marks them) has no unit, and its range comes from its worst points.
    """
    spread = values.max() - values.min()
    return spread.sign() if getattr(acquisition, "_log", False) else spread


def maximize_on_cube(
    acquisition: AcquisitionFunction,
    d: int,
    *,
    seed: int,
    avoid: Tensor | None = None,
    around: Tensor | None = None,
    kept: tuple[Tensor, Tensor] | None = None,
    rough: bool = False,
) -> Tensor:
    """The maximizer over [0, 1]^d, d long.

    Raw points and points beside those given, then an ascent from the best that lie apart.

    Args:
        acquisition: Takes `batch x 1 x d`.
        d: Number of parameters.
        seed: Decides the raw points, unless they are given, and the neighbours.
        avoid: `k x d` points of which the answer must be distinct.
        around: `k x d` points beside which the maximum may lie.
        kept: Raw points, `n x d`, and the values there, n, if they are known.
        rough: Whether a point close to a high maximum will do.
    """
    if isinstance(acquisition, OneShotAcquisitionFunction):
        return _maximize_one_shot(acquisition, d)
    generator = torch.Generator().manual_seed(seed)
    if kept is None:
        sobol = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed)
        raw = sobol.draw(RAW_POINTS, dtype=torch.float64)
        values = evaluate(acquisition, raw)
    else:
        shuffled = torch.randperm(len(kept[0]), generator=generator)  # all are equal where it is flat
        raw, values = kept[0][shuffled], kept[1][shuffled]
    points, more = raw, raw[:0]
    if around is not None:
        near = beside(around, generator)
        found = evaluate(acquisition, near)
        points, values = torch.cat([raw, near]), torch.cat([values, found])
        # Of the peaks beside the best data, several can be close together.
        more = apart(near[found.argsort(descending=True, stable=True)], _MORE, _CLOSE)
    order = values.argsort(descending=True, stable=True)
    points, values = points[order], values[order]
    spread = float(scale(acquisition, values))
    if spread > 0:
        starts = torch.cat([apart(points, _FEW if rough else _STARTS), more])
        refined, found = ascend(acquisition, starts, unit=spread * _ROUGH if rough else spread)
        points, values = torch.cat([refined, points]), torch.cat([found, values])
        points = points[values.argsort(descending=True, stable=True)]
    if avoid is not None:
        distance = (points[:, None] - avoid[None]).abs().amax(-1).amin(-1)
        points = points[distance >= DISTINCT]
    return points[0]


def beside(points: Tensor, generator: torch.Generator, fixed: Tensor | None = None) -> Tensor:
    """Points of the cube beside those given, `k x d`, at distances of several orders.

    Args:
        points: The given ones.
        generator: Decides the others.
        fixed: Which of the d columns stay as they are; none by default.
    """
    widths = torch.tensor(_WIDTHS, dtype=torch.float64).repeat_interleave(_AROUND)
    shifts = torch.randn(len(widths), points.shape[-1], generator=generator, dtype=torch.float64)
    if fixed is not None:
        shifts[:, fixed] = 0.0
    centres = points[torch.arange(len(widths)) % len(points)]
    return (centres + widths[:, None] * shifts).clamp(0.0, 1.0)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress BoTorch's warnings about failed restarts; the others continue.

    BoTorch turns these warnings on itself, so a filter does not stop them. Filters belong to the
    process, so only one thread at a time may change them.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # recorded, never raised
        yield
    for warning in caught:
        expected = issubclass(warning.category, OptimizationWarning | BadInitialCandidatesWarning)
        if not expected and not any(known in str(warning.message) for known in _EXPECTED):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def apart(points: Tensor, most: int = _STARTS, reach: float = _APART) -> Tensor:
    """The first points, at most so many, sorted best first, that are no neighbours of a better one."""
    reach = reach * points.shape[-1] ** 0.5
    left = torch.ones(len(points), dtype=torch.bool)
    chosen: list[int] = []
    while len(chosen) < most and left.any():
        best = int(left.nonzero()[0])
        chosen.append(best)
        left &= (points - points[best]).norm(dim=-1) > reach
    return points[chosen]


def ascend(
    function: Callable[[Tensor], Tensor],
    starts: Tensor,
    fixed: Tensor | None = None,
    unit: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Local maxima, `k x d`, from starts, `k x d`, and their values.

    Args:
        function: Takes `k x 1 x d`. If it is `Sloped`, autograd is not needed.
        starts: In the cube.
        fixed: Which of the d columns stay as they are; none by default.
        unit: Of the values, for the solver's tolerances; by default from those at the starts.
    """
    if unit is None:
        unit = float(scale(function, evaluate(function, starts))) or 1.0
    asked: object = function
    if isinstance(asked, Sloped) and asked.has_slope:
        points, values = climb(partial(_in_unit, asked, unit), starts, fixed=fixed)
    else:
        points, values = _ascend_by_autograd(function, starts, fixed, unit)
    return points, unit * values


def _in_unit(function: Sloped, unit: float, X: Tensor) -> tuple[Tensor, Tensor]:
    value, slope = function.value_and_slope(X)
    return value / unit, slope / unit


def _ascend_by_autograd(
    function: Callable[[Tensor], Tensor], starts: Tensor, fixed: Tensor | None, unit: float
) -> tuple[Tensor, Tensor]:
    """The same by BoTorch's solver, whose tolerances are shares of the value: it sees the way to go."""
    from botorch.generation.gen import gen_candidates_scipy  # imports scipy.optimize

    top = evaluate(function, starts).max()

    def moved(X: Tensor) -> Tensor:
        # A column whose slope is 0 does not move.
        value = function(X if fixed is None else torch.where(fixed, X.detach(), X))
        return (value - top) / unit

    with without_warnings():
        points, values = gen_candidates_scipy(
            starts.unsqueeze(-2), moved, lower_bounds=0.0, upper_bounds=1.0, options={"maxiter": 200}
        )
    return points.squeeze(-2).detach(), values.detach() + top / unit


def _maximize_one_shot(acquisition: OneShotAcquisitionFunction, d: int) -> Tensor:
    """One-shot functions have their fantasies among their arguments; BoTorch finds starts for them."""
    from botorch.optim import optimize_acqf

    cube = torch.stack([torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)])
    point, _ = optimize_acqf(acquisition, cube, q=1, num_restarts=RESTARTS, raw_samples=RAW_POINTS // 8)
    chosen: Tensor = point.squeeze(-2)
    return chosen
