r"""The meta-tasks' posteriors at fixed points, kept between the steps of a search.

The points are the rows of a table of candidates, or the raw points from which a search on the cube
starts. Means and variances of the meta-tasks there never change. A new observation x adds one row of
covariances $\Sigma_m(x, \cdot)$ per task. All that a step still computes are sums over tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs
from scaml.model.past_at_points import OfPast

__all__ = ["TableCache", "TaskPosteriorsOnTable"]

_MOST_NUMBERS = 2**27  # features kept per table, and covariances: one gigabyte each
_CHUNK = 1024  # rows at once: larger chunks are not faster
_TABLES = 2  # the raw points, and the caller's own candidates
_ROOM = 32  # observations for which room is made at once


class TaskPosteriorsOnTable:
    """M meta-tasks at S points, standardized.

    Args:
        tasks: The meta-tasks' posteriors.
        table: `S x d`.
    """

    def __init__(self, tasks: TaskGPs, table: Tensor) -> None:
        self.tasks, self.table = tasks, table
        self._u = torch.cat([tasks.whiten(part) for part in table.split(_CHUNK)]).transpose(0, 1)
        self._u = self._u.contiguous()  # M x S x N
        self.mean = (self._u @ tasks.targets.unsqueeze(-1)).squeeze(-1)  # M x S
        self.variance = (tasks.outputscale[:, None] - self._u.square().sum(-1)).clamp_min(0.0)
        self._slots: dict[bytes, int] = {}
        self._rows = table.new_empty(0, len(tasks), len(table))  # each written once, never changed
        self._lock = threading.Lock()

    def past(self, weights: Tensor, X: Tensor) -> OfPast:
        """Theorem 1 at the points, for weights, `E x M`, and X_t, `n x d`."""
        squares = weights.square()
        covariance = torch.matmul(squares, self.covariance(X)).permute(1, 2, 0)
        return OfPast(weights @ self.mean, squares @ self.variance, covariance.contiguous())

    def covariance(self, X: Tensor) -> Tensor:
        """Σ_m(x, points), `n x M x S`, for each point of X, `n x d`."""
        keys = [x.tobytes() for x in X.numpy()]
        with self._lock:
            new = [i for i, key in enumerate(keys) if key not in self._slots]
            if new and (len(self._slots) + len(new)) * self.mean.numel() > _MOST_NUMBERS:
                self._slots, self._rows, new = {}, self._rows[:0], list(range(len(keys)))
            for i in new:
                if keys[i] not in self._slots:
                    self._append(keys[i], X[i])
            slots, rows = [self._slots[key] for key in keys], self._rows
        in_order = slots == list(range(len(slots)))
        return rows[: len(slots)] if in_order else rows[slots]

    def _append(self, key: bytes, x: Tensor) -> None:
        slot = len(self._slots)
        if slot == len(self._rows):
            self._rows = torch.cat([self._rows, self._rows.new_empty(_ROOM, *self.mean.shape)])
        # One point at a time: a product over several points rounds differently, and a row must not
        # depend on which other points are asked for.
        self._rows[slot] = self._row(x)
        self._slots[key] = slot

    def _row(self, x: Tensor) -> Tensor:
        inverse = self.tasks.lengthscale[:, None, : self.tasks.d].reciprocal()
        squared = squared_distance(self.table * inverse, x[None] * inverse)
        prior = self.tasks.outputscale[:, None, None] * correlation(self.tasks.kernel, squared)
        u = self.tasks.whiten(x[None])[0].unsqueeze(-1)  # M x N x 1
        return (prior - self._u @ u).squeeze(-1)


class TableCache:
    """Keeps the posteriors at the tables that were asked for last; a pickled copy starts empty."""

    def __init__(self) -> None:
        self._kept: Sequence[TaskPosteriorsOnTable] = ()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[TableCache], tuple[()]]:
        return TableCache, ()

    def past(self, tasks: TaskGPs, table: Tensor, weights: Tensor, X: Tensor) -> OfPast | None:
        """Theorem 1 at the rows of a table, or None if they are too many to keep.

        Args:
            tasks: M meta-tasks.
            table: `S x d`.
            weights: `E x M`.
            X: X_t, `n x d`.
        """
        M, N, _ = tasks.X.shape
        if not M or len(table) * M * max(N, len(X)) > _MOST_NUMBERS:
            return None
        return self._of(tasks, table).past(weights, X)

    def _of(self, tasks: TaskGPs, table: Tensor) -> TaskPosteriorsOnTable:
        with self._lock:
            for kept in self._kept:
                if kept.tasks is tasks and torch.equal(kept.table, table):
                    break
            else:
                kept = TaskPosteriorsOnTable(tasks, table)
            others = [one for one in self._kept if one is not kept]
            self._kept = [kept, *others[: _TABLES - 1]]
            return kept
