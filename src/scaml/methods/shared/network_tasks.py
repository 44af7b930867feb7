"""Past tasks as networks learn from them: standardized, in a settled order.

Training can amplify a difference in the last bit. Standardized values are therefore rounded, so that
the values, the settled order and every number of the network do not depend on the unit of y.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from scaml.common.checks import check_integer
from scaml.errors import SettingError
from scaml.gp.units import Units, standardize
from scaml.methods.shared.networks import settled_order
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["Standardized", "check_widths", "settled", "standardized"]

_GRAIN = 2.0**-24  # as a share of y's deviation: far below any noise, and far above rounding


class Standardized(NamedTuple):
    """One task whose values have mean 0 and standard deviation 1."""

    name: str
    X: Tensor  # n x d
    z: Tensor  # n

    @property
    def varies(self) -> bool:
        """Whether the values differ; constant values are 0 up to rounding."""
        return bool((self.z.abs() > 0.5).any())

    def rows(self, chosen: Tensor) -> Standardized:
        """Some of the points."""
        return Standardized(self.name, self.X[chosen], self.z[chosen])


def standardized(task: Task) -> tuple[Standardized, Units]:
    """The test-task in its own units. It is not rounded, because few steps are trained on it."""
    units = standardize(task.y)
    z = (task.y - units.offset) / units.scale
    return Standardized(task.name or "the test-task", task.X, z), units


def settled(meta: MetaData) -> tuple[list[Standardized], list[int]]:
    """The tasks, in an order that depends on their data alone, and their places in the meta-data."""
    tasks = []
    for name, task in zip(meta.names, meta, strict=True):
        units = standardize(task.y)
        z = torch.round((task.y - units.offset) / units.scale / _GRAIN) * _GRAIN
        tasks.append(Task(task.X, z + 0.0, name=name))  # + 0.0 makes a zero of -0.0
    order = settled_order(MetaData(tasks))
    return [Standardized(tasks[m].name, tasks[m].X, tasks[m].y) for m in order], order


def check_widths(widths: Sequence[int]) -> tuple[int, ...]:
    """Check the widths of a network's layers."""
    if not isinstance(widths, list | tuple) or not widths:
        raise SettingError(f"widths is {widths!r}; give the number of units of each layer.")
    return tuple(check_integer(width, "A width of the network", least=1) for width in widths)
