"""The parameters of a space as axes: from columns of X to values, and points along one parameter.

Without a space, the d columns of X are parameters x1, x2, ..., each in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from torch import Tensor

from scaml.spaces.space import Block, Space

__all__ = ["Parameter", "parameters_of", "sample"]

_FEW = 12  # values of a parameter that is drawn value by value


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter that varies.

    Args:
        name: The user's name.
        block: The columns of X that belong to the parameter, and the values that they can take.
        distribution: What the columns mean; None for a coordinate of the cube.
    """

    name: str
    block: Block
    distribution: BaseDistribution | None = None

    @property
    def log(self) -> bool:
        """Whether the axis is logarithmic."""
        return bool(getattr(self.distribution, "log", False))

    @property
    def choices(self) -> tuple[Any, ...]:
        """The choices of a categorical parameter; empty for a number."""
        if isinstance(self.distribution, CategoricalDistribution):
            return tuple(self.distribution.choices)
        return ()

    @property
    def ends(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        if isinstance(self.distribution, FloatDistribution | IntDistribution):
            return float(self.distribution.low), float(self.distribution.high)
        return (-0.5, len(self.choices) - 0.5) if self.choices else (0.0, 1.0)

    @property
    def discrete(self) -> bool:
        """Whether the values are choices, or so few numbers that each gets a mark."""
        return self.block.kind == "choice" or 0 < len(self.block.values) <= _FEW

    def levels(self, most: int) -> Tensor:
        """Values along the axis, `k x columns`: at most `most`, evenly spread, but all choices."""
        even = torch.linspace(0.0, 1.0, most, dtype=torch.float64).unsqueeze(-1)
        if self.block.kind == "number":
            return even
        if self.block.kind == "choice" or len(self.block.values) <= most:
            return self.block.values
        nearest: Tensor = _nearest(self.block.values, even).unique(dim=0)
        return nearest

    def strata(self, most: int) -> Tensor:
        """Values that stand for equal parts of the range, `k x columns`."""
        if self.block.kind != "number":
            return self.levels(most)
        return ((torch.arange(most, dtype=torch.float64) + 0.5) / most).unsqueeze(-1)

    def places(self, X: Tensor) -> list[float]:
        """Where points, `n x d`, lie on the axis: values of a number, or numbers of choices from 0."""
        part = X[..., list(self.block.columns)]
        if self.choices:
            return [float(place) for place in part.argmax(-1).tolist()]
        column = part.squeeze(-1)
        if not isinstance(self.distribution, FloatDistribution | IntDistribution):
            return [float(value) for value in column.tolist()]
        low, high = self.ends
        if self.log:
            return [float(low * (high / low) ** value) for value in column.tolist()]
        return [float(low + (high - low) * value) for value in column.tolist()]

    def distance(self, X: Tensor, x: Tensor) -> Tensor:
        """How far points, `n x d`, are from the point x in this parameter, n: in parts of the range.

        Two different choices are half a range apart, as in `Space`.
        """
        columns = list(self.block.columns)
        apart = (X[:, columns] - x[columns]).abs()
        if not self.choices:
            return apart.squeeze(-1)
        return 0.5 * (X[:, columns].argmax(-1) != x[columns].argmax(-1)).double()

    def along(self, x: Tensor, levels: Tensor) -> Tensor:
        """Points, `batch x k x d`, that differ from x, `batch x d`, only in this parameter."""
        points = x.unsqueeze(-2).repeat(*[1] * (x.ndim - 1), len(levels), 1)
        points[..., list(self.block.columns)] = levels
        return points


def parameters_of(space: Space | None, d: int) -> tuple[Parameter, ...]:
    """The parameters that vary, in the order of the columns of X."""
    if space is None:
        nothing = torch.empty(0, 1, dtype=torch.float64)
        return tuple(Parameter(f"x{i + 1}", Block("number", (i,), nothing)) for i in range(d))
    names = [name for name in space.names if space.columns[name]]
    return tuple(
        Parameter(name, block, space.distributions[name])
        for name, block in zip(names, space.blocks, strict=True)
    )


def sample(parameters: Sequence[Parameter], n: int, *, seed: int) -> Tensor:
    """n points of the space, `n x d`, spread evenly (a Sobol sequence)."""
    sobol = torch.quasirandom.SobolEngine(len(parameters), scramble=True, seed=seed)
    draws = sobol.draw(n, dtype=torch.float64)
    parts: list[Tensor] = []
    for parameter, draw in zip(parameters, draws.T, strict=True):
        if len(parameter.block.values):
            parts.append(_spread(parameter.block, draw))
        else:
            parts.append(draw.unsqueeze(-1))
    return torch.cat(parts, dim=-1)


def _nearest(values: Tensor, points: Tensor) -> Tensor:
    """For each point, `n x 1`, the nearest of the ascending values, `k x 1`."""
    middles = (values[1:] + values[:-1]).flatten() / 2.0
    return values[torch.bucketize(points.flatten(), middles)]


def _spread(block: Block, draw: Tensor) -> Tensor:
    """Values, `n x columns`, for n uniform draws from [0, 1].

    All choices have the same probability. The probability of a step is the part of the axis around it.
    """
    values = block.values
    if block.kind == "choice":
        return values[(draw * len(values)).long().clamp_max(len(values) - 1)]
    low = 1.5 * values[0] - 0.5 * values[1]
    high = 1.5 * values[-1] - 0.5 * values[-2]
    return _nearest(values, low + (high - low) * draw.unsqueeze(-1))
