r"""`TaskGPs`: M exact GPs, one per task, as stacked tensors.

All tasks at once, with $L_m L_m^T = k_m(X_m, X_m) + \sigma_m^2 I$ and $u_m(x) = L_m^{-1} k_m(X_m, x)$:

$$\mu_m(x) = u_m(x)^T L_m^{-1} y_m, \qquad
\Sigma_m(x, x') = k_m(x, x') - u_m(x)^T u_m(x').$$
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor

from scaml.gp.column_selection import fit_selecting_columns
from scaml.gp.kernels import KernelName, correlation, left_factor, right_factor, squared_distance
from scaml.gp.linalg import cholesky, inverse_of_lower
from scaml.gp.map_fit import FitInput
from scaml.gp.units import Units, standardize
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["TaskGPs"]

_LOG_2PI = math.log(2.0 * math.pi)
_CACHED_ENTRIES = 2**17  # of correlations at once


@dataclass(frozen=True, eq=False)
class TaskGPs:
    """M exact zero-mean GPs, one per task, each on its own standardized y.

    N is the largest N_m; smaller tasks are padded with rows that have no effect. The first d of the D
    columns are the parameters of the space. The others are extra columns of single tasks, held at 0
    when the task predicts. A lengthscale is infinite where the task does not have the column.
    """

    kernel: KernelName
    names: tuple[str, ...]
    d: int  # parameters of the space
    lengthscale: Tensor  # M x D
    outputscale: Tensor  # M, variance of the signal in units of y_std²
    noise: Tensor  # M, variance of the noise in units of y_std²
    y_mean: Tensor  # M
    y_std: Tensor  # M
    X: Tensor  # M x N x D, zero where padded
    whitener: Tensor  # M x N x N, o_m L_m^-1, zero where padded; maps correlations to u_m
    targets: Tensor  # M x N, L_m^-1 times the standardized y_m

    @classmethod
    def fit(cls, meta: MetaData, *, kernel: KernelName, seed: int, n_jobs: int) -> TaskGPs:
        """Line 2 of Algorithm 1: the MAP hyperparameters of each task from its own data."""
        units = [standardize(task.y) for task in meta]
        columns = _columns(meta)
        theta = torch.full((len(meta), columns.shape[1] + 2), torch.inf, dtype=torch.float64)
        # Tasks of one number of columns at a time: no result depends on the columns of other tasks.
        shapes = [
            (int(known.sum()), task.extra.shape[1]) for known, task in zip(columns, meta, strict=True)
        ]
        for shape in sorted(set(shapes)):
            chosen = [m for m in range(len(meta)) if shapes[m] == shape]
            inputs = [
                FitInput(meta.names[m], meta[m].inputs, _standardized(meta[m], units[m]))
                for m in chosen
            ]
            fitted = fit_selecting_columns(inputs, shape[1], kernel=kernel, seed=seed, n_jobs=n_jobs)
            for m, values in zip(chosen, fitted, strict=True):
                theta[m, :-2][columns[m]] = values[:-2]
                theta[m, -2:] = values[-2:]
        return cls.condition(
            meta, kernel=kernel, lengthscale=theta[:, :-2], outputscale=theta[:, -2], noise=theta[:, -1]
        )

    @classmethod
    def condition(
        cls,
        meta: MetaData,
        *,
        kernel: KernelName,
        lengthscale: Tensor,
        outputscale: Tensor,
        noise: Tensor,
    ) -> TaskGPs:
        """The GPs with given hyperparameters (`M x D`, M and M), conditioned on the tasks' data."""
        units = [standardize(task.y) for task in meta]
        z = [_standardized(task, unit) for task, unit in zip(meta, units, strict=True)]
        largest = max(task.n for task in meta)
        columns = _columns(meta)
        lengthscale = torch.where(columns, lengthscale, torch.inf)
        X = torch.zeros(len(meta), largest, columns.shape[1], dtype=torch.float64)
        whitener = torch.zeros(len(meta), largest, largest, dtype=torch.float64)
        targets = torch.zeros(len(meta), largest, dtype=torch.float64)
        # Tasks of one size at a time: no result depends on the size of other tasks.
        shapes = [(task.n, int(known.sum())) for task, known in zip(meta, columns, strict=True)]
        for n, width in sorted(set(shapes)):
            chosen = [m for m, shape in enumerate(shapes) if shape == (n, width)]
            points = torch.stack([meta[m].inputs for m in chosen])
            a = points / torch.stack([lengthscale[m][columns[m]] for m in chosen]).unsqueeze(1)
            o = outputscale[chosen]
            K = o[:, None, None] * correlation(kernel, squared_distance(a, a))
            K.diagonal(dim1=-2, dim2=-1).copy_((o + noise[chosen]).unsqueeze(-1).expand(-1, n))
            L = cholesky(K, [f"task {meta.names[m]!r}" for m in chosen])
            root = inverse_of_lower(L)
            for m in chosen:
                X[m, :n][:, columns[m]] = meta[m].inputs
            whitener[chosen, :n, :n] = o[:, None, None] * root
            # Not a matrix product, which torch rounds differently in a batch of one.
            targets[chosen, :n] = (root * torch.stack([z[m] for m in chosen]).unsqueeze(1)).sum(-1)
        return cls(
            kernel=kernel,
            names=meta.names,
            d=meta.d,
            lengthscale=lengthscale,
            outputscale=outputscale,
            noise=noise,
            y_mean=torch.stack([unit.offset for unit in units]),
            y_std=torch.stack([unit.scale for unit in units]),
            X=X,
            whitener=whitener,
            targets=targets,
        )

    @classmethod
    def none(cls, d: int, *, kernel: KernelName) -> TaskGPs:
        """No task at all (M = 0)."""
        vector = torch.empty(0, dtype=torch.float64)
        return cls(
            kernel=kernel,
            names=(),
            d=d,
            lengthscale=vector.view(0, d),
            outputscale=vector,
            noise=vector,
            y_mean=vector,
            y_std=vector,
            X=vector.view(0, 0, d),
            whitener=vector.view(0, 0, 0),
            targets=vector.view(0, 0),
        )

    def __len__(self) -> int:
        return len(self.names)

    def __getstate__(self) -> dict[str, object]:
        """The fields alone: what was derived from them is derived anew."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def subset(self, chosen: Sequence[int]) -> TaskGPs:
        """The GPs of some of the tasks, in the given order."""
        index = torch.as_tensor(chosen, dtype=torch.long)
        tensors = {f.name: getattr(self, f.name) for f in fields(self)}
        picked = {name: t[index] for name, t in tensors.items() if isinstance(t, Tensor)}
        names = tuple(self.names[i] for i in index.tolist())
        return TaskGPs(kernel=self.kernel, names=names, d=self.d, **picked)

    def whiten(self, X: Tensor) -> Tensor:
        """u_m(x) of all tasks: `batch x q x M x N` at X, `batch x q x d`; differentiable in X."""
        flat = torch.nn.functional.pad(X.flatten(0, -2), (0, self.X.shape[-1] - self.d))
        inverse = self.lengthscale.reciprocal().unsqueeze(1)
        R = correlation(self.kernel, squared_distance(flat * inverse, self.X * inverse))
        u = torch.matmul(R, self.whitener.mT)  # M x (batch q) x N
        return u.transpose(0, 1).reshape(*X.shape[:-1], len(self), self.X.shape[1])

    def squared_distances(self) -> tuple[Tensor, Tensor]:
        """1/ℓ_m, `M x 1 x d`, and the right factor, `M x (d + 2) x N`, of squared distances to X_m.

        `left_factor(x / ℓ_m)` times the right factor gives the squared distances of x to X_m. The right
        factor does not depend on x. x is 0 in the extra columns, so they count in |b|² only.
        """
        return self._factors

    @cached_property
    def _factors(self) -> tuple[Tensor, Tensor]:
        inverse = self.lengthscale.reciprocal().unsqueeze(1)
        right = right_factor(self.X * inverse)
        right = torch.cat([right[..., : self.d], right[..., -2:]], dim=-1)
        return inverse[..., : self.d], right.mT.contiguous()

    @cached_property
    def _alpha(self) -> Tensor:
        """o_m K_m^-1 y_m, `M x N x 1`: times the correlations with X_m, it gives μ_m."""
        # Not a matrix product, which torch rounds differently in a batch of one.
        pairs = zip(self.whitener, self.targets, strict=True)
        found = [(W * z.unsqueeze(-1)).sum(0) for W, z in pairs]
        return torch.stack(found).unsqueeze(-1) if found else self.targets.unsqueeze(-1)

    def _in_blocks(self, X: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Correlations of all points with X_m, `m x (batch q) x N`, a few tasks at a time.

        Larger tensors leave the CPU cache, and those of all tasks may not fit in memory.
        """
        flat, (inverse, right) = X.flatten(0, -2), self._factors
        rows = max(1, _CACHED_ENTRIES // max(1, len(flat) * self.X.shape[1]))
        for first in range(0, len(self), rows):
            tasks = slice(first, first + rows)
            squared = torch.matmul(left_factor(flat * inverse[tasks]), right[tasks]).clamp_min_(0.0)
            yield tasks, correlation(self.kernel, squared)

    def mean(self, X: Tensor) -> Tensor:
        """μ_m(x), standardized: `M x batch x q` at X, `batch x q x d`; in O(M N) per point."""
        parts = [(R @ self._alpha[tasks]).squeeze(-1) for tasks, R in self._in_blocks(X)]
        shape = (len(self), *X.shape[:-1])
        return torch.cat(parts).view(shape) if parts else X.new_zeros(shape)

    def variance(self, X: Tensor) -> Tensor:
        """Σ_m(x, x), standardized: `M x batch x q` at X, `batch x q x d`."""
        parts = [(R @ self.whitener[tasks].mT).square().sum(-1) for tasks, R in self._in_blocks(X)]
        shape = (len(self), *X.shape[:-1])
        gained = torch.cat(parts).view(shape) if parts else X.new_zeros(shape)
        return (self.outputscale.view(-1, *[1] * (X.ndim - 1)) - gained).clamp_min(0.0)

    def covariance(self, X: Tensor, Z: Tensor | None = None) -> Tensor:
        """Σ_m(x, z), standardized: `M x batch x q x k`.

        Args:
            X: `batch x q x d`.
            Z: `batch x k x d`; X itself by default.
        """
        u = self.whiten(X)
        return self._covariance(X, u, X, u) if Z is None else self._covariance(X, u, Z, self.whiten(Z))

    def posterior(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """μ_m(X) and Σ_m(X, X) in one pass: the reference of `model.past_at_rows`."""
        u = self.whiten(X)
        return self._mean(u), self._covariance(X, u, X, u)

    def log_likelihood(self) -> Tensor:
        """log p(z_m | X_m), M, of the standardized values."""
        diagonal = self.whitener.diagonal(dim1=-2, dim2=-1) / self.outputscale.unsqueeze(-1)  # 1 / L_ii
        data = diagonal > 0
        log_det = -torch.where(data, diagonal, 1.0).log().sum(-1)
        return -0.5 * (self.targets.square().sum(-1) + _LOG_2PI * data.double().sum(-1)) - log_det

    def _mean(self, u: Tensor) -> Tensor:
        return torch.einsum("...mn,mn->...m", u, self.targets).movedim(-1, 0)

    def _covariance(self, X: Tensor, u: Tensor, Z: Tensor, v: Tensor) -> Tensor:
        inverse = self.lengthscale[:, : self.d].reciprocal()
        inverse = inverse.view(len(self), *[1] * (X.ndim - 1), self.d)
        R = correlation(self.kernel, squared_distance(X * inverse, Z * inverse))
        k = self.outputscale.view(-1, *[1] * X.ndim) * R
        return k - u.movedim(-2, 0) @ v.movedim(-2, 0).mT


def _columns(meta: MetaData) -> Tensor:
    """`M x D`: whether a task has a column; the d columns of the space come first, then extra ones."""
    widest = max(task.extra.shape[1] for task in meta)
    own = torch.arange(widest)
    return torch.stack([torch.cat([task.known, own < task.extra.shape[1]]) for task in meta])


def _standardized(task: Task, unit: Units) -> Tensor:
    return (task.y - unit.offset) / unit.scale
