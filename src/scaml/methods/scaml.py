"""ScaML-GP (Tighineanu et al., AISTATS 2024).

One exact GP per past task; their weighted sum plus a residual GP is the prior of the new task.
`ScaML.meta_fit` is line 2 of Algorithm 1, `ScaMLPrior.condition` its lines 3 to 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal, Self, get_args

from botorch.models.model import Model
from torch import Tensor

from scaml.common.checks import check_seed
from scaml.common.parallel import one_thread
from scaml.errors import SettingError
from scaml.gp.hyperpriors import TEST_TASK
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import STARTS
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.methods.base import AcquisitionName, check_acquisition, check_sqrt_beta
from scaml.methods.shared.modular import ModularMethod, ModularPrior
from scaml.model.algorithm1 import learn_new_task
from scaml.model.average_gp import AverageGP
from scaml.model.explanations import Explanations
from scaml.model.fit_explanations import explain_task
from scaml.model.hyperparameters import ThetaPriors
from scaml.model.normalization import (
    Levels,
    NormalizationName,
    Scaling,
    SeenPast,
    check_normalization,
    normalize,
)
from scaml.model.past_at_data import PastAtData
from scaml.model.past_at_rows import PastAtRows
from scaml.model.past_similarity import PastSimilarity
from scaml.model.protocols import TableModel
from scaml.model.scaml_gp import ScaMLGP
from scaml.model.table_cache import TableCache
from scaml.model.verdict import Verdict
from scaml.model.weight_priors import WeightsName, check_weights, weight_prior
from scaml.model.whole_past import WholePastGP
from scaml.search.raw_points import RawPoints
from scaml.search.ucb import SQRT_BETA
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["KernelChoice", "ScaML", "ScaMLPrior"]

KernelChoice = Literal["past", "se", "matern52"]
ResidualName = Literal["past", "paper"]

_RAW, _FEWEST_RAW = 1024, 128  # points that are kept
_MOST_KEPT = 2**24  # numbers: 128 megabytes


@dataclass(frozen=True)
class ScaML(ModularMethod["ScaMLPrior"]):
    """ScaML-GP.

    Args:
        kernel: "se", the ARD squared-exponential of the paper, "matern52", or "past", the one of them
            under which the past tasks are more probable.
        normalization: How y_t is brought to the units of the model: "clipped", "learned", "level",
            "pooled", or the paper's "union".
        weights: "shared" around a common value, "positive" with the paper's Γ(1, 1), "signed" with
            N(0, 1), "explained", an average over explanations: the past as a whole, groups of past
            tasks, one past task, none; or "past": "shared" where the past tasks have something in
            common, "explained" where they are strangers or fall into groups. With the last two,
            `model.explain()` has the probabilities of the explanations.
        acquisition: "lognei", noisy expected improvement (UCB before the first observation), or "ucb",
            as in the paper.
        sqrt_beta: √β of UCB; the paper's is 3.
        residual: Prior of the residual kernel: "past", from how the past tasks differ from each other,
            or "paper", the log-normals of its appendix.
    """

    publication: ClassVar[str] = "Tighineanu et al., AISTATS 2024"
    cost: ClassVar[str] = "one exact GP per task; a step grows with M n_t² + n_t³"
    summary: ClassVar[str] = "A joint GP: weighted task posteriors plus a residual, weights by MAP."

    kernel: KernelChoice = "past"
    normalization: NormalizationName = "clipped"
    weights: WeightsName = "past"
    acquisition: AcquisitionName = "lognei"
    sqrt_beta: float = SQRT_BETA
    residual: ResidualName = "past"

    def __post_init__(self) -> None:
        if self.kernel not in get_args(KernelChoice):
            raise SettingError(f"The kernel is {self.kernel!r}; choose 'past', 'se' or 'matern52'.")
        check_normalization(self.normalization)
        check_weights(self.weights)
        if self.residual not in get_args(ResidualName):
            raise SettingError(f"residual is {self.residual!r}; choose 'past' or 'paper'.")
        if self.weights in ("past", "explained") and self.residual == "paper":
            raise SettingError(
                f"residual is 'paper', but with weights={self.weights!r} every explanation learns the "
                "prior of its residual from the past; choose residual='past', or weights='shared'."
            )
        check_acquisition(self.acquisition)
        check_sqrt_beta(self.sqrt_beta)

    @property
    def kernels(self) -> tuple[KernelName, ...]:
        return get_args(KernelName) if self.kernel == "past" else (self.kernel,)

    @classmethod
    def paper(cls) -> Self:
        """The setting of the paper, to the letter."""
        return cls(
            kernel="se",
            normalization="union",
            weights="positive",
            acquisition="ucb",
            sqrt_beta=3.0,
            residual="paper",
        )

    def seen(self, meta: MetaData) -> SeenPast:
        """With bad values clipped, if the normalization says so."""
        return SeenPast.clipped(meta) if self.normalization == "clipped" else SeenPast.of(meta)

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> ScaMLPrior:
        explains = self.weights in ("past", "explained")
        learns = explains or self.residual == "past"
        alike = PastSimilarity.of(past.seen, task_gps) if learns else None
        priors = self._theta_priors(alike)
        told = Explanations.of(past.seen, task_gps, alike) if explains else None
        return ScaMLPrior(self, past.meta, task_gps, past.levels, priors, told)

    def _theta_priors(self, alike: PastSimilarity | None) -> ThetaPriors:
        """p(θ_t), as far as it is the same for every new task."""
        if alike is None or self.residual == "paper" or self.weights == "explained":
            return ThetaPriors(weight_prior(self.weights), TEST_TASK)
        share = float(alike.share), float(alike.share_spread)
        return ThetaPriors(weight_prior(self.weights, *share), alike.kernel_priors())


@dataclass(frozen=True, eq=False)
class ScaMLPrior(ModularPrior):
    """The meta-tasks' posteriors, from which every new task's prior is made."""

    method: ScaML
    levels: Levels
    theta_priors: ThetaPriors
    explanations: Explanations | None = None
    starts: int = STARTS  # of the search for the test-task's hyperparameters
    tables: TableCache = field(default_factory=TableCache, repr=False)
    rows: PastAtRows = field(default_factory=PastAtRows, repr=False)
    raw: RawPoints = field(default_factory=RawPoints, repr=False)

    def condition(self, task: Task, *, seed: int = 0) -> ScaMLGP | AverageGP:
        """Learn the weights and the residual GP from the task's data and condition on them."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            scaling, priors = self.prepare(task)
            learn = partial(learn_new_task, self.task_gps, past=self.rows)
            if self.explanations is None:
                return learn(task, scaling, priors, seed=seed, n_starts=self.starts)
            if self.averages:
                return self._average(task, scaling)
            model = partial(WholePastGP, partial(self.explain, task))
            return learn(task, scaling, priors, seed=seed, n_starts=self.starts, model=model)

    @property
    def averages(self) -> bool:
        """Whether the model of a new task is an average over explanations, not one of all weights."""
        told = self.explanations
        return told is not None and (self.method.weights == "explained" or told.structure != "whole")

    def explain(self, task: Task) -> Verdict:
        """Which past tasks the task is like, with probabilities."""
        if self.explanations is None:
            raise SettingError(
                f"weights is {self.method.weights!r}, which has no explanations; choose 'past' or "
                "'explained'."
            )
        self.check_task(task)
        with one_thread():
            scaling, _ = self.prepare(task)
            found = explain_task(self.task_gps, self.explanations, task, scaling, self.rows)
        return found.verdict(self.explanations, self.names, task.n, acted_on=self.averages)

    def _average(self, task: Task, scaling: Scaling) -> AverageGP:
        """The average over the explanations that are probable enough to matter."""
        assert self.explanations is not None
        found = explain_task(self.task_gps, self.explanations, task, scaling, self.rows)
        past = PastAtData.of(self.task_gps, task.X)
        members = [
            ScaMLGP(self.task_gps, task, Units(scaling.offset, factor * scaling.scale), theta, past)
            for theta, factor in zip(found.theta, found.factor, strict=True)
        ]
        verdict = found.verdict(self.explanations, self.names, task.n, acted_on=True)
        return AverageGP(members, found.log_member, verdict)

    def prepare(self, task: Task) -> tuple[Scaling, ThetaPriors]:
        """Units of the task and p(θ_t): our level and scale depend on both."""
        scaling = normalize(self.method.normalization, task.y, self.levels)
        priors = replace(self.theta_priors, level=float(scaling.level), spread=scaling.spread)
        return scaling, priors

    def on_table(self, model: Model, table: Tensor) -> tuple[Tensor, Tensor] | None:
        return model.on_table(self.tables, table) if isinstance(model, TableModel) else None

    def raw_points(self) -> Tensor:
        """Fewer of many past tasks, whose posteriors there are kept."""
        M, N, _ = self.task_gps.X.shape
        n = max(_FEWEST_RAW, min(_RAW, _MOST_KEPT // (M * N)))
        return self.raw.of(self.space, self.d, n)
