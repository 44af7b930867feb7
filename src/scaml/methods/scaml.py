"""ScaML-GP (Tighineanu et al., AISTATS 2024).

One exact GP a past task; their weighted sum plus a residual GP is the prior of the new one.
Algorithm 1 of the paper: `ScaML.meta_fit` is its line 2, `ScaMLPrior.condition` its lines 3 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self, get_args

from botorch.models.model import Model
from torch import Tensor

from scaml.common.checks import check_seed
from scaml.common.parallel import one_thread
from scaml.errors import SettingError
from scaml.gp.hyperpriors import TEST_TASK
from scaml.gp.kernels import KernelName, check_kernel
from scaml.gp.map_fit import STARTS
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.methods.base import check_sqrt_beta
from scaml.methods.shared.modular import ModularMethod, ModularPrior
from scaml.model.map_fit import Beliefs, Cache, fit_weights
from scaml.model.normalization import (
    Levels,
    NormalizationName,
    Scaling,
    check_normalization,
    clip_tail,
    normalize,
)
from scaml.model.past_similarity import PastSimilarity
from scaml.model.scaml_gp import ScaMLGP
from scaml.model.table_cache import TableCache
from scaml.model.weight_priors import WeightsName, check_weights, weight_prior
from scaml.search.ucb import SQRT_BETA
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["ScaML", "ScaMLPrior"]

ResidualName = Literal["past", "paper"]


@dataclass(frozen=True)
class ScaML(ModularMethod["ScaMLPrior"]):
    """ScaML-GP.

    Args:
        kernel: "se", the ARD squared-exponential of the paper, or "matern52".
        normalization: How y_t is brought to the units of the model: "clipped", "learned", "level",
            "pooled", or the paper's "union".
        weights: "shared" around a common value, "positive" with the paper's Γ(1, 1), or "signed" with
            N(0, 1).
        sqrt_beta: √β of the acquisition function, UCB (the paper's is 3). None for noisy expected
            improvement, which has nothing to set; before the first observation that is UCB, too.
        residual: How large and how smooth the difference from the past is expected to be: "past", as
            the past tasks differ from each other, or "paper", the log-normals of its appendix.
    """

    publication: ClassVar[str] = "Tighineanu et al., AISTATS 2024"
    cost: ClassVar[str] = "one exact GP a task; a step grows with M n_t² + n_t³"
    summary: ClassVar[str] = "A joint GP: weighted task posteriors plus a residual, weights by MAP."

    kernel: KernelName = "se"
    normalization: NormalizationName = "clipped"
    weights: WeightsName = "shared"
    sqrt_beta: float | None = None
    residual: ResidualName = "past"

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        check_normalization(self.normalization)
        check_weights(self.weights)
        if self.residual not in get_args(ResidualName):
            raise SettingError(f"residual is {self.residual!r}; choose 'past' or 'paper'.")
        if self.sqrt_beta is not None:
            check_sqrt_beta(self.sqrt_beta)

    @classmethod
    def paper(cls) -> Self:
        """The setting of the paper, to the letter."""
        return cls(
            "se", normalization="union", weights="positive", residual="paper", sqrt_beta=SQRT_BETA
        )

    def prior(self, meta: MetaData, task_gps: TaskGPs) -> ScaMLPrior:
        levels = Levels.of_best if self.normalization == "clipped" else Levels.of
        beliefs = self._beliefs(meta, task_gps)
        return ScaMLPrior(self, meta, task_gps, levels([task.y for task in meta]), beliefs)

    def _beliefs(self, meta: MetaData, task_gps: TaskGPs) -> Beliefs:
        """What holds of every new task."""
        if self.residual == "paper":
            return Beliefs(weight_prior(self.weights), TEST_TASK)
        alike = PastSimilarity.of(self.seen(meta), task_gps)
        share = float(alike.share), float(alike.share_spread)
        return Beliefs(weight_prior(self.weights, *share), alike.kernel_priors())

    def seen(self, meta: MetaData) -> MetaData:
        """With bad values clipped, if so asked."""
        if self.normalization != "clipped":
            return meta
        return meta.with_values([clip_tail(task.y) for task in meta])


@dataclass(frozen=True, eq=False)
class ScaMLPrior(ModularPrior):
    """The meta-tasks' posteriors, from which every new task's prior is made."""

    method: ScaML
    levels: Levels
    beliefs: Beliefs
    starts: int = STARTS  # of the search for the test-task's hyperparameters
    tables: TableCache = field(default_factory=TableCache, repr=False)

    def condition(self, task: Task, *, seed: int = 0) -> ScaMLGP:
        """Learn the weights and the residual GP from the task's data and condition on them."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            scaling, cache, beliefs = self.prepare(task)
            kernel = self.method.kernel
            theta, factor = fit_weights(kernel, cache, beliefs, seed=seed, n_starts=self.starts)
            return ScaMLGP(self.task_gps, task, Units(scaling.offset, factor * scaling.scale), theta)

    def prepare(self, task: Task) -> tuple[Scaling, Cache, Beliefs]:
        """Units, line 3 of Algorithm 1 and p(θ_t): all that the likelihood of the task needs."""
        scaling = normalize(self.method.normalization, task.y, self.levels)
        mean, covariance = self.task_gps.posterior(task.X)
        z = (task.y - scaling.offset) / scaling.scale
        cache = Cache(X=task.X, z=z, mean=mean, covariance=covariance.flatten(1))
        return scaling, cache, replace(self.beliefs, level=float(scaling.level), spread=scaling.spread)

    def on_table(self, model: Model, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """From the meta-tasks at the rows, which are computed once for a table."""
        if not (isinstance(model, ScaMLGP) and model.task_gps is self.task_gps and model.one_design):
            return None
        rows = self.tables.rows(self.task_gps, table)
        return None if rows is None else model.on_rows(rows)
