"""Methods that learn each past task from its own data alone: one exact GP per task."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
from torch import Tensor

from scaml.common.checks import check_seed
from scaml.common.parallel import one_thread
from scaml.errors import SavedFileError
from scaml.gp.kernels import KernelName
from scaml.gp.task_gps import TaskGPs
from scaml.methods.base import MetaPrior, Method, check_meta, joined
from scaml.model import algorithm1
from scaml.model.normalization import SeenPast
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["ModularMethod", "ModularPrior", "check_hyperparameters", "hyperparameters_of"]


Prior = TypeVar("Prior", bound="ModularPrior")


class ModularMethod(Method, Generic[Prior]):
    """A method whose meta-fit is line 2 of Algorithm 1."""

    modular: ClassVar[bool] = True
    kernel: KernelName

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> Prior:
        """Fit one GP per past task."""
        check_meta(meta)
        seed, past = check_seed(seed), self.seen(meta)
        gps = algorithm1.meta_fit(past.seen, kernel=self.kernel, seed=seed, n_jobs=n_jobs)
        return self.prior(past, gps)

    def fit_state(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> dict[str, Tensor]:
        """The hyperparameters of some tasks' GPs, without the prior that all tasks make together."""
        check_meta(meta)
        seed, past = check_seed(seed), self.seen(meta)
        gps = algorithm1.meta_fit(past.seen, kernel=self.kernel, seed=seed, n_jobs=n_jobs)
        return hyperparameters_of(gps)

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> Prior:
        """Condition GPs of known hyperparameters on their data."""
        check_hyperparameters(meta, state)
        with one_thread():
            past = self.seen(meta)
            return self.prior(past, TaskGPs.condition(past.seen, kernel=self.kernel, **state))

    def seen(self, meta: MetaData) -> SeenPast:
        """The past tasks as their GPs see them; each task is transformed by itself."""
        return SeenPast.of(meta)

    @abstractmethod
    def prior(self, past: SeenPast, task_gps: TaskGPs) -> Prior:
        """The prior that the fitted GPs make together."""


@dataclass(frozen=True, eq=False)
class ModularPrior(MetaPrior):
    """The meta-tasks' posteriors, from which every new task's model is made."""

    method: ModularMethod[Any]
    meta: MetaData
    task_gps: TaskGPs

    def state(self) -> dict[str, Tensor]:
        return hyperparameters_of(self.task_gps)

    def add(self, task: Task, *, seed: int = 0, n_jobs: int = 1) -> Self:
        """Fit one GP to the new task; the others stay as they are."""
        meta = self.meta.and_task(task)
        new = self.method.fit_state(MetaData([meta[len(meta) - 1]]), seed=seed, n_jobs=n_jobs)
        prior: Self = self.method.restore(meta, joined([self.state(), new]))
        return prior if self.space is None else prior.in_space(self.space)


def hyperparameters_of(gps: TaskGPs) -> dict[str, Tensor]:
    """The state of a prior that consists of fitted GPs."""
    return {"lengthscale": gps.lengthscale, "outputscale": gps.outputscale, "noise": gps.noise}


def check_hyperparameters(meta: MetaData, state: dict[str, Tensor]) -> None:
    """Refuse a state that does not belong to these tasks' GPs."""
    columns = meta.d + max(task.extra.shape[1] for task in meta)
    for name in ("lengthscale", "outputscale", "noise"):
        value, shape = state[name], (len(meta),) if name != "lengthscale" else (len(meta), columns)
        if value.shape != shape or value.dtype != torch.float64 or not (value > 0).all():
            raise SavedFileError(f"its {name} is not of shape {shape}, positive and in float64")
