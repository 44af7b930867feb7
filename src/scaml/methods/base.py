"""The one interface of all methods: a frozen dataclass of hyperparameters with the verb `meta_fit`."""

from __future__ import annotations

import copy
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from torch import Tensor

from scaml.common.tensor_file import write
from scaml.common.wording import counted
from scaml.errors import SettingError, SpaceError, TaskDataError
from scaml.model.protocols import FantasyModel
from scaml.search.log_nei import NoisyExpectedImprovement
from scaml.search.ucb import SQRT_BETA, UpperConfidenceBound
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

if TYPE_CHECKING:
    from scaml.spaces.space import Space

__all__ = [
    "AcquisitionName",
    "MetaPrior",
    "Method",
    "check_acquisition",
    "check_meta",
    "check_sqrt_beta",
    "check_whole",
    "joined",
    "write_prior",
]


AcquisitionName = Literal["lognei", "ucb"]


class Method(ABC):
    """A way to learn from past tasks. Subclasses are frozen dataclasses of hyperparameters."""

    modular: ClassVar[bool] = False  # whether each task's state is learned from its own data alone
    ordered: ClassVar[bool] = False  # whether the order of the past tasks matters
    uses_past: ClassVar[bool] = True  # False for baselines that ignore the past tasks
    publication: ClassVar[str] = "unpublished"
    cost: ClassVar[str] = "unknown"
    summary: ClassVar[str] = ""
    acquisition: AcquisitionName = "ucb"
    sqrt_beta: float = SQRT_BETA  # √β of UCB

    @abstractmethod
    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        """Learn from the meta-data: the slow part, done once.

        Args:
            meta: The past tasks.
            seed: Decides every random draw.
            n_jobs: Processes to use, -1 for one per core. The result does not depend on it.
        """

    def fit_state(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> dict[str, Tensor]:
        """What `meta_fit` learns, as tensors, without the prior around them."""
        return self.meta_fit(meta, seed=seed, n_jobs=n_jobs).state()

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> MetaPrior:
        """The prior with this state: what `load` calls instead of a fit."""
        raise SettingError(f"A prior of {type(self).__name__} cannot be restored; fit it again.")


class MetaPrior(ABC):
    """What a method has learned from the past: frozen, ready for any number of new tasks."""

    method: Method
    meta: MetaData
    space: Space | None = None  # what the columns of X mean, where that is known

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the meta-tasks, in the order of the weights."""
        return self.meta.names

    @property
    def d(self) -> int:
        """Number of parameters."""
        return self.meta.d

    @abstractmethod
    def condition(self, task: Task, *, seed: int = 0) -> Model:
        """The model of a new task given its observations so far, which may be none."""

    def acquisition(self, model: Model) -> AcquisitionFunction:
        """The acquisition function that the method names; its maximum is evaluated next.

        Before the first observation there is nothing to improve on, and "lognei" is UCB.
        """
        if self.method.acquisition == "lognei" and isinstance(model, FantasyModel):
            (X,) = model.train_inputs
            if X.numel():
                return NoisyExpectedImprovement(model)
        return UpperConfidenceBound(model, sqrt_beta=self.method.sqrt_beta)

    def on_table(self, model: Model, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """Mean and variance of the model at the n rows of a table, n each; None to ask the model.

        For priors that keep the meta-tasks' posteriors at the rows between the steps of a search.
        """
        del model, table
        return None

    def raw_points(self) -> Tensor | None:
        """Points of the space, `n x d`, from which searches start, if `on_table` is cheap there."""
        return None

    def state(self) -> dict[str, Tensor]:
        """What was learned, as tensors: all that a file needs besides the method and the meta-data.

        For a modular method, every tensor has one row per task.
        """
        raise SettingError(f"A prior of {type(self.method).__name__} cannot be saved; fit it again.")

    def add(self, task: Task, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        """The prior with one more past task; equal to a fit with that task included."""
        prior = self.method.meta_fit(self.meta.and_task(task), seed=seed, n_jobs=n_jobs)
        return prior if self.space is None else prior.in_space(self.space)

    def in_space(self, space: Space) -> Self:
        """The same prior, knowing what the columns of X mean."""
        if space.d != self.d:
            raise SpaceError(
                f"The space has {counted(space.d, 'column')} but the past tasks have {self.d}; give "
                "the space that they live in."
            )
        prior = copy.copy(self)
        object.__setattr__(prior, "space", space)
        return prior

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prior to a file that `scaml.load` reads: safetensors, no pickle."""
        write_prior(path, self.method, self.meta, self.state(), self.space)

    def check_task(self, task: Task) -> None:
        """Refuse anything that is not a task of this prior's space."""
        if not isinstance(task, Task):
            raise TaskDataError(f"The task is a {type(task).__name__}; give a scaml.Task.")
        if task.d != self.d:
            raise SpaceError(
                f"The task has {counted(task.d, 'parameter')} but the past tasks have {self.d}; all "
                "tasks must live in one space."
            )
        if not task.whole:
            raise SpaceError(
                "The task lacks parameters of the space or has others; only a past task may do so."
            )


def write_prior(
    path: str | os.PathLike[str],
    method: Method,
    meta: MetaData,
    state: dict[str, Tensor],
    space: Space | None = None,
) -> None:
    """The file of a prior: settings, names and space in the header, data and state as tensors."""
    header = {
        "library": version("scaml"),
        "method": type(method).__name__,
        "settings": vars(method),
        "names": list(meta.names),
        "space": None if space is None else space.to_json(),
    }
    tensors = {f"state/{name}": tensor for name, tensor in state.items()}
    for i, task in enumerate(meta):
        parts = {"X": task.X, "y": task.y, "known": task.known, "extra": task.extra}
        tensors |= {f"{i}/{part}": tensor for part, tensor in parts.items()}
    write(path, header, tensors)


def joined(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The state of a modular method for the tasks of several priors.

    Shorter rows are padded with infinity: a task has no lengthscale in columns that only others have.
    """

    def rows(tensors: list[Tensor]) -> Tensor:
        widest = max(tensor[0].numel() for tensor in tensors)
        padded = [
            torch.nn.functional.pad(tensor, (0, widest - tensor.shape[-1]), value=math.inf)
            if tensor.ndim == 2
            else tensor
            for tensor in tensors
        ]
        return torch.cat(padded)

    return {name: rows([state[name] for state in states]) for name in states[0]}


def check_meta(meta: MetaData) -> None:
    """Refuse anything that is not meta-data."""
    if not isinstance(meta, MetaData):
        raise TaskDataError(f"The meta-data are a {type(meta).__name__}; give a scaml.MetaData.")


def check_whole(meta: MetaData, method: str) -> None:
    """Refuse tasks whose columns are not those of the space, for methods that cannot take them."""
    for name, task in zip(meta.names, meta, strict=True):
        if not task.whole:
            raise SpaceError(
                f"Task {name!r} lacks parameters of the space or has others, which {method} cannot "
                "take; leave the task out, or choose a method of one GP per task, such as ScaML."
            )


def check_acquisition(acquisition: str) -> None:
    """Refuse an unknown acquisition function."""
    if acquisition not in get_args(AcquisitionName):
        raise SettingError(
            f"acquisition is {acquisition!r}; choose 'lognei', noisy expected improvement, or 'ucb'."
        )


def check_sqrt_beta(sqrt_beta: float) -> None:
    """Refuse a √β that is not a finite number of at least 0."""
    if not (isinstance(sqrt_beta, int | float) and math.isfinite(sqrt_beta) and sqrt_beta >= 0):
        raise SettingError(f"sqrt_beta is {sqrt_beta!r}; give a number of at least 0.")
