r"""How similar the past tasks are, from which the prior of the weights and of the residual is learned.

Every past task is explained by the average of the others, as if it were the test-task. With $a_m(x)$
the mean of the other tasks' $\mu_k(x)$, centered over X_m, least squares gives its share $c_m$ and the
residual variance $v_m$, in the standardized units of the task:

$$z_m \approx c_m a_m(X_m), \qquad v_m = \operatorname{mean} (z_m - c_m a_m(X_m))^2.$$

Mean and spread of c_m over the tasks become those of c, the common value of the weights. Unrelated
smooth functions correlate by chance. With C the correlations of the residual, taken to be those of the
task itself, the squared standard error of c_m is

$$e_m^2 = v_m\, \frac{a_m^T C a_m}{(a_m^T a_m)^2}.$$

Only variance of c_m beyond this error counts as spread, and the mean is shrunk towards 0 by it (James
and Stein): if past tasks agree no more than unrelated ones would, the past gets weight 0. Mean and
spread of log v_m become those of the residual's log variance. The residual is about as smooth and as
noisy as the tasks themselves, so the priors of its lengthscales and of the noise have the mean and
spread of the past tasks' own.
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

__all__ = ["PastSimilarity", "pooled"]

# Defaults for tasks of which nothing is known, and how many tasks a default counts for.
_SHARE, _RESIDUAL, _LENGTHSCALE, _NOISE = 1.0, -1.0, -0.7, -7.0
_WORTH = 1.0
_RESIDUAL_SPREAD, _KERNEL_SPREAD = 0.5, 0.5  # at least
_SHARE_SPREAD = 0.3  # at least, of the mean share
_LEAST_SHARE_SPREAD = 0.05
_RIDGE = 0.05  # added to the variance of an average: a flat average explains nothing
_LEAST_RESIDUAL = 1e-4
_LEAST_ERROR = 1e-6
_MOST_ENTRIES = 2**28  # of kernel matrices, which take a few seconds
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
        """Explain every task by the others, except constant ones and those that lack a column.

        Args:
            meta: The past tasks, as their GPs see them.
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
            LogScale(*pooled(log_v, _RESIDUAL, _RESIDUAL_SPREAD)),
            LogScale(*pooled(log_ell, _LENGTHSCALE, _KERNEL_SPREAD)),
            LogScale(*pooled(gps.noise.log(), _NOISE, _KERNEL_SPREAD)),
        )

    def kernel_priors(self) -> KernelPriors:
        """The priors of the test-task's residual kernel and noise."""
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
    # The residual has mean 0 over X_m.
    K = K - K.mean(0) - K.mean(1, keepdim=True) + K.mean()
    error = left * (average @ K @ average) / K.diagonal().mean() / (len(z) * size).square()
    return torch.stack([share, left, error])


def _share(shares: Tensor, errors: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and spread of c for one more task, beyond chance."""
    n, error = len(shares), errors.mean().clamp_min(_LEAST_ERROR)
    if n < 2:
        mean, beyond = torch.tensor(_SHARE, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    else:
        # The prior of the mean over all tasks is 1 ± 1.
        mean = (_SHARE + shares.sum() / error) / (1.0 + n / error)
        mean = mean * (1.0 - error / (n * mean.square())).clamp_min(0.0)
        beyond = ((1.0 + 1.0 / n) * shares.var() - error).clamp_min(0.0)
    least = (_SHARE_SPREAD * mean).square() + _LEAST_SHARE_SPREAD**2
    return mean, (beyond + least).sqrt()


def pooled(values: Tensor, center: float, spread: float) -> tuple[Tensor, Tensor]:
    """Mean and spread of every column, shrunk towards a default; the fewer tasks, the more.

    Infinite values, of tasks that lack the column, are left out.
    """
    there = values.isfinite()
    total = there.sum(0) + _WORTH
    mean = (values.where(there, 0.0).sum(0) + _WORTH * center) / total
    squares = (values - mean).where(there, 0.0).square().sum(0) + _WORTH * (center - mean).square()
    return mean, (squares / total + spread**2).sqrt()
