"""The past of the demonstration: one twin of the new task, some relatives and some strangers.

All of them have the formula of the new task's family. The twin has almost the parameters of the new
task. A relative has other parameters and is shifted; a stranger has other parameters and is rotated
about the centre of the cube. Of many shifts and rotations, the one with the most suitable correlations
is taken: members of a Hartmann family are too similar to be told apart without a shift, and a shift
changes some Branin functions much more than others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.quasirandom import SobolEngine

from scaml.bench.families import Family, Function
from scaml.common.checks import check_integer, check_seed
from scaml.tasks.arrays import check_points
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["ROLES", "MovedFunction", "Role", "draw_past", "functions_of_past", "role_of"]

Role = Literal["twin", "relative", "stranger"]
"""What a past task is to the new one; its name begins with it."""

ROLES: tuple[Role, ...] = get_args(Role)

_PAST = 8  # the stream of random numbers; the families and their misleading pasts have 0 to 7
_TWIN_STEP = 0.05  # the most by which a parameter of the twin differs, as a share of its range
_CORRELATION = {"relative": 0.65, "stranger": 0.0}  # with the new task and with each other
_OTHERS = 0.5  # how much a deviation from it counts between two past tasks
_FURTHEST = 0.5  # shift
# Points of a past task. Tuned on seeds 0 to 9 of Branin: the twin ends with a probability above 0.8 in
# all of them (in one together with the whole past), with the paper's 32 points in eight.
_FEWEST_POINTS = 64
_DRAWS = 32  # of which the one with the most suitable correlations is taken
_POINTS = 512  # at which the correlation is measured


@dataclass(frozen=True, eq=False)
class MovedFunction:
    """A function of a family, rotated about the centre of the cube and shifted, without noise.

    Args:
        family: The family of the function.
        parameters: Those of a `Function`.
        rotation: `d x d`, orthogonal.
        shift: d.
    """

    family: Family
    parameters: tuple[float, ...]
    rotation: Tensor
    shift: Tensor

    def __call__(self, X: Any) -> Tensor:
        """The n values at `n x d` points: float64, larger is better."""
        X = check_points(X, f"X of {self.family.title}", d=self.family.d)
        # Outside of the cube the formulas are smooth, too.
        return -self.family.formula((X - 0.5) @ self.rotation + 0.5 + self.shift, self.parameters)


def role_of(name: str) -> Role:
    """The role of the past task with this name.

    Examples:
        >>> role_of("relative 2")
        'relative'
    """
    return next(role for role in ROLES if name.startswith(role))


def functions_of_past(function: Function, tasks: int, seed: int) -> dict[str, MovedFunction]:
    """The functions of the past tasks by name, in random order.

    Args:
        function: The new task.
        tasks: M. One is the twin; of the others, one half, rounded down, are relatives.
        seed: Decides functions and order.
    """
    return _draw_functions(function, tasks, np.random.default_rng([_PAST, check_seed(seed)]))


def draw_past(function: Function, tasks: int, seed: int) -> MetaData:
    """The past tasks: noisy values at points that are spread out.

    Args:
        function: The new task.
        tasks: M. One is the twin; of the others, one half, rounded down, are relatives.
        seed: Decides everything random.
    """
    generator = np.random.default_rng([_PAST, check_seed(seed)])
    family, found = function.family, []
    points = max(family.points, _FEWEST_POINTS)
    for name, past in _draw_functions(function, tasks, generator).items():
        sobol = SobolEngine(family.d, scramble=True, seed=int(generator.integers(2**31)))
        X = sobol.draw(points, dtype=torch.float64)
        noise = family.noise * generator.standard_normal(points)
        found.append(Task(X, past(X).numpy() + noise, name=name))
    return MetaData(found)


def _draw_functions(
    function: Function, tasks: int, generator: np.random.Generator
) -> dict[str, MovedFunction]:
    check_integer(tasks, "The number of meta-tasks", least=1)
    relatives = (tasks - 1) // 2
    X = generator.random((_POINTS, function.family.d))
    drawn = {"twin": _twin(function, generator)}
    drawn |= _chosen("relative", relatives, function, X, generator)
    drawn |= _chosen("stranger", tasks - 1 - relatives, function, X, generator)
    names = list(drawn)
    return {names[m]: drawn[names[m]] for m in generator.permutation(tasks)}


def _twin(function: Function, generator: np.random.Generator) -> MovedFunction:
    family = function.family
    low, high = np.array(family.low), np.array(family.high)
    step = _TWIN_STEP * (high - low) * generator.uniform(-1.0, 1.0, len(low))
    # A parameter just outside of its range is no problem for the formulas.
    parameters = tuple((np.array(function.parameters) + step).tolist())
    return MovedFunction(family, parameters, _identity(family), _nowhere(family))


def _chosen(
    role: Role, count: int, function: Function, X: NDArray[np.float64], generator: np.random.Generator
) -> dict[str, MovedFunction]:
    """Past tasks that have the correlation of their role with the new task and with each other."""
    draw = _relative if role == "relative" else _stranger
    values, found = function(X)[None], {}
    for m in range(count):
        draws = [draw(function.family, generator) for _ in range(_DRAWS)]
        drawn = torch.stack([past(X) for past in draws])
        correlation = torch.corrcoef(torch.cat([drawn, values]))[:_DRAWS, _DRAWS:]
        misfit = (correlation - _CORRELATION[role]).abs()
        misfit[:, 1:] *= _OTHERS
        best = int(misfit.amax(-1).argmin())
        found[f"{role} {m + 1}"] = draws[best]
        values = torch.cat([values, drawn[best : best + 1]])
    return found


def _relative(family: Family, generator: np.random.Generator) -> MovedFunction:
    """A shifted member of the family."""
    shift = _shift(family, generator)
    return MovedFunction(family, family.draw(generator).parameters, _identity(family), shift)


def _stranger(family: Family, generator: np.random.Generator) -> MovedFunction:
    """A rotated, perhaps reflected, and shifted member of the family."""
    rotation = torch.from_numpy(np.linalg.qr(generator.standard_normal((family.d, family.d))).Q)
    shift = _shift(family, generator)
    return MovedFunction(family, family.draw(generator).parameters, rotation, shift)


def _shift(family: Family, generator: np.random.Generator) -> Tensor:
    direction = generator.standard_normal(family.d)
    length = generator.uniform(0.0, _FURTHEST)
    return torch.from_numpy(length / np.linalg.norm(direction) * direction)


def _identity(family: Family) -> Tensor:
    return torch.eye(family.d, dtype=torch.float64)


def _nowhere(family: Family) -> Tensor:
    return torch.zeros(family.d, dtype=torch.float64)
