"""GPBO: plain GP-based Bayesian optimization, which learns nothing from the past.

The baseline of the paper: the GP of a meta-task (same kernel, priors and starts), fitted to the test
data alone. It is ScaML-GP without meta-tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from scaml.common.checks import check_seed
from scaml.common.parallel import one_thread
from scaml.errors import SettingError
from scaml.gp.kernels import KernelName, check_kernel
from scaml.gp.units import standardize
from scaml.methods.base import (
    AcquisitionName,
    MetaPrior,
    Method,
    check_acquisition,
    check_meta,
    check_sqrt_beta,
)
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.scaml_gp import ScaMLGP
from scaml.search.ucb import SQRT_BETA
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["GPBO", "GPBOPrior"]


@dataclass(frozen=True)
class GPBO(Method):
    """A plain GP on the test data alone, y standardized.

    Args:
        kernel: "se" or "matern52".
        acquisition: "ucb", as in the paper, or "lognei", noisy expected improvement: a comparison with
            `ScaML()` is then one of the models alone.
        sqrt_beta: √β of UCB.
    """

    publication: ClassVar[str] = "the paper's baseline without any past"
    cost: ClassVar[str] = "no meta-fit; a step grows with n_t³"
    summary: ClassVar[str] = "A plain GP on the new task alone."

    uses_past: ClassVar[bool] = False

    kernel: KernelName = "se"
    acquisition: AcquisitionName = "ucb"
    sqrt_beta: float = SQRT_BETA

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        check_acquisition(self.acquisition)
        check_sqrt_beta(self.sqrt_beta)

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> GPBOPrior:
        """Remember the space; the past is not used."""
        check_meta(meta)
        seed = check_seed(seed)
        return GPBOPrior(self, meta.d, meta)

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> GPBOPrior:
        return GPBOPrior(self, meta.d, meta)


@dataclass(frozen=True)
class GPBOPrior(MetaPrior):
    """A GP prior with the hyperpriors of the paper's appendix."""

    method: GPBO
    dimension: int
    past: MetaData | None = None  # kept for its names; a plain GP does not use it

    @property
    def names(self) -> tuple[str, ...]:
        return self.past.names if self.past else ()

    @property
    def d(self) -> int:
        return self.dimension

    @property
    def meta(self) -> MetaData:  # type: ignore[override]
        if self.past is None:
            raise SettingError(
                "This plain GP has no past tasks, so there is nothing to save or to add to."
            )
        return self.past

    def state(self) -> dict[str, Tensor]:
        return {}

    def condition(self, task: Task, *, seed: int = 0) -> ScaMLGP:
        """Fit the GP to the task's data; with none, take the default start of a fit."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            return fit_plain_gp(task, standardize(task.y), kernel=self.method.kernel, seed=seed)
