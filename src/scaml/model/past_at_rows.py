r"""The meta-tasks' posteriors at the observed points, kept between the steps of a search.

μ_m(x) and Σ_m(x, x') do not change during a search. So a further observation adds one row of n
covariances per past task to what a prior keeps, and line 3 of Algorithm 1 costs $M (N^2 + n_t N)$
instead of $M n_t N (N + n_t)$ operations per step.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scaml.gp.kernels import correlation, left_factor
from scaml.gp.task_gps import TaskGPs

__all__ = ["PastAtRows", "PastMoments"]

_MOST_NUMBERS = 2**27  # kept at most: one gigabyte
# Rows are computed in blocks of this shape, filled up with zeros. A product of another shape would
# round differently, and a row must not depend on when it was asked for.
_BLOCK = 8
_SPARE = 16  # rows by which a full array grows

Floats = NDArray[np.float64]


class PastMoments(NamedTuple):
    """Posteriors of M tasks at n points, standardized."""

    mean: Floats  # n x M
    covariance: Floats  # P x M, packed: the lower triangle, row by row


@dataclass
class _Kept:
    """What is known at the rows of X; rows of the arrays behind the last one are spare."""

    tasks: TaskGPs
    X: Floats  # n x d
    features: list[Tensor]  # u_m(x) of each block, M x _BLOCK x N, zero behind the last row
    mean: Floats
    covariance: Floats


class PastAtRows:
    """Keeps the posteriors at the points of the task that was asked for last.

    A pickled copy starts empty.
    """

    def __init__(self) -> None:
        self._kept: _Kept | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[PastAtRows], tuple[()]]:
        return PastAtRows, ()

    def at(self, tasks: TaskGPs, X: Tensor) -> PastMoments:
        """Line 3 of Algorithm 1: μ_m(X) and Σ_m(X, X) at X, `n x d`; not to be changed."""
        n = len(X)
        with self._lock, torch.no_grad():
            kept = _extended(self._kept, tasks, X.numpy())
            size = n * len(tasks) * (tasks.X.shape[1] + (n + 1) // 2)
            self._kept = kept if size <= _MOST_NUMBERS else None
        return PastMoments(kept.mean[:n], kept.covariance[: _packed(n)])


def _packed(n: int) -> int:
    return n * (n + 1) // 2


def _extended(kept: _Kept | None, tasks: TaskGPs, X: Floats) -> _Kept:
    """What is known at the rows of X, from what was known before."""
    known = 0
    if kept is not None and kept.tasks is tasks and kept.X.shape[1] == X.shape[1]:
        both = min(len(kept.X), len(X))
        same = (kept.X[:both] == X[:both]).all(-1)
        known = both if same.all() else int(same.argmin())
    if kept is not None and known == len(X) and kept.tasks is tasks:
        return kept
    if kept is None or not known:
        kept = _Kept(tasks, X[:0], [], np.empty((0, len(tasks))), np.empty((0, len(tasks))))
    new = _with_room(kept, known, X)
    factors = tasks.squared_distances()
    for block in range(known // _BLOCK, -(-len(X) // _BLOCK)):
        _add_block(new, block, known, factors)
    return new


def _with_room(kept: _Kept, known: int, X: Floats) -> _Kept:
    """The first `known` rows, in arrays with room for all of X.

    The arrays stay the same where only spare rows of them will be written: nobody reads those.
    """
    mean, covariance = kept.mean, kept.covariance
    if known < len(kept.X) or len(mean) < len(X):
        rows, M = len(X) + _SPARE, mean.shape[1]
        mean, covariance = np.empty((rows, M)), np.empty((_packed(rows), M))
        mean[:known], covariance[: _packed(known)] = (
            kept.mean[:known],
            kept.covariance[: _packed(known)],
        )
    return _Kept(kept.tasks, X.copy(), kept.features[: known // _BLOCK], mean, covariance)


def _add_block(new: _Kept, block: int, known: int, factors: tuple[Tensor, Tensor]) -> None:
    """Write the rows of one block, behind the known ones."""
    tasks, first, n = new.tasks, block * _BLOCK, len(new.X)
    last = min(first + _BLOCK, n)
    rows = np.zeros((first + _BLOCK, new.X.shape[1]))
    rows[:last] = new.X[:last]
    X = torch.from_numpy(rows)
    inverse, right = factors
    squared = (left_factor(X[first:] * inverse) @ right).clamp_min_(0.0)
    u = correlation(tasks.kernel, squared) @ tasks.whitener.mT  # M x block x N
    u[:, last - first :] = 0.0
    new.features.append(u)
    mean = (u * tasks.targets.unsqueeze(1)).sum(-1).T
    squares = (X[first:, None] - X).square().flatten(0, 1)
    prior = correlation(tasks.kernel, squares @ inverse.squeeze(1).square().T)
    prior = prior.mul_(tasks.outputscale)
    gained = torch.cat([u @ other.mT for other in new.features], dim=-1)  # M x block x rows
    covariance = (prior.view(_BLOCK, len(X), len(tasks)) - gained.permute(1, 2, 0)).numpy()
    for i in range(max(first, known), last):
        new.mean[i] = mean[i - first].numpy()
        new.covariance[_packed(i) : _packed(i + 1)] = covariance[i - first, : i + 1]
