r"""Families with a misleading past: a good default must not lose much on any of them.

The world is a smooth random function g on the unit cube, drawn from a squared-exponential GP. The
test-task is mostly this function, plus a small part of its own:
$\lambda g + \sqrt{1 - \lambda^2}\, h_t$. The past tasks should be similar to g, too. The name of each
family says what is wrong with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from scaml.bench.optimum import largest
from scaml.common.checks import check_integer, check_seed
from scaml.errors import SettingError
from scaml.tasks.arrays import check_points
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["SAFETY", "Others", "Safety", "SafetyFunction"]

Others = Literal["unrelated", "mirrored", "of another world", "left out"]
"""What the past tasks are that are not good."""

_D = 3
_LENGTHSCALE = 0.35
_WAVES = 64
_ALIKE = 0.95  # λ of similar tasks
_OUTLIER = 30.0  # standard deviation of a gross outlier; the function's own is about 1
_UNITS = 3.0  # a random unit is at most this many powers of ten larger or smaller
_LEVEL = 10.0  # standard deviation of a random level
# Streams of random numbers of a run: world and test-task, the past, another world. 6 is the study's.
_WORLD, _PAST, _OTHER_WORLD = 4, 5, 7


@dataclass(frozen=True, eq=False)
class Wave:
    """A draw from a GP of variance 1 by random Fourier features: Σ a_i cos(ω_i x + φ_i)."""

    frequency: Tensor  # k x d
    phase: Tensor  # k
    amplitude: Tensor  # k

    @classmethod
    def draw(cls, generator: np.random.Generator) -> Wave:
        """Draw the next function from the generator."""
        frequency = generator.standard_normal((_WAVES, _D)) / _LENGTHSCALE
        phase = generator.uniform(0.0, 2.0 * np.pi, _WAVES)
        amplitude = generator.standard_normal(_WAVES) * math.sqrt(2.0 / _WAVES)
        return cls(*(torch.from_numpy(part) for part in (frequency, phase, amplitude)))

    def __call__(self, X: Tensor) -> Tensor:
        """The n values at `n x d`."""
        return torch.cos(X @ self.frequency.mT + self.phase) @ self.amplitude


@dataclass(frozen=True, eq=False)
class SafetyFunction:
    """λ g(x + shift) + √(1 - λ²) h(x) on the unit cube, to be maximized, without noise."""

    world: Wave
    own: Wave
    alike: float
    shift: Tensor

    def _at(self, X: Tensor) -> Tensor:
        own = math.sqrt(1.0 - self.alike**2) * self.own(X)
        return self.alike * self.world(X + self.shift) + own

    def __call__(self, X: Any) -> Tensor:
        """The n values at `n x d` points: float64, larger is better."""
        return self._at(check_points(X, "X of a safety family", d=_D))

    @cached_property
    def maximum(self) -> float:
        """The largest value on the unit cube, to 1e-6."""
        return largest(self._at, _D)


@dataclass(frozen=True)
class Safety:
    """A family, described by what is wrong with its past.

    Args:
        name: The key of the family in `SAFETY`.
        title: The name of the family in figures.
        tasks: M.
        points: N_m.
        good: The number of good past tasks, those similar to the test-task; None for all.
        others: What the other past tasks are.
        pool: The number of tasks that are always drawn, of which the past is the first M: fewer tasks
            are then the first of more. None draws M of them, others for every M.
        shift: How far every past task is moved along every axis; the directions are random.
        outliers: The share of past values that are gross outliers.
        units: Whether every past task has a unit and a level of its own.
        noise: The standard deviation of all observation noise; that of a function is about 1.
        d: The number of coordinates.
    """

    name: str
    title: str
    tasks: int = 8
    points: int = 32
    good: int | None = None
    others: Others = "unrelated"
    pool: int | None = None
    shift: float = 0.0
    outliers: float = 0.0
    units: bool = False
    noise: float = 0.03
    d: int = _D

    @property
    def most_tasks(self) -> int | None:
        """The largest possible M; None if there is no limit."""
        return self.good if self.others == "left out" else self.pool

    def draw(self, seed: int) -> SafetyFunction:
        """Draw the test-task."""
        generator = np.random.default_rng([_WORLD, check_seed(seed)])
        world, own = Wave.draw(generator), Wave.draw(generator)
        return SafetyFunction(world, own, _ALIKE, torch.zeros(_D, dtype=torch.float64))

    def meta_data(self, tasks: int, points: int, seed: int) -> MetaData:
        """Draw the past of the test-task with the same seed.

        Args:
            tasks: M, the number of meta-tasks.
            points: N_m, the number of points per task.
            seed: Decides functions, points, noise and what is wrong with the past.
        """
        check_integer(points, "The number of points of a meta-task", least=2)
        generator = np.random.default_rng([_PAST, check_seed(seed)])
        good, kept = self._draw_places(tasks, generator)
        similar = self.draw(seed).world, _ALIKE
        different = self._different(similar[0], seed)
        # A task that is left out is drawn as well: the others are the same with and without it.
        drawn = [
            self._task(m, *(similar if m in good else different), points, generator)
            for m in range(self.pool or tasks)
        ]
        return MetaData([drawn[m] for m in kept])

    def good_tasks(self, tasks: int, seed: int) -> tuple[str, ...]:
        """The names of the good tasks in the past of `meta_data`.

        Args:
            tasks: M, the number of meta-tasks.
            seed: That of the past.
        """
        good, kept = self._draw_places(tasks, np.random.default_rng([_PAST, check_seed(seed)]))
        return tuple(self._name(m) for m in kept if m in good)

    def _draw_places(self, tasks: int, generator: np.random.Generator) -> tuple[set[int], list[int]]:
        """Which of the drawn tasks are good, and which are the past."""
        check_integer(tasks, "The number of meta-tasks", least=1)
        if self.most_tasks is not None and tasks > self.most_tasks:
            raise SettingError(
                f"The number of meta-tasks is {tasks}; {self.name!r} has at most {self.most_tasks}."
            )
        drawn = self.pool or tasks
        good = set(generator.permutation(drawn)[: self.good].tolist())
        return good, (sorted(good) if self.others == "left out" else list(range(drawn)))[:tasks]

    def _different(self, world: Wave, seed: int) -> tuple[Wave, float]:
        """World and λ of a past task that is not good."""
        if self.others == "of another world":
            return Wave.draw(np.random.default_rng([_OTHER_WORLD, seed])), _ALIKE
        return world, -_ALIKE if self.others == "mirrored" else 0.0

    def _task(
        self, m: int, world: Wave, alike: float, points: int, generator: np.random.Generator
    ) -> Task:
        shift = self.shift * torch.from_numpy(generator.choice([-1.0, 1.0], _D))
        function = SafetyFunction(world, Wave.draw(generator), alike, shift)
        X = generator.random((points, _D))
        y = function(X).numpy() + self.noise * generator.standard_normal(points)
        wrong = generator.random(points) < self.outliers
        y = np.where(wrong, y + _OUTLIER * generator.standard_normal(points), y)
        if self.units:
            y = 10.0 ** generator.uniform(-_UNITS, _UNITS) * (y + _LEVEL * generator.standard_normal())
        return Task(X, y, name=self._name(m))

    def _name(self, m: int) -> str:
        return f"{self.name}-{m}"


SAFETY: dict[str, Safety] = {
    family.name: family
    for family in (
        Safety("related", "Related"),
        Safety("unrelated", "Unrelated", good=0),
        Safety("mirrored", "Mirrored", good=0, others="mirrored"),
        Safety("shifted", "Shifted", shift=0.25),
        Safety("one-good", "One good of 31", tasks=31, good=1),
        Safety("outliers", "Outliers", outliers=0.05),
        Safety("units", "Own units", units=True),
        Safety("noisy", "Heavy noise", noise=0.5),
        Safety("three-points", "Three points", points=3),
        Safety("one-flipped", "One mirrored of 8", good=7, others="mirrored", pool=8),
        Safety("seven-good", "Without the mirrored one", 7, good=7, others="left out", pool=8),
        Safety("two-groups", "Two groups", 16, good=8, others="of another world", pool=16),
        Safety("one-good-99", "One good of 100", 100, good=1),
    )
}
"""The families by name. Two are there for comparison: in "related" nothing is wrong, and
"seven-good" is "one-flipped" without the mirrored task. In "two-groups" each half of the past has a
world of its own, in random order; the test-task belongs to one of the halves."""
