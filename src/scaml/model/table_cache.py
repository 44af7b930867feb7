r"""The meta-tasks' posteriors at the rows of a table, kept between the steps of a search.

Means and variances of the meta-tasks at the rows never change. A new observation x adds one row of
covariances $\Sigma_m(x, \cdot)$. All that a step still computes are sums over tasks.
"""

from __future__ import annotations

import threading

import torch
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs

__all__ = ["TableCache", "TaskPosteriorsOnTable"]

_MOST_NUMBERS = 2**27  # kept per table: one gigabyte
_CHUNK = 1024  # rows at once: larger chunks are not faster


class TaskPosteriorsOnTable:
    """M meta-tasks at n rows, standardized.

    Args:
        tasks: The meta-tasks' posteriors.
        table: `n x d`.
    """

    def __init__(self, tasks: TaskGPs, table: Tensor) -> None:
        self.tasks, self.table = tasks, table
        self._u = torch.cat([tasks.whiten(part) for part in table.split(_CHUNK)]).transpose(0, 1)
        self._u = self._u.contiguous()  # M x n x N
        self.mean = (self._u @ tasks.targets.unsqueeze(-1)).squeeze(-1)  # M x n
        self.variance = (tasks.outputscale[:, None] - self._u.square().sum(-1)).clamp_min(0.0)
        self._rows: dict[bytes, Tensor] = {}

    def covariance(self, X: Tensor) -> list[Tensor]:
        """Σ_m(x, rows), `M x n`, for each point of X, `k x d`; the rows of the last call are kept."""
        keys = [x.numpy().tobytes() for x in X]
        # One point at a time: a product over several points rounds differently, and a row must not
        # depend on which other points are asked for.
        known = self._rows
        self._rows = rows = {
            key: known[key] if key in known else self._row(x) for key, x in zip(keys, X, strict=True)
        }
        return [rows[key] for key in keys]

    def _row(self, x: Tensor) -> Tensor:
        inverse = self.tasks.lengthscale[:, None, : self.tasks.d].reciprocal()
        squared = squared_distance(self.table * inverse, x[None] * inverse)
        prior = self.tasks.outputscale[:, None, None] * correlation(self.tasks.kernel, squared)
        u = self.tasks.whiten(x[None])[0].unsqueeze(-1)  # M x N x 1
        return (prior - self._u @ u).squeeze(-1)


class TableCache:
    """Keeps the posteriors at the table that was asked for last; a pickled copy starts empty."""

    def __init__(self) -> None:
        self._rows: TaskPosteriorsOnTable | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[TableCache], tuple[()]]:
        return TableCache, ()

    def rows(self, tasks: TaskGPs, table: Tensor) -> TaskPosteriorsOnTable | None:
        """The posteriors of these tasks at a table, or None if they are too large to keep."""
        with self._lock:
            kept = self._rows
            if kept is None or kept.tasks is not tasks or not torch.equal(kept.table, table):
                if len(table) * tasks.X.shape[0] * tasks.X.shape[1] > _MOST_NUMBERS:
                    return None
                kept = self._rows = TaskPosteriorsOnTable(tasks, table)
            return kept
