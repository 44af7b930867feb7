"""Methods that learn each past task from its own data alone: one exact GP a task, fitted together."""

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
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["ModularMethod", "ModularPrior", "check_hyperparameters", "hyperparameters_of"]


Prior = TypeVar("Prior", bound="ModularPrior")


class ModularMethod(Method, Generic[Prior]):
    """A method whose meta-fit is line 2 of Algorithm 1."""

    modular: ClassVar[bool] = True
    kernel: KernelName

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> Prior:
        """Fit one GP to every past task."""
        check_meta(meta)
        return self.prior(meta, self.task_gps(meta, seed=seed, n_jobs=n_jobs))

    def task_gps(self, meta: MetaData, *, seed: int, n_jobs: int = 1) -> TaskGPs:
        """The GPs alone: of what a method makes of all of them, nothing can be told from a part."""
        seed = check_seed(seed)
        return TaskGPs.fit(self.seen(meta), kernel=self.kernel, seed=seed, n_jobs=n_jobs)

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> Prior:
        """Condition GPs of known hyperparameters on their data."""
        check_hyperparameters(meta, state)
        with one_thread():
            return self.prior(meta, TaskGPs.condition(self.seen(meta), kernel=self.kernel, **state))

    def seen(self, meta: MetaData) -> MetaData:
        """The past tasks as their GPs see them, each by itself."""
        return meta

    @abstractmethod
    def prior(self, meta: MetaData, task_gps: TaskGPs) -> Prior:
        """What the method makes of the fitted GPs."""


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
        new = self.method.task_gps(MetaData([meta[len(meta) - 1]]), seed=seed, n_jobs=n_jobs)
        prior: Self = self.method.restore(meta, joined([self.state(), hyperparameters_of(new)]))
        return prior if self.space is None else prior.in_space(self.space)


def hyperparameters_of(gps: TaskGPs) -> dict[str, Tensor]:
    """The state of a prior that consists of fitted GPs."""
    return {"lengthscale": gps.lengthscale, "outputscale": gps.outputscale, "noise": gps.noise}


def check_hyperparameters(meta: MetaData, state: dict[str, Tensor]) -> None:
    """Refuse a state that is not one of these tasks' GPs."""
    columns = meta.d + max(task.extra.shape[1] for task in meta)
    for name in ("lengthscale", "outputscale", "noise"):
        value, shape = state[name], (len(meta),) if name != "lengthscale" else (len(meta), columns)
        if value.shape != shape or value.dtype != torch.float64 or not (value > 0).all():
            raise SavedFileError(f"its {name} is not of shape {shape}, positive and in float64")
