r"""MAP fits that drop extra columns which do not matter.

The extra columns of a task are those that its space does not have. When the task's GP predicts, they
are held at one value. The paper has no such columns, and its lengthscale prior Γ(3, 6) does not allow a
column to be irrelevant. Under a flat prior, an irrelevant column still explains some of the noise. So
the extra column with the longest lengthscale is dropped, one after the other, as long as the
likelihood falls by less than a free parameter is worth (Schwarz 1978),

$$\log p(y \mid \theta^*) - \log p(y \mid \theta^*_{-}) < \tfrac12 \log n.$$

A dropped column is one of infinite lengthscale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from scaml.gp.hyperpriors import META_TASK
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import FitInput, fit_gps

__all__ = ["fit_selecting_columns"]


def fit_selecting_columns(
    inputs: Sequence[FitInput], extra: int, *, kernel: KernelName, seed: int, n_jobs: int
) -> Tensor:
    """θ = (ℓ, o, σ²), `M x (D + 2)`, of GPs with D columns; ℓ is infinite where a column is dropped.

    Args:
        inputs: The data of the GPs, all with D columns.
        extra: The number of extra columns; they are the last ones.
        kernel: The kernel's name.
        seed: Decides the random starts.
        n_jobs: Number of processes.
    """
    D = inputs[0].X.shape[-1]
    theta = torch.full((len(inputs), D + 2), torch.inf, dtype=torch.float64)
    kept = [list(range(D)) for _ in inputs]
    best = [-math.inf] * len(inputs)
    tried = kept
    waiting = list(range(len(inputs)))
    for free in range(extra, -1, -1):
        priors = replace(META_TASK, free=free)
        data = [inputs[m]._replace(X=inputs[m].X[:, tried[m]]) for m in waiting]
        fit = fit_gps(data, kernel=kernel, seed=seed, priors=priors, n_jobs=n_jobs)
        sizes = torch.tensor([len(item.z) for item in data], dtype=torch.float64)
        found = (-sizes * fit.value - priors.log_prob(fit.theta)).tolist()
        worth = (0.5 * sizes.log()).tolist()
        still = []
        for m, row, likelihood, penalty in zip(waiting, fit.theta.exp(), found, worth, strict=True):
            if likelihood > best[m] - penalty:
                best[m], kept[m] = likelihood, tried[m]
                theta[m, :-2] = torch.inf
                theta[m, kept[m]], theta[m, -2:] = row[:-2], row[-2:]
                still.append(m)
        waiting = still if free else []
        tried = [_shorter(columns, theta[m], free) for m, columns in enumerate(kept)]
        if not waiting:
            break
    return theta


def _shorter(columns: list[int], theta: Tensor, free: int) -> list[int]:
    """The columns without the one of the last `free` that has the longest lengthscale."""
    if not free:
        return columns
    longest = max(columns[len(columns) - free :], key=lambda column: float(theta[column]))
    return [column for column in columns if column != longest]
