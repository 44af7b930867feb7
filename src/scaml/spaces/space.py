"""Parameters ↔ unit cube: Optuna's distributions as columns of X.

A number (float or int, on a linear or logarithmic scale, with or without a step) is one column: 0 at
its low end and 1 at its high end. A categorical parameter of k choices is k one-hot columns. A
parameter with only one value has no column. Values outside a number's range lie outside [0, 1]: past
experiments may have had wider ranges.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import torch
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)
from torch import Tensor

from scaml.common.wording import counted
from scaml.errors import SpaceError

__all__ = ["Block", "Space"]

# The value of a one-hot column for the choice that is taken. Two choices then have distance 1/2, like
# two numbers half a range apart. At distance √2, lengthscales that are usual for numbers would make all
# choices unrelated, and a fit that starts there does not leave this optimum.
CHOSEN = 0.5**1.5
# With more steps than this a search treats a grid as continuous; `decode` rounds to the grid.
_MOST_STEPS = 1_000_000
_FINEST = 1e-3  # share of a range: nobody sets a parameter more finely


@dataclass(frozen=True)
class Block:
    """The columns of one parameter and the values that a search may choose there."""

    kind: Literal["number", "grid", "choice"]
    columns: tuple[int, ...]
    values: Tensor  # k x columns, all values, ascending for a grid; empty for a number in [0, 1]


@dataclass(frozen=True)
class Space:
    """Named parameters with Optuna's distributions.

    Args:
        distributions: Name to `FloatDistribution`, `IntDistribution` or `CategoricalDistribution`.

    Examples:
        >>> space = Space({"C": FloatDistribution(0.01, 100.0, log=True),
        ...                "kernel": CategoricalDistribution(["rbf", "poly"])})
        >>> space.d
        3
        >>> x = space.encode({"C": 1.0, "kernel": "poly"})
        >>> [round(value, 3) for value in x.tolist()]
        [0.5, 0.0, 0.354]
        >>> space.decode(x)
        {'C': 1.0, 'kernel': 'poly'}
    """

    distributions: Mapping[str, BaseDistribution]

    def __post_init__(self) -> None:
        if not isinstance(self.distributions, Mapping):
            raise SpaceError(
                f"The space is a {type(self.distributions).__name__}; give a dictionary from names to "
                "Optuna distributions."
            )
        for name, distribution in self.distributions.items():
            if not isinstance(name, str) or not isinstance(
                distribution, FloatDistribution | IntDistribution | CategoricalDistribution
            ):
                raise SpaceError(
                    f"Parameter {name!r} of the space is {distribution!r}; give an Optuna "
                    "FloatDistribution, IntDistribution or CategoricalDistribution."
                )
            if not isinstance(distribution, CategoricalDistribution):
                low, high = _ends(distribution)
                width = high - low
                if not math.isfinite(width) or (width <= 0 and not distribution.single()):
                    raise SpaceError(
                        f"Parameter {name!r} of the space is {distribution!r}, a range that float64 "
                        "cannot scale; give finite ends that are further apart."
                    )
        object.__setattr__(self, "distributions", dict(self.distributions))
        if not self.d:
            raise SpaceError(
                "No parameter of the space can take two values, so there is nothing to choose; give at "
                "least one that can."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return tuple(self.distributions)

    @cached_property
    def columns(self) -> dict[str, tuple[int, ...]]:
        """The columns of X of each parameter; a parameter with only one value has none."""
        columns, next_column = {}, 0
        for name, distribution in self.distributions.items():
            width = width_of(distribution)
            columns[name] = tuple(range(next_column, next_column + width))
            next_column += width
        return columns

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of each column."""
        return tuple(
            f"{name}={distribution.choices[i]}"
            if isinstance(distribution, CategoricalDistribution)
            else name
            for name, distribution in self.distributions.items()
            for i in range(len(self.columns[name]))
        )

    @property
    def d(self) -> int:
        """Number of columns."""
        return sum(map(len, self.columns.values()))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The columns that a search may choose, one block per parameter that varies."""
        return tuple(
            _block(distribution, self.columns[name])
            for name, distribution in self.distributions.items()
            if self.columns[name]
        )

    @property
    def continuous(self) -> bool:
        """Whether every point of the cube is a point of the space."""
        return all(block.kind == "number" for block in self.blocks)

    def encode(self, params: Mapping[str, Any]) -> Tensor:
        """The parameters' values as a point of the cube, d long."""
        parts: list[float] = []
        for name, distribution in self.distributions.items():
            if name not in params:
                raise SpaceError(
                    f"Parameter {name!r} has no value; give values for {', '.join(self.names)}."
                )
            parts += encode_value(name, distribution, params[name])
        return torch.tensor(parts, dtype=torch.float64)

    def encode_all(self, rows: Sequence[Mapping[str, Any]]) -> Tensor:
        """n rows of parameters as `n x d` points."""
        if not rows:
            return torch.empty(0, self.d, dtype=torch.float64)
        return torch.stack([self.encode(row) for row in rows])

    def decode(self, x: Tensor | Sequence[float]) -> dict[str, Any]:
        """The parameters' values nearest to a point of the cube."""
        point = torch.as_tensor(x, dtype=torch.float64).flatten().tolist()
        if len(point) != self.d:
            raise SpaceError(
                f"The point has {counted(len(point), 'coordinate')} but the space has "
                f"{counted(self.d, 'column')}; give one coordinate per column."
            )
        if not all(map(math.isfinite, point)):
            raise SpaceError(f"The point is {point}; give finite coordinates.")
        return {
            name: _decode_value(distribution, [point[i] for i in self.columns[name]])
            for name, distribution in self.distributions.items()
        }

    def rounded(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The values with as many digits as people set by hand: a thousandth of each range."""
        return {name: _set_to(self.distributions[name], value) for name, value in params.items()}

    def to_json(self) -> str:
        """The space as text, for the header of a file."""
        return json.dumps({name: distribution_to_json(d) for name, d in self.distributions.items()})

    @classmethod
    def from_json(cls, text: str) -> Space:
        """Inverse of `to_json`."""
        try:
            loaded = json.loads(text)
            return cls({name: json_to_distribution(value) for name, value in loaded.items()})
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            raise SpaceError(
                f"The text does not describe a space ({error}); give what Space.to_json returned."
            ) from error


def width_of(distribution: BaseDistribution) -> int:
    """Number of columns of a parameter."""
    if distribution.single():
        return 0
    return len(distribution.choices) if isinstance(distribution, CategoricalDistribution) else 1


def encode_value(name: str, distribution: BaseDistribution, value: Any) -> list[float]:
    """The entries of the columns of one parameter."""
    if isinstance(distribution, CategoricalDistribution):
        if value not in distribution.choices:
            raise SpaceError(
                f"Parameter {name!r} is {value!r}; give one of its choices {distribution.choices}."
            )
        if distribution.single():
            return []
        place = int(distribution.to_internal_repr(value))
        return [CHOSEN * (i == place) for i in range(len(distribution.choices))]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if not _finite(value):
        raise SpaceError(f"Parameter {name!r} is {value!r}; give a finite number.")
    if distribution.single():
        return []
    if distribution.log and value <= 0:
        raise SpaceError(
            f"Parameter {name!r} is {value!r} on a logarithmic scale; give a positive number."
        )
    low, high = _ends(distribution)
    return [(_scale(distribution, float(value)) - low) / (high - low)]


def _finite(value: Any) -> bool:
    # `Real` alone would do, but plain numbers are checked faster by their own types.
    if not isinstance(value, float | int) and not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


def _scale(distribution: FloatDistribution | IntDistribution, value: float) -> float:
    return math.log(value) if distribution.log else value


def _ends(distribution: FloatDistribution | IntDistribution) -> tuple[float, float]:
    return _scale(distribution, distribution.low), _scale(distribution, distribution.high)


def _decode_value(distribution: BaseDistribution, point: list[float]) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[max(range(len(point)), key=point.__getitem__) if point else 0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = _ends(distribution)
    value = low + (high - low) * point[0] if point else low
    return nearest_value(distribution, math.exp(value) if distribution.log else value)


def nearest_value(distribution: FloatDistribution | IntDistribution, value: float) -> float | int:
    """The value of the distribution that is nearest to `value`."""
    value = min(max(value, distribution.low), distribution.high)
    if distribution.step is not None:
        steps = round((value - distribution.low) / distribution.step)
        value = min(distribution.low + steps * distribution.step, distribution.high)
    return int(value) if isinstance(distribution, IntDistribution) else float(value)


def _block(distribution: BaseDistribution, columns: tuple[int, ...]) -> Block:
    if isinstance(distribution, CategoricalDistribution):
        return Block("choice", columns, CHOSEN * torch.eye(len(columns), dtype=torch.float64))
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.step is None or _steps(distribution) > _MOST_STEPS:
        return Block("number", columns, torch.empty(0, 1, dtype=torch.float64))
    values = distribution.low + distribution.step * torch.arange(
        _steps(distribution) + 1, dtype=torch.float64
    )
    low, high = _ends(distribution)
    scaled = values.log() if distribution.log else values
    return Block("grid", columns, ((scaled - low) / (high - low)).unsqueeze(-1))


def _steps(distribution: FloatDistribution | IntDistribution) -> int:
    return round((distribution.high - distribution.low) / (distribution.step or 1.0))


def _set_to(distribution: BaseDistribution, value: Any) -> Any:
    if not isinstance(distribution, FloatDistribution) or distribution.step is not None:
        return value
    low, high = distribution.low, distribution.high
    width = value * math.log(high / low) if distribution.log else high - low
    if not width > 0.0:
        return value
    return min(max(round(value, -math.floor(math.log10(_FINEST * width))), low), high)
