r"""StackGP (Golovin et al., "Google Vizier", KDD 2017, section 3.3): GPs stacked in the order of tasks.

Level i is a GP on the residuals of its own data: what the levels below do not explain. The new task is
the top level.

$$\mu_i(x) = \mu'_i(x) + \mu_{i-1}(x), \qquad \mu'_i \text{ fitted to } z_i - \mu_{i-1}(X_i).$$

Choices:

- z_i is y_i standardized by itself (the paper's appendix C.1), also at the top. A residual is not
  standardized again: μ_{i-1} is the prior mean of level i in units of z_i (the paper: "the posterior
  mean function of each GP is used as the prior mean function of the next GP"). μ'_i has these units,
  too.
- The variance is that of the top residual GP alone (the paper: "only the information about the mean
  prediction is propagated"). Vizier combines the deviations of all levels, `deviations="geometric"`:
  $\sigma_i = {\sigma'_i}^{\beta_i} \sigma_{i-1}^{1-\beta_i}$ with
  $\beta_i = \alpha |D_i| / (\alpha |D_i| + |D_{i-1}|)$, σ_1 = σ'_1. Vizier does not say what the
  covariance of two points is. Here it is σ(x) σ(x') times the correlation of the top GP. A top without
  data has β = 0, so that the deviation is that of the levels below.
- The lengthscales of the top have the prior LogNormal(0.5, 1.5). All other priors are those of a
  meta-task (appendix: only ScaML-GP has another prior of the outputscale).
- If a past task lacks parameters of the space, the levels below are evaluated at the centre of these
  parameters. Columns that only one past task has belong to its own level alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal, NamedTuple, Self, get_args

import torch
from torch import Tensor

from scaml.common.checks import check_seed
from scaml.common.parallel import effective_n_jobs, one_thread
from scaml.errors import SettingError
from scaml.gp.column_selection import fit_selecting_columns
from scaml.gp.hyperpriors import META_TASK, TEST_TASK
from scaml.gp.kernels import KernelName, check_kernel, correlation, left_factor
from scaml.gp.map_fit import FitInput
from scaml.gp.moments_model import MomentsModel
from scaml.gp.posterior import LEAST_VARIANCE
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units, standardize
from scaml.methods.base import MetaPrior, Method, check_meta, check_sqrt_beta
from scaml.methods.shared.modular import check_hyperparameters, hyperparameters_of
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.scaml_gp import ScaMLGP
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["Stack", "StackGP", "StackGPPrior"]

DeviationsName = Literal["top", "geometric"]

_TOP = replace(META_TASK, lengthscale=TEST_TASK.lengthscale)
_STANDARDIZED = Units(torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64))
_CENTRE = 0.5
# Entries of the tensors from which all levels' variances are computed; larger ones exceed the cache.
_CACHED_ENTRIES = 2**18


@dataclass(frozen=True)
class StackGP(Method):
    """StackGP; the order of the past tasks is the order of the levels.

    Args:
        kernel: "se" or "matern52".
        deviations: "top" for the deviation of the top level alone, or Vizier's "geometric" mean of the
            deviations of all levels.
        alpha: α, how much more a point of one level counts in that mean than one of the level below.
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    ordered: ClassVar[bool] = True
    publication: ClassVar[str] = "Golovin et al., KDD 2017"
    cost: ClassVar[str] = "one exact GP per task, one after the other; a step grows with M N n_t + n_t³"
    summary: ClassVar[str] = "A stack of GPs, each on the residuals of the ones before it; means only."

    kernel: KernelName = "se"
    deviations: DeviationsName = "top"
    alpha: float = 1.0
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        if self.deviations not in get_args(DeviationsName):
            raise SettingError(f"deviations is {self.deviations!r}; choose 'top' or 'geometric'.")
        if not (isinstance(self.alpha, int | float) and 0 < self.alpha < math.inf):
            raise SettingError(f"alpha is {self.alpha!r}; give a positive number.")
        check_sqrt_beta(self.sqrt_beta)

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> StackGPPrior:
        """Fit one level after the other. Nothing can run in parallel, so n_jobs is only checked."""
        check_meta(meta)
        seed = check_seed(seed)
        effective_n_jobs(n_jobs)
        with one_thread():
            return _stacked(self, meta, [], seed)

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> StackGPPrior:
        """Stack GPs whose hyperparameters are known."""
        check_hyperparameters(meta, state)
        with one_thread():
            return _stacked(self, meta, _rows(state, meta), 0)


@dataclass(frozen=True, eq=False)
class StackGPPrior(MetaPrior):
    """The stack without its top.

    Args:
        method: The settings.
        meta: The past tasks, the lowest level first.
        levels: The GPs of the residuals, μ'_i and σ'_i, in units of each task's y_std.
    """

    method: StackGP
    meta: MetaData
    levels: TaskGPs

    def state(self) -> dict[str, Tensor]:
        return hyperparameters_of(self.levels)

    def add(self, task: Task, *, seed: int = 0, n_jobs: int = 1) -> Self:
        """Fit one more level; the levels below do not change."""
        meta = self.meta.and_task(task)
        seed = check_seed(seed)
        effective_n_jobs(n_jobs)
        with one_thread():
            levels = _stacked(self.method, meta, _rows(self.state(), self.meta), seed).levels
        prior = replace(self, meta=meta, levels=levels)
        return prior if self.space is None else prior.in_space(self.space)

    def condition(self, task: Task, *, seed: int = 0) -> Stack:
        """Fit the top level to the residuals of the task's data."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            units = standardize(task.y)
            below = _Means(self.levels)
            residual = (task.y - units.offset) / units.scale - below(task.X)
            top = fit_plain_gp(
                Task(task.X, residual, name=task.name),
                _STANDARDIZED,
                kernel=self.method.kernel,
                seed=seed,
                priors=_TOP,
            )
            powers = None
            if self.method.deviations == "geometric":
                sizes = [past.n for past in self.meta] + [task.n]
                powers = _powers(sizes, self.method.alpha)
            return Stack(self.levels, top, units, powers=powers)


class Stack(MomentsModel):
    """The sum of all levels, in the units of the new task.

    Args:
        levels: The GPs of the past tasks' residuals.
        top: The GP of the new task's residuals, standardized.
        units: Offset and scale of the new task's y.
        powers: M + 1 exponents of the levels' deviations, the top's last; None for the top's deviation.
    """

    def __init__(
        self, levels: TaskGPs, top: ScaMLGP, units: Units, *, powers: Tensor | None = None
    ) -> None:
        super().__init__(units, top.noise)
        self.levels = levels
        self.top = top
        self.powers = powers
        self._below = _Means(levels)

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        mean, covariance = self.top.moments(X)
        if self.powers is not None:
            stretch = self._stretch(X, covariance.diagonal(dim1=-2, dim2=-1), self.powers)
            covariance = stretch.unsqueeze(-1) * covariance * stretch.unsqueeze(-2)
        return self._below(X) + mean, covariance

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        covariance = self.top.cross(X, Z)
        if self.powers is None:
            return covariance
        variances = (self.top.moments(P.unsqueeze(-2))[1][..., 0, 0] for P in (X, Z))
        left, right = (self._stretch(P, v, self.powers) for P, v in zip((X, Z), variances, strict=True))
        return left.unsqueeze(-1) * covariance * right.unsqueeze(-2)

    def _stretch(self, X: Tensor, variance: Tensor, powers: Tensor) -> Tensor:
        """σ(x) / σ'_t(x), `batch x q`, given σ'_t²: it scales the top's covariance to the stack's."""
        at_once = max(1, _CACHED_ENTRIES // self.levels.targets.numel())
        parts = X.reshape(-1, X.shape[-1]).split(at_once)
        least = LEAST_VARIANCE * self.levels.outputscale.unsqueeze(-1)
        logs = [self.levels.variance(part).clamp_min(least).log() for part in parts]
        below = torch.cat([powers[:-1] @ part for part in logs]).view(X.shape[:-1])
        return torch.exp(0.5 * (below + (powers[-1] - 1.0) * variance.log()))


class _Means:
    """Σ μ'_i of some levels, computed from kernels and coefficients alone, without variances."""

    def __init__(self, levels: TaskGPs) -> None:
        self._kernel, self._d = levels.kernel, levels.d
        self._inverse, self._right = levels.squared_distances()
        # u^T L^-1 r = R (o L^-1)^T L^-1 r.
        self._coefficients = levels.whitener.mT @ levels.targets.unsqueeze(-1)

    def __call__(self, X: Tensor) -> Tensor:
        """`batch x q` at `batch x q x d`, standardized; differentiable."""
        left = left_factor(X.reshape(-1, self._d) * self._inverse)
        R = correlation(self._kernel, torch.matmul(left, self._right).clamp_min_(0.0))
        return torch.matmul(R, self._coefficients).sum(0).view(X.shape[:-1])


class _Row(NamedTuple):
    """Hyperparameters of one level."""

    lengthscale: Tensor  # one per column; infinite if the task lacks the column
    outputscale: Tensor
    noise: Tensor


def _stacked(method: StackGP, meta: MetaData, given: list[_Row], seed: int) -> StackGPPrior:
    """The stack of the past tasks: the first levels as given, the others fitted."""
    rows: list[_Row] = []
    below: list[_Means] = []
    targets = torch.zeros(len(meta), max(task.n for task in meta), dtype=torch.float64)
    for i, task in enumerate(meta):
        unit = standardize(task.y)
        X = torch.where(task.known, task.X, _CENTRE)
        residual = (task.y - unit.offset) / unit.scale
        # Level by level, each in its own shape, so that a level added later changes no bit of these.
        for means in below:
            residual = residual - means(X)
        named = task.called(meta.names[i])
        row = given[i] if i < len(given) else _fit(named, residual, method.kernel, seed)
        level = TaskGPs.condition(MetaData([named]), kernel=method.kernel, **_state([row]))
        root = level.whitener[0] / level.outputscale
        targets[i, : task.n] = (root * residual).sum(-1)
        below.append(_Means(replace(level, targets=targets[i : i + 1, : task.n])))
        rows.append(row)
    # The whiteners do not depend on y. The targets are those of the residuals, not of y.
    levels = TaskGPs.condition(meta, kernel=method.kernel, **_state(rows))
    return StackGPPrior(method, meta, replace(levels, targets=targets))


def _fit(task: Task, residual: Tensor, kernel: KernelName, seed: int) -> _Row:
    """Fit the hyperparameters of one level."""
    own = task.extra.shape[1]
    data = FitInput(task.name, task.inputs, residual)
    theta = fit_selecting_columns([data], own, kernel=kernel, seed=seed, n_jobs=1)[0]
    lengthscale = torch.full((task.d + own,), torch.inf, dtype=torch.float64)
    lengthscale[torch.cat([task.known, torch.ones(own, dtype=torch.bool)])] = theta[:-2]
    return _Row(lengthscale, theta[-2], theta[-1])


def _rows(state: dict[str, Tensor], meta: MetaData) -> list[_Row]:
    """Split a state into its levels, without the columns that only other tasks have."""
    widths = [meta.d + task.extra.shape[1] for task in meta]
    return [
        _Row(state["lengthscale"][i, :width], state["outputscale"][i], state["noise"][i])
        for i, width in enumerate(widths)
    ]


def _state(rows: list[_Row]) -> dict[str, Tensor]:
    """The inverse of `_rows`."""
    widest = max(len(row.lengthscale) for row in rows)
    lengthscale = torch.full((len(rows), widest), torch.inf, dtype=torch.float64)
    for i, row in enumerate(rows):
        lengthscale[i, : len(row.lengthscale)] = row.lengthscale
    return {
        "lengthscale": lengthscale,
        "outputscale": torch.stack([row.outputscale for row in rows]),
        "noise": torch.stack([row.noise for row in rows]),
    }


def _powers(sizes: list[int], alpha: float) -> Tensor:
    """Exponents p with σ = Π σ'_i^{p_i}: the recursion of geometric means, unrolled."""
    powers = [1.0]
    for lower, upper in pairwise(sizes):
        beta = alpha * upper / (alpha * upper + lower)
        powers = [(1.0 - beta) * p for p in powers] + [beta]
    return torch.tensor(powers, dtype=torch.float64)
