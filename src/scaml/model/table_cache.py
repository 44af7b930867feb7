r"""The meta-tasks at the rows of a table, where one study asks again and again.

Posterior means and variances of the meta-tasks at the rows never change; a new observation x adds one
row of covariances $\Sigma_m(x, \cdot)$. What remains of a step are sums over tasks.
"""

from __future__ import annotations

import threading

import torch
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs

__all__ = ["TableCache", "TaskPosteriorsOnTable"]

_MOST_NUMBERS = 2**27  # kept of a table: a gigabyte
_CHUNK = 1024  # rows at once: more is no faster


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
        """Σ_m(x, rows), `M x n`, for each of the points X, `k x d`; those of the last call are kept."""
        keys = [x.numpy().tobytes() for x in X]
        # Point by point: a product over several rounds differently, and rows must not depend on others.
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
    """The rows of the table that was last asked for; empty again in another process."""

    def __init__(self) -> None:
        self._rows: TaskPosteriorsOnTable | None = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[TableCache], tuple[()]]:
        return TableCache, ()

    def rows(self, tasks: TaskGPs, table: Tensor) -> TaskPosteriorsOnTable | None:
        """The rows of a table, or None if they are too many to keep."""
        with self._lock:
            kept = self._rows
            if kept is None or not torch.equal(kept.table, table):
                if len(table) * tasks.X.shape[0] * tasks.X.shape[1] > _MOST_NUMBERS:
                    return None
                kept = self._rows = TaskPosteriorsOnTable(tasks, table)
            return kept
