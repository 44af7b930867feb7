r"""How alike the past tasks are, which is how alike the new one will be.

Every past task is explained by the average of the others, as if it were the test-task: with $a_m(x)$
the mean of the other tasks' $\mu_k(x)$, centered over X_m, least squares gives its share $c_m$ and the
variance $v_m$ that is left over,

$$z_m \approx c_m a_m(X_m), \qquad v_m = \operatorname{mean} (z_m - c_m a_m(X_m))^2,$$

in the standardized units of the task. Mean and spread of c_m over the tasks are those of c, the common
value of the weights. Smooth functions that have nothing to do with each other look alike by chance:
with C the correlations of what is left over, taken for those of the task itself, c_m is off by

$$e_m^2 = v_m\, \frac{a_m^T C a_m}{(a_m^T a_m)^2}$$

on average. Only what c_m varies by beyond that is spread, and the mean is shrunk towards 0 by it (James
and Stein): tasks that are no more alike than chance would have it are worth nothing to a new one. Mean
and spread of log v_m are those of the residual's log variance. What is left over is about as smooth and
as noisy as the tasks themselves: the priors of the residual's lengthscales and of the noise have mean
and spread of the past tasks' own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scaml.gp.hyperpriors import KernelPriors, LogScale
from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["PastSimilarity"]

# What is believed of tasks of which nothing is known, and how many tasks that belief is worth.
_SHARE, _RESIDUAL, _LENGTHSCALE, _NOISE = 1.0, -1.0, -0.7, -7.0
_WORTH = 1.0
_RESIDUAL_SPREAD, _KERNEL_SPREAD = 0.5, 0.5  # at least
_SHARE_SPREAD = 0.3  # at least, of the mean share
_LEAST_SHARE_SPREAD = 0.05
_RIDGE = 0.05  # added to the variance of an average: a flat one explains nothing
_LEAST_RESIDUAL = 1e-4
_LEAST_ERROR = 1e-6
_MOST_ENTRIES = 2**28  # of kernel matrices: a few seconds
_FEWEST_ROWS = 4


@dataclass(frozen=True, eq=False)
class PastSimilarity:
    """Mean and spread over the past tasks."""

    share: Tensor  # mean of c_m
    share_spread: Tensor
    residual: LogScale  # of v_m
    lengthscale: LogScale  # d of them
    noise: LogScale

    @classmethod
    def of(cls, meta: MetaData, gps: TaskGPs) -> PastSimilarity:
        """Explain every task by the others. Not asked: constant ones, and those that lack a column.

        Args:
            meta: The past tasks, as their GPs have seen them.
            gps: The GPs.
        """
        asked = [m for m, task in enumerate(meta) if task.known.all() and _varies(task)]
        found = torch.empty(0, 3, dtype=torch.float64)
        if len(meta) > 1 and asked:
            entries = len(asked) * len(meta) * gps.X.shape[1]
            rows = max(_FEWEST_ROWS, _MOST_ENTRIES // entries)
            found = torch.stack([_explained(m, meta, gps, rows) for m in asked])
        log_v = found[:, 1].clamp_min(_LEAST_RESIDUAL).log()
        log_ell = gps.lengthscale[:, : gps.d].log()
        return cls(
            *_share(found[:, 0], found[:, 2]),
            LogScale(*_pooled(log_v, _RESIDUAL, _RESIDUAL_SPREAD)),
            LogScale(*_pooled(log_ell, _LENGTHSCALE, _KERNEL_SPREAD)),
            LogScale(*_pooled(gps.noise.log(), _NOISE, _KERNEL_SPREAD)),
        )

    def kernel_priors(self) -> KernelPriors:
        """Those of the test-task's residual and noise."""
        return KernelPriors(self.lengthscale, self.residual, self.noise)


def _varies(task: Task) -> bool:
    return task.n > 1 and bool(task.y.max() > task.y.min())


def _explained(m: int, meta: MetaData, gps: TaskGPs, rows: int) -> Tensor:
    """c_m, v_m and e_m²."""
    task = meta[m]
    chosen = torch.linspace(0, task.n - 1, min(rows, task.n), dtype=torch.float64).round().long()
    z = (task.y[chosen] - gps.y_mean[m]) / gps.y_std[m]
    means = gps.mean(task.X[chosen])
    average = (means.sum(0) - means[m]) / (len(meta) - 1)
    average, z = average - average.mean(), z - z.mean()
    size = average.square().mean() + _RIDGE
    share = (z * average).mean() / size
    left = (z - share * average).square().mean()
    a = gps.X[m, chosen] / gps.lengthscale[m]
    K = gps.outputscale[m] * correlation(gps.kernel, squared_distance(a, a))
    K.diagonal().add_(gps.noise[m])
    # What is left over has mean 0 over X_m.
    K = K - K.mean(0) - K.mean(1, keepdim=True) + K.mean()
    error = left * (average @ K @ average) / K.diagonal().mean() / (len(z) * size).square()
    return torch.stack([share, left, error])


def _share(shares: Tensor, errors: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and spread of c: of one more task, beyond chance."""
    n, error = len(shares), errors.mean().clamp_min(_LEAST_ERROR)
    if n < 2:
        mean, beyond = torch.tensor(_SHARE, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    else:
        # The mean of all tasks is believed to be 1 ± 1 anyway.
        mean = (_SHARE + shares.sum() / error) / (1.0 + n / error)
        mean = mean * (1.0 - error / (n * mean.square())).clamp_min(0.0)
        beyond = ((1.0 + 1.0 / n) * shares.var() - error).clamp_min(0.0)
    least = (_SHARE_SPREAD * mean).square() + _LEAST_SHARE_SPREAD**2
    return mean, (beyond + least).sqrt()


def _pooled(values: Tensor, center: float, spread: float) -> tuple[Tensor, Tensor]:
    """Mean and spread of every column, drawn to what is believed anyway the more, the fewer there are.

    Infinite values, of tasks that do not know the column, are left out.
    """
    there = values.isfinite()
    total = there.sum(0) + _WORTH
    mean = (values.where(there, 0.0).sum(0) + _WORTH * center) / total
    squares = (values - mean).where(there, 0.0).square().sum(0) + _WORTH * (center - mean).square()
    return mean, (squares / total + spread**2).sqrt()
