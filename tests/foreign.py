"""A method of somebody else, which learns from all tasks together."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml import MetaData, Task
from scaml.methods.base import MetaPrior, Method
from scaml.methods.gpbo import GPBO

FITS: list[int] = []


@dataclass(frozen=True)
class Foreign(Method):
    """Learns the mean of all tasks together, and counts how often."""

    shift: float = 0.0

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> ForeignPrior:
        FITS.append(len(meta))
        return ForeignPrior(self, meta, torch.cat([task.y for task in meta]).mean() + seed + self.shift)

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> ForeignPrior:
        return ForeignPrior(self, meta, state["mean"])


@dataclass(frozen=True, eq=False)
class ForeignPrior(MetaPrior):
    method: Foreign
    meta: MetaData
    mean: Tensor

    @property
    def names(self) -> tuple[str, ...]:
        return self.meta.names

    @property
    def d(self) -> int:
        return self.meta.d

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean}

    def condition(self, task: Task, *, seed: int = 0) -> Model:
        return GPBO().meta_fit(self.meta).condition(task, seed=seed)
