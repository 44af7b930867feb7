"""The weights of the past tasks as rows, each with its shares of the prior's mean and variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from botorch.models.model import Model
from torch import Tensor

from scaml.explain.explanations import verdict_of
from scaml.explain.inapplicable import Inapplicable
from scaml.explain.shares import Shares, past_parts_of

__all__ = ["WeightRow", "weight_rows", "weights_of"]


@dataclass(frozen=True)
class WeightRow:
    """A past task, or the rest that no past task accounts for.

    Args:
        name: The name of the past task; None for the rest.
        weight: w_m; None for the rest.
        mean: The share of the mean; None if the model has no shares, or if the rest adds nothing to the
            mean.
        variance: The share of the variance; None if the model has no shares.
        matters: The probability that the task matters; None for the rest, and if the model does not
            tell.
        mirrored: The probability that the task is like the new one with the opposite sign; None as
            above.
    """

    name: str | None
    weight: float | None
    mean: float | None = None
    variance: float | None = None
    matters: float | None = None
    mirrored: float | None = None

    @property
    def is_rest(self) -> bool:
        """Whether this is the rest: ScaML-GP's residual kernel, or an ensemble's GP of the new task."""
        return self.name is None


def weights_of(model: Model, names: tuple[str, ...]) -> Tensor | None:
    """The weights of the past tasks, M; None if the model has none."""
    weights = getattr(model, "weights", None)
    if not isinstance(weights, Tensor) or not names or weights.shape != (len(names),):
        return None
    return weights.detach()


def weight_rows(
    model: Model, X: Tensor, names: tuple[str, ...], method: str = "This model"
) -> list[WeightRow]:
    """One row per past task, the largest weight first; the last row is the rest, if the model has one.

    Args:
        model: The model of the new task.
        X: `n x d` points that stand for the space.
        names: The names of the past tasks.
        method: What to call the model in a sentence.

    Raises:
        Inapplicable: If there is no past task, or if the model has no weights.
    """
    weights = weights_of(model, names)
    if not names:
        raise Inapplicable("There is no past task: the model knows only the new data.")
    if weights is None:
        raise Inapplicable(f"{method} has no weights of the past tasks.")
    order = weights.abs().argsort(descending=True, stable=True).tolist()
    parts = past_parts_of(model)
    matters, mirrored = _probabilities(model, len(names))
    if parts is None:
        return [
            WeightRow(names[m], float(weights[m]), matters=matters[m], mirrored=mirrored[m])
            for m in order
        ]
    shares = Shares.of(parts, X)
    rows = [
        WeightRow(
            names[m],
            float(weights[m]),
            float(shares.mean[m]),
            float(shares.variance[m]),
            matters[m],
            mirrored[m],
        )
        for m in order
    ]
    rest_of_mean = None if parts.of_prior else float(shares.mean[-1])
    return [*rows, WeightRow(None, None, rest_of_mean, float(shares.variance[-1]))]


def _probabilities(model: Model, tasks: int) -> tuple[Sequence[float | None], Sequence[float | None]]:
    """Per past task, the probabilities that it matters and that it is mirrored; None where unknown.

    They are in the order of the weights: the caller may have given the tasks other names.
    """
    verdict = verdict_of(model)
    if verdict is None:
        return [None] * tasks, [None] * tasks
    return list(verdict.matters.values()), list(verdict.mirrored.values())
