"""ScaML-GP (Tighineanu et al., AISTATS 2024).

One exact GP a past task; their weighted sum plus a residual GP is the prior of the new one.
Algorithm 1 of the paper: `ScaML.meta_fit` is its line 2, `ScaMLPrior.condition` its lines 3 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from botorch.models.model import Model
from torch import Tensor

from scaml.data import MetaData, Task
from scaml.hyperpriors import WEIGHTS, WeightsName, check_weights
from scaml.kernels import KernelName, check_kernel
from scaml.methods.base import check_seed, check_sqrt_beta
from scaml.methods.modular import ModularMethod, ModularPrior
from scaml.normalization import Levels, NormalizationName, check_normalization, normalize
from scaml.parallel import one_thread
from scaml.scaml_gp import ScaMLGP
from scaml.table_rows import TableCache
from scaml.task_gps import TaskGPs
from scaml.weights import Cache, fit_weights

__all__ = ["ScaML", "ScaMLPrior"]


@dataclass(frozen=True)
class ScaML(ModularMethod["ScaMLPrior"]):
    """ScaML-GP.

    Args:
        kernel: "se", the ARD squared-exponential of the paper, or "matern52".
        normalization: How y_t is scaled: "pooled", or the paper's "union".
        weights: "positive" with the paper's Γ(1, 1), or "signed" with N(0, 1).
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    publication: ClassVar[str] = "Tighineanu et al., AISTATS 2024"
    cost: ClassVar[str] = "one exact GP a task; a step grows with M n_t² + n_t³"
    summary: ClassVar[str] = "A joint GP: weighted task posteriors plus a residual, weights by MAP."

    kernel: KernelName = "se"
    normalization: NormalizationName = "pooled"
    weights: WeightsName = "positive"
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        check_normalization(self.normalization)
        check_weights(self.weights)
        check_sqrt_beta(self.sqrt_beta)

    def prior(self, meta: MetaData, task_gps: TaskGPs) -> ScaMLPrior:
        return ScaMLPrior(self, meta, task_gps, Levels.of([task.y for task in meta]))


@dataclass(frozen=True, eq=False)
class ScaMLPrior(ModularPrior):
    """The meta-tasks' posteriors, from which every new task's prior is made."""

    method: ScaML
    levels: Levels
    tables: TableCache = field(default_factory=TableCache, repr=False)

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

    def on_table(self, model: Model, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """From the meta-tasks at the rows, which are computed once for a table."""
        if not (
            isinstance(model, ScaMLGP) and model.task_gps is self.task_gps and not model.batch_shape
        ):
            return None
        rows = self.tables.rows(self.task_gps, table)
        return None if rows is None else model.on_rows(rows)
