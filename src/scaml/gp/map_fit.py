"""MAP fits of many small GPs in lock step: starts, bounds, best start.

θ_m* = argmax log p(y_m | X_m, θ_m) + log p(θ_m), for all GPs and all starts at once (line 2 of
Algorithm 1). All GPs get the same random starts, and each gets a default start from its own data. So
neither the order nor the number of GPs changes a fit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from scaml.common.parallel import effective_n_jobs, run
from scaml.errors import FitError
from scaml.gp.hyperpriors import META_TASK, KernelPriors
from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import negative_log_likelihood, value_alone
from scaml.gp.linalg import keep_freed_memory
from scaml.gp.minimize import minimize

__all__ = ["STARTS", "Fit", "FitInput", "fit_gps"]

STARTS = 6  # a default start and 5 random draws from the priors

# Sizes are padded to a multiple of this. The shape of the tensors then depends on the GP's own size
# only, and so does every bit of its result.
_SIZE_STEP = 8
_TASKS_PER_BATCH = 64
_SAME_BASIN = 0.5  # in log units
_TOLERANCE = 1e-8  # of the density per observation
# Rough curvatures per observation by log ℓ, log o and log σ², on which the first steps are based.
# Measured on Branin and Hartmann 6, with both kernels: a fifth fewer evaluations.
_CURVATURE = (0.3, 0.1, 0.05)
# Entries of the n x n tensors that are evaluated at once: larger tensors leave the CPU cache.
_CACHED_ENTRIES = 2**18


class FitInput(NamedTuple):
    """The standardized data of one GP."""

    name: str
    X: Tensor  # n x d
    z: Tensor  # n


class Fit(NamedTuple):
    """MAP hyperparameters θ = (log ℓ, log o, log σ²) of M GPs."""

    theta: Tensor  # M x (d + 2)
    value: Tensor  # M, -(log p(y | θ) + log p(θ)) / n
    starts: Tensor  # M x STARTS x (d + 2), the starts of the searches
    evaluations: int


def fit_gps(
    inputs: Sequence[FitInput],
    *,
    kernel: KernelName,
    seed: int,
    priors: KernelPriors = META_TASK,
    n_jobs: int = 1,
) -> Fit:
    """Fit many GPs at once, each to its own data.

    Args:
        inputs: The data of the GPs, all with the same number of columns.
        kernel: The kernel's name.
        seed: Decides the random starts.
        priors: The priors of the hyperparameters.
        n_jobs: Number of processes.

    Raises:
        FitError: For some GP the kernel matrix is not positive definite at any start.
    """
    d = inputs[0].X.shape[-1]
    draws = priors.starts(STARTS, d, torch.Generator().manual_seed(seed))[1:]
    batches = _batches(inputs, effective_n_jobs(n_jobs))
    fitter = partial(_fit_batch, kernel=kernel, priors=priors, draws=draws)
    fits = run(fitter, [[inputs[i] for i in batch] for batch in batches], n_jobs)
    back = torch.tensor([i for batch in batches for i in batch]).argsort()
    theta, value, starts = (torch.cat(parts)[back] for parts in list(zip(*fits, strict=True))[:3])
    failed = [item.name for item, v in zip(inputs, value.tolist(), strict=True) if not math.isfinite(v)]
    if failed:
        raise FitError(
            f"No start gave a positive definite kernel matrix for {', '.join(map(repr, failed))}; look "
            "for values of X or y that are far larger than the others."
        )
    return Fit(theta, value, starts, sum(fit.evaluations for fit in fits))


def _batches(inputs: Sequence[FitInput], n_jobs: int) -> list[list[int]]:
    """The indices of the GPs in batches of one padded size; at least one batch per process."""
    most = min(_TASKS_PER_BATCH, -(-len(inputs) // n_jobs))
    by_size: dict[int, list[int]] = defaultdict(list)
    for i, item in enumerate(inputs):
        by_size[_padded(len(item.z))].append(i)
    return [
        members[k : k + most]
        for _, members in sorted(by_size.items())
        for k in range(0, len(members), most)
    ]


def _padded(n: int) -> int:
    return -(-n // _SIZE_STEP) * _SIZE_STEP


def _fit_batch(
    inputs: list[FitInput], *, kernel: KernelName, priors: KernelPriors, draws: Tensor
) -> Fit:
    """Fit GPs of one padded size from all starts in lock step."""
    tasks, d, n = len(inputs), inputs[0].X.shape[-1], _padded(len(inputs[0].z))
    X = torch.zeros(tasks, n, d, dtype=torch.float64)
    z, mask = torch.zeros(tasks, n, dtype=torch.float64), torch.zeros(tasks, n, dtype=torch.float64)
    for i, item in enumerate(inputs):
        rows = len(item.z)
        X[i, :rows], z[i, :rows], mask[i, :rows] = item.X, item.z, 1.0
    counts = mask.sum(-1)
    full = bool((mask > 0).all())
    chunk = max(1, _CACHED_ENTRIES // n**2)

    def chunks(theta: Tensor, task: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor | None, Tensor]]:
        for rows, part in zip(theta.split(chunk), task.split(chunk), strict=True):
            yield rows, part, None if full else mask[part], counts[part]

    def value(theta: Tensor, task: Tensor) -> Tensor:
        return torch.cat(
            [
                (value_alone(kernel, rows, X[part], z[part], mask=m) - priors.log_prob(rows)) / count
                for rows, part, m, count in chunks(theta, task)
            ]
        )

    def value_and_slope(theta: Tensor, task: Tensor) -> tuple[Tensor, Tensor]:
        values, slopes = [], []
        for rows, part, m, count in chunks(theta, task):
            evaluation = negative_log_likelihood(kernel, rows, X[part], z[part], mask=m)
            values.append((evaluation.value - priors.log_prob(rows)) / count)
            slopes.append((evaluation.slope - priors.slope(rows)) / count.unsqueeze(-1))
        return torch.cat(values), torch.cat(slopes)

    keep_freed_memory()
    with torch.inference_mode():
        fit = _search(value, value_and_slope, tasks, priors, draws)
    # Tensors made in inference mode cannot be used with autograd later; their copies can.
    return Fit(fit.theta.clone(), fit.value.clone(), fit.starts.clone(), fit.evaluations)


def _search(
    value: Callable[[Tensor, Tensor], Tensor],
    value_and_slope: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    tasks: int,
    priors: KernelPriors,
    draws: Tensor,
) -> Fit:
    """The best of all starts of each GP; both functions take θ and the GPs that its rows belong to."""
    d = draws.shape[-1] - 2
    lower, upper = priors.bounds(d)
    scouts = _scouts(d).clamp(lower, upper)
    every = torch.arange(tasks)
    scouted = value(scouts.repeat(tasks, 1), every.repeat_interleave(len(scouts)))
    default = scouts[scouted.view(tasks, -1).nan_to_num(torch.inf).argmin(-1)]
    starts = torch.cat([default.unsqueeze(1), draws.expand(tasks, -1, -1)], dim=1)
    task = every.repeat_interleave(STARTS)
    by_ell, by_outputscale, by_noise = _CURVATURE
    curvature = np.array([by_ell] * d + [by_outputscale, by_noise])
    best = minimize(
        lambda theta, problem: value_and_slope(theta, task[problem]),
        starts.flatten(0, 1),
        lower,
        upper,
        task,
        same_basin=_SAME_BASIN,
        tolerance=_TOLERANCE,
        metric=lambda theta, free, problem: lambda slope: slope / curvature,
    )
    return Fit(best.x, best.value, starts, best.evaluations)


def _scouts(d: int) -> Tensor:
    """A grid of a few (log ℓ, log o, log σ²); the best one for a GP is its default start.

    The likelihood of few data has more than one optimum: short lengthscales explain what long ones
    attribute to noise. The best point of a grid is in the right region more often than any fixed
    point. The shortest ℓ is about the distance between neighbours of 1000 points.
    """
    shortest, longest = 1000.0 ** (-1.0 / d), 2.0
    steps = math.ceil(math.log2(longest / shortest))
    ells = [longest * (shortest / longest) ** (k / steps) for k in range(steps + 1)]
    grid = [
        [ell] * d + [min(max(5.0 * ell, 1.0), 5.0), noise] for ell in ells for noise in (1e-2, 1e-4)
    ]
    return torch.tensor(grid, dtype=torch.float64).log()
