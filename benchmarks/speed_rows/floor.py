"""The bare arithmetic: products, exponentials and factorizations of a step, and nothing around them.

No gradient, no line search, no choice: what a perfect implementation of the same evaluations cannot go
below on this machine, unless it keeps results of earlier steps or evaluates less often.
"""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.timing import Seconds, medians

__all__ = ["likelihoods", "step", "table_step"]

_CHUNK = 256  # points at once, as in a search
_CACHED = 2**18  # entries of the matrices factorized at once


def likelihoods(n: int, d: int, evaluations: int, repeats: int = 9) -> Seconds:
    """Kernel matrix, Cholesky factor, inverse and one product for the gradient, so many times."""
    batch = max(1, min(evaluations, _CACHED // n**2))
    X = _random(batch, n, d)
    identity = torch.eye(n, dtype=torch.float64)

    def once() -> None:
        K = (X @ X.mT).neg_().exp_() + identity
        X.mT @ torch.cholesky_inverse(torch.linalg.cholesky_ex(K)[0])

    cpu, wall = medians(once, repeats=repeats)[0]
    return Seconds(cpu / batch * evaluations, wall / batch * evaluations)


def step(
    shape: tuple[int, int, int], n_t: int, likelihood_evaluations: int, points: int, repeats: int = 3
) -> Seconds:
    """The fit of θ_t, and the posterior of every past task and of the new one at so many points.

    Args:
        shape: M, N and d of the past.
        n_t: Observations of the new task.
        likelihood_evaluations: How often the likelihood of θ_t is evaluated.
        points: At how many points the acquisition function is evaluated.
        repeats: Number of turns.
    """
    M, N, d = shape
    past, whitener, linear = _random(M, d + 2, N), _random(M, N, N), _random(M, N, 1 + n_t)
    known, root = _random(d + 2, n_t), _random(n_t, n_t)
    queries = _random(min(_CHUNK, points), d + 2)
    R, u = _random(len(queries), N), _random(len(queries), N)
    out = _random(len(queries), 1 + n_t)

    def once() -> None:
        for m in range(M):  # in reused buffers
            torch.mm(queries, past[m], out=R)
            R.neg_().exp_()
            torch.mm(R, whitener[m], out=u)
            torch.mm(u, linear[m], out=out)
            u.square_().sum(-1)
        own = (queries @ known).neg_().exp_()
        (own @ root).square_().sum(-1)

    cpu, wall = medians(once, repeats=repeats)[0]
    chunks = points / len(queries)
    fit = likelihoods(n_t, d, likelihood_evaluations)
    return Seconds(cpu * chunks + fit.cpu, wall * chunks + fit.wall)


def table_step(
    shape: tuple[int, int, int],
    n_t: int,
    rows: int,
    likelihood_evaluations: int,
    *,
    draws: int,
    repeats: int = 9,
) -> Seconds:
    """One more column of covariances with a table whose moments are kept, and all values there."""
    M, N, d = shape
    table, features = _random(rows, d + 2), _random(M, rows, N)
    newest, feature = _random(d + 2, M), _random(M, N, 1)
    covariances, root, values = _random(rows, n_t), _random(n_t, n_t), _random(n_t, draws)

    def once() -> None:
        (table @ newest).neg_().exp_()
        for m in range(M):
            features[m] @ feature[m]
        (covariances @ root).square_().sum(-1)
        (covariances @ values).exp_().sum(-1)

    cpu, wall = medians(once, repeats=repeats)[0]
    fit = likelihoods(n_t, d, likelihood_evaluations)
    return Seconds(cpu + fit.cpu, wall + fit.wall)


def _random(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(*shape, dtype=torch.float64, generator=generator)
