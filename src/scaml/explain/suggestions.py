"""The numbers of a suggestion: parameters, prediction, and what each past task adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from botorch.models.model import Model
from torch import Tensor

from scaml.explain.moments import moments, predicts_values
from scaml.explain.parameters import Parameter
from scaml.explain.shares import past_parts_of
from scaml.model.past_parts import PastParts
from scaml.spaces.space import Space

__all__ = ["Suggestion", "suggestions_at"]

_ROUNDING = 1e-9  # where all values are equal, the prediction is that value up to rounding errors


@dataclass(frozen=True)
class Suggestion:
    """An experiment to do next.

    Args:
        params: The value of every parameter, rounded to a thousandth of its range.
        expected: The predicted value of the objective; None if the method does not predict values.
        deviation: The standard deviation of this prediction.
        moved_by: How far each past task raises (+) or lowers (-) the prediction; the largest change
            first, tasks without an effect left out.
        beyond: The smallest or largest value that any experiment gave, past or new, if the prediction
            lies beyond it; else None. A prediction that no value supports, such as a negative error
            rate, is shown with this number.
    """

    params: dict[str, Any]
    expected: float | None
    deviation: float | None
    moved_by: dict[str, float]
    beyond: float | None = None

    @property
    def is_below(self) -> bool:
        """Whether the prediction is below all values that experiments gave, rather than above."""
        return self.expected is not None and self.beyond is not None and self.expected < self.beyond


def suggestions_at(
    X: Tensor,
    model: Model,
    *,
    space: Space | None,
    parameters: Sequence[Parameter],
    sign: float,
    observed: tuple[float, float] | None = None,
) -> list[Suggestion]:
    """The numbers of each suggested point.

    Args:
        X: `k x d`, the points.
        model: The model of the new task.
        space: What the columns of X mean; None for the unit cube.
        parameters: The parameters that vary.
        sign: -1 if the model predicts -y of a minimized objective.
        observed: The smallest and the largest value of the objective, not of -y, in any experiment;
            None if there is none.
    """
    mean: list[Any] = [None] * len(X)
    deviation: list[Any] = [None] * len(X)
    if predicts_values(model):
        predicted, spread = moments(model, X)
        mean, deviation = (sign * predicted).tolist(), spread.tolist()
    parts = past_parts_of(model)
    return [
        Suggestion(
            _params(x, space, parameters),
            mean[i],
            deviation[i],
            _moves(x, parts, sign),
            _beyond(mean[i], observed),
        )
        for i, x in enumerate(X)
    ]


def _beyond(expected: float | None, observed: tuple[float, float] | None) -> float | None:
    """The end of the observed range that a prediction lies beyond; None if it lies within the range."""
    if expected is None or observed is None:
        return None
    low, high = observed
    rounding = _ROUNDING * max(abs(low), abs(high))
    if expected < low - rounding:
        return low
    return high if expected > high + rounding else None


def _params(x: Tensor, space: Space | None, parameters: Sequence[Parameter]) -> dict[str, Any]:
    if space is None:
        return {parameter.name: parameter.places(x[None])[0] for parameter in parameters}
    return space.rounded(space.decode(x))


def _moves(x: Tensor, parts: PastParts | None, sign: float) -> dict[str, float]:
    """What each past task adds to the mean at x, the largest first; 0 is left out."""
    if parts is None:
        return {}
    moves = (sign * parts.means(x[None])[:-1, 0]).tolist()
    order = sorted(zip(parts.names, moves, strict=True), key=lambda pair: -abs(pair[1]))
    return {name: move for name, move in order if move}
