"""The one interface of all methods: a frozen dataclass of hyperparameters with the verb `meta_fit`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model

from scaml.acquisition import UpperConfidenceBound
from scaml.data import MetaData, Task, check_integer, counted
from scaml.errors import SettingError, SpaceError, TaskDataError

__all__ = ["MetaPrior", "Method", "check_meta", "check_seed", "check_sqrt_beta"]


class Method(ABC):
    """A way to learn from past tasks. Subclasses are frozen dataclasses of hyperparameters."""

    @abstractmethod
    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        """Learn from the meta-data: the slow part, done once.

        Args:
            meta: The past tasks.
            seed: Decides every random draw.
            n_jobs: Processes to use, -1 for one a core. The result does not depend on it.
        """


class MetaPrior(ABC):
    """What a method has learned from the past: frozen, ready for any number of new tasks."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the meta-tasks, in the order of the weights."""

    @property
    @abstractmethod
    def d(self) -> int:
        """Number of parameters."""

    @abstractmethod
    def condition(self, task: Task, *, seed: int = 0) -> Model:
        """The model of a new task given its observations so far, which may be none."""

    def acquisition(self, model: Model) -> AcquisitionFunction:
        """The acquisition function whose maximum is evaluated next: UCB with √β = 3."""
        return UpperConfidenceBound(model, sqrt_beta=3.0)

    def check_task(self, task: Task) -> None:
        """Refuse what is not a task of this prior's space."""
        if not isinstance(task, Task):
            raise TaskDataError(f"The task is a {type(task).__name__}; give a scaml.Task.")
        if task.d != self.d:
            raise SpaceError(
                f"The task has {counted(task.d, 'parameter')} but the past tasks have {self.d}; all "
                "tasks must live in one space."
            )


def check_meta(meta: MetaData) -> None:
    """Refuse what is not meta-data."""
    if not isinstance(meta, MetaData):
        raise TaskDataError(f"The meta-data are a {type(meta).__name__}; give a scaml.MetaData.")


def check_seed(seed: int) -> int:
    """The seed as Python's int, or a refusal."""
    seed = check_integer(seed, "The seed", least=0)
    if seed >= 2**62:  # what torch's generators take, and room to count on from there
        raise SettingError(f"The seed is {seed}; give an integer below 2**62.")
    return seed


def check_sqrt_beta(sqrt_beta: float) -> None:
    """Refuse an exploration coefficient that is not one."""
    if not (isinstance(sqrt_beta, int | float) and math.isfinite(sqrt_beta) and sqrt_beta >= 0):
        raise SettingError(f"sqrt_beta is {sqrt_beta!r}; give a number of at least 0.")
