r"""The synthetic families of the paper's appendix: Branin, Hartmann 3 and Hartmann 6.

A family is a classic benchmark function with random parameters. The classic functions are minimized
over a box. The library maximizes over the unit cube, so a `Function` changes the sign and takes
unit-cube coordinates.

The Branin function is $a (x_2 - b x_1^2 + c x_1 - r)^2 + s (1 - t) \cos x_1 + s$; the paper's
formula lacks the square.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scaml.bench.optimum import largest
from scaml.common.checks import check_integer, check_seed
from scaml.tasks.arrays import check_points
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["FAMILIES", "Family", "Function"]

# Every purpose has random numbers of its own: with the same seed, the test-task must not be the first
# meta-task.
_FUNCTION, _META_DATA = 0, 1


@dataclass(frozen=True)
class Family:
    """Functions of one formula, whose parameters are drawn uniformly from their ranges.

    Args:
        name: The key of the family in `FAMILIES`.
        title: The name of the family in figures.
        d: The number of coordinates.
        noise: The standard deviation of the observation noise.
        points: The number of points per meta-task in the paper's figures.
        low: The smallest value of every parameter.
        high: The largest value of every parameter.
        formula: Maps `n x d` unit-cube coordinates and the parameters to n values, SMALLER is better.

    Examples:
        >>> function = FAMILIES["branin"].draw(0)
        >>> function([[0.5, 0.5]]).shape
        torch.Size([1])
    """

    name: str
    title: str
    d: int
    noise: float
    points: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    formula: Callable[[Tensor, tuple[float, ...]], Tensor] = field(repr=False)

    def draw(self, seed: int | np.random.Generator) -> Function:
        """Draw a function of the family.

        Args:
            seed: Decides the parameters; a generator is advanced.
        """
        drawn = _generator(seed, _FUNCTION).uniform(self.low, self.high)
        return Function(self, tuple(drawn.tolist()))

    def meta_data(self, tasks: int, points: int, seed: int | np.random.Generator) -> MetaData:
        """Draw meta-tasks with noisy values at uniform points.

        The first tasks do not depend on how many follow.

        Args:
            tasks: M, the number of meta-tasks.
            points: N_m, the number of points per task.
            seed: Decides functions, points and noise; a generator is advanced.
        """
        check_integer(tasks, "The number of meta-tasks", least=1)
        check_integer(points, "The number of points of a meta-task", least=2)
        generator = _generator(seed, _META_DATA)
        return MetaData([self._task(f"{self.name}-{m}", points, generator) for m in range(tasks)])

    def _task(self, name: str, points: int, generator: np.random.Generator) -> Task:
        function = self.draw(generator)
        X = generator.random((points, self.d))
        noise = self.noise * generator.standard_normal(points)
        return Task(X, function(X).numpy() + noise, name=name)


@dataclass(frozen=True)
class Function:
    """One function of a family, to be maximized over the unit cube, without noise.

    Args:
        family: The family of the function.
        parameters: (a, b, c, r, s, t) of Branin, or (α_1, ..., α_4) of Hartmann, as in the paper.
    """

    family: Family
    parameters: tuple[float, ...]

    def __call__(self, X: Any) -> Tensor:
        """The n values at `n x d` points: float64, larger is better."""
        X = check_points(X, f"X of {self.family.title}", d=self.family.d)
        return -self.family.formula(X, self.parameters)

    @cached_property
    def maximum(self) -> float:
        """The largest value on the unit cube, to 1e-6."""
        return largest(lambda X: -self.family.formula(X, self.parameters), self.family.d)


def _generator(seed: int | np.random.Generator, purpose: int) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng([purpose, check_seed(seed)])


def _branin(X: Tensor, parameters: tuple[float, ...]) -> Tensor:
    a, b, c, r, s, t = parameters
    x1, x2 = 15.0 * X[:, 0] - 5.0, 15.0 * X[:, 1]
    return a * (x2 - b * x1.square() + c * x1 - r).square() + s * (1.0 - t) * x1.cos() + s


def _hartmann(A: Tensor, P: Tensor, X: Tensor, parameters: tuple[float, ...]) -> Tensor:
    alpha = torch.tensor(parameters, dtype=torch.float64)
    exponent = (A * (X[:, None] - P).square()).sum(-1)
    return -(-exponent).exp() @ alpha


_A3 = [[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]]
_P3 = [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
_A6 = [
    [10, 3, 17, 3.5, 1.7, 8],
    [0.05, 10, 17, 0.1, 8, 14],
    [3, 3.5, 1.7, 10, 17, 8],
    [17, 8, 0.05, 10, 0.1, 14],
]
_P6 = [
    [1312, 1696, 5569, 124, 8283, 5886],
    [2329, 4135, 8307, 3736, 1004, 9991],
    [2348, 1451, 3522, 2883, 3047, 6650],
    [4047, 8828, 8732, 5743, 1091, 381],
]


def _hartmann_family(title: str, points: int, A: list[list[float]], P: list[list[int]]) -> Family:
    formula = partial(
        _hartmann, torch.tensor(A, dtype=torch.float64), 1e-4 * torch.tensor(P, dtype=torch.float64)
    )
    low, high = (1.00, 1.18, 2.8, 3.2), (1.02, 1.20, 3.0, 3.4)
    name = title.lower().replace(" ", "")
    return Family(name, title, len(A[0]), 0.1, points, low, high, formula)


_BRANIN_LOW, _BRANIN_HIGH = (0.5, 0.1, 1.0, 5.0, 8.0, 0.03), (1.5, 0.15, 2.0, 7.0, 12.0, 0.05)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("branin", "Branin", 2, 1.0, 32, _BRANIN_LOW, _BRANIN_HIGH, _branin),
        _hartmann_family("Hartmann 3", 32, _A3, _P3),
        _hartmann_family("Hartmann 6", 128, _A6, _P6),
    )
}
"""The families by name."""
