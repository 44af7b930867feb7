"""Methods that learn each past task from its own data alone: one exact GP per task."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

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
    kernel: str

    @property
    def kernels(self) -> tuple[KernelName, ...]:
        """The kernels that are fitted; the past tasks decide between them."""
        return (cast(KernelName, self.kernel),)

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> Prior:
        """Fit one GP per past task, with every kernel."""
        check_meta(meta)
        past = self.seen(meta)
        return self._decided(past, self._fitted(past, check_seed(seed), n_jobs))

    def fit_state(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> dict[str, Tensor]:
        """The hyperparameters of some tasks' GPs, without the prior that all tasks make together."""
        check_meta(meta)
        return _state_of(self._fitted(self.seen(meta), check_seed(seed), n_jobs))

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> Prior:
        """Condition GPs of known hyperparameters on their data."""
        states = _by_kernel(state, self.kernels)
        for one in states.values():
            check_hyperparameters(meta, one)
        with one_thread():
            past = self.seen(meta)
            gps = [TaskGPs.condition(past.seen, kernel=kernel, **one) for kernel, one in states.items()]
            return self._decided(past, gps)

    def _fitted(self, past: SeenPast, seed: int, n_jobs: int) -> list[TaskGPs]:
        """The GPs of all tasks, with every kernel."""
        return [
            algorithm1.meta_fit(past.seen, kernel=kernel, seed=seed, n_jobs=n_jobs)
            for kernel in self.kernels
        ]

    def _decided(self, past: SeenPast, fitted: list[TaskGPs]) -> Prior:
        """The prior with the kernel under which the past tasks are most probable."""
        likely = [float(gps.log_likelihood().sum()) for gps in fitted]
        chosen = fitted[likely.index(max(likely))]
        return replace(self.prior(past, chosen), fitted=_state_of(fitted))

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
    # Of every kernel that the method fits: a further task may change which one is chosen.
    fitted: dict[str, Tensor] = field(default_factory=dict, repr=False, kw_only=True)

    def state(self) -> dict[str, Tensor]:
        return self.fitted or hyperparameters_of(self.task_gps)

    def add(self, task: Task, *, seed: int = 0, n_jobs: int = 1) -> Self:
        """Fit one GP to the new task; the others stay as they are."""
        meta = self.meta.and_task(task)
        new = self.method.fit_state(MetaData([meta[len(meta) - 1]]), seed=seed, n_jobs=n_jobs)
        prior: Self = self.method.restore(meta, joined([self.state(), new]))
        return prior if self.space is None else prior.in_space(self.space)


def hyperparameters_of(gps: TaskGPs) -> dict[str, Tensor]:
    """The state of a prior that consists of fitted GPs."""
    return {"lengthscale": gps.lengthscale, "outputscale": gps.outputscale, "noise": gps.noise}


def _state_of(fitted: list[TaskGPs]) -> dict[str, Tensor]:
    """The state of one kernel; of several, each under the kernel's name."""
    if len(fitted) == 1:
        return hyperparameters_of(fitted[0])
    return {f"{g.kernel}/{k}": v for g in fitted for k, v in hyperparameters_of(g).items()}


def _by_kernel(
    state: dict[str, Tensor], kernels: tuple[KernelName, ...]
) -> dict[KernelName, dict[str, Tensor]]:
    if len(kernels) == 1:
        return {kernels[0]: state}
    names = ("lengthscale", "outputscale", "noise")
    return {kernel: {name: state[f"{kernel}/{name}"] for name in names} for kernel in kernels}


def check_hyperparameters(meta: MetaData, state: dict[str, Tensor]) -> None:
    """Refuse a state that does not belong to these tasks' GPs."""
    columns = meta.d + max(task.extra.shape[1] for task in meta)
    for name in ("lengthscale", "outputscale", "noise"):
        value, shape = state[name], (len(meta),) if name != "lengthscale" else (len(meta), columns)
        if value.shape != shape or value.dtype != torch.float64 or not (value > 0).all():
            raise SavedFileError(f"its {name} is not of shape {shape}, positive and in float64")
