"""ScaML-GP (Tighineanu et al., AISTATS 2024).

One exact GP a past task; their weighted sum plus a residual GP is the prior of the new one.
Algorithm 1 of the paper: `ScaML.meta_fit` is its line 2, `ScaMLPrior.condition` its lines 3 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from torch import Tensor

from scaml.acquisition import UpperConfidenceBound
from scaml.data import MetaData, Task
from scaml.errors import StoreError
from scaml.hyperpriors import WEIGHTS, WeightsName, check_weights
from scaml.kernels import KernelName, check_kernel
from scaml.methods.base import MetaPrior, Method, check_meta, check_seed, check_sqrt_beta, joined
from scaml.normalization import Levels, NormalizationName, check_normalization, normalize
from scaml.parallel import one_thread
from scaml.scaml_gp import ScaMLGP
from scaml.task_gps import TaskGPs
from scaml.weights import Cache, fit_weights

__all__ = ["ScaML", "ScaMLPrior"]


@dataclass(frozen=True)
class ScaML(Method):
    """ScaML-GP.

    Args:
        kernel: "se", the ARD squared-exponential of the paper, or "matern52".
        normalization: How y_t is scaled: "pooled", or the paper's "union".
        weights: "positive" with the paper's Γ(1, 1), or "signed" with N(0, 1).
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    modular: ClassVar[bool] = True

    kernel: KernelName = "se"
    normalization: NormalizationName = "pooled"
    weights: WeightsName = "positive"
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        check_normalization(self.normalization)
        check_weights(self.weights)
        check_sqrt_beta(self.sqrt_beta)

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> ScaMLPrior:
        """Fit one GP to every past task."""
        check_meta(meta)
        seed = check_seed(seed)
        return self._prior(meta, TaskGPs.fit(meta, kernel=self.kernel, seed=seed, n_jobs=n_jobs))

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> ScaMLPrior:
        """Condition GPs of known hyperparameters on their data."""
        columns = meta.d + max(task.extra.shape[1] for task in meta)
        for name in ("lengthscale", "outputscale", "noise"):
            value, shape = state[name], (len(meta),) if name != "lengthscale" else (len(meta), columns)
            if value.shape != shape or value.dtype != torch.float64 or not (value > 0).all():
                raise StoreError(f"its {name} is not of shape {shape}, positive and in float64")
        with one_thread():
            return self._prior(meta, TaskGPs.condition(meta, kernel=self.kernel, **state))

    def _prior(self, meta: MetaData, task_gps: TaskGPs) -> ScaMLPrior:
        return ScaMLPrior(self, meta, task_gps, Levels.of([task.y for task in meta]))


@dataclass(frozen=True, eq=False)
class ScaMLPrior(MetaPrior):
    """The meta-tasks' posteriors, from which every new task's prior is made."""

    method: ScaML
    meta: MetaData
    task_gps: TaskGPs
    levels: Levels

    @property
    def names(self) -> tuple[str, ...]:
        return self.task_gps.names

    @property
    def d(self) -> int:
        return self.task_gps.d

    def state(self) -> dict[str, Tensor]:
        gps = self.task_gps
        return {"lengthscale": gps.lengthscale, "outputscale": gps.outputscale, "noise": gps.noise}

    def add(self, task: Task, *, seed: int = 0, n_jobs: int = 1) -> ScaMLPrior:
        """Fit one GP to the new task; the others stay as they are."""
        meta = self.meta.and_task(task)
        new = self.method.meta_fit(MetaData([meta[len(meta) - 1]]), seed=seed, n_jobs=n_jobs)
        prior = self.method.restore(meta, joined([self.state(), new.state()]))
        return prior if self.space is None else prior.in_space(self.space)

    def condition(self, task: Task, *, seed: int = 0) -> ScaMLGP:
        """Learn the weights and the residual GP from the task's data and condition on them."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            units = normalize(self.method.normalization, task.y, self.levels)
            mean, covariance = self.task_gps.posterior(task.X)
            z = (task.y - units.offset) / units.scale
            cache = Cache(X=task.X, z=z, mean=mean, covariance=covariance.flatten(1))
            theta = fit_weights(self.method.kernel, cache, WEIGHTS[self.method.weights], seed=seed)
            return ScaMLGP(self.task_gps, task, units, theta)

    def acquisition(self, model: Model) -> AcquisitionFunction:
        return UpperConfidenceBound(model, sqrt_beta=self.method.sqrt_beta)
