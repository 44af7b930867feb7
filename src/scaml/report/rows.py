"""The numbers of the page's tables: a row a past task, a column a suggestion."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.common.text import number, percent, plain, setting, signed, with_spread
from scaml.explain.moments import BAND
from scaml.explain.run import Inapplicable, Run
from scaml.explain.shares import Shares, past_parts_of, weights_of

__all__ = ["Suggested", "WeightRow", "setting_names", "suggested", "weight_in_words", "weight_rows"]

_MOST_BEHIND = 3
_LEAST_BEHIND = 0.05  # of the largest contribution
_REST = {True: "not explained by the past", False: "the new data alone"}  # by PastParts.of_prior


@dataclass(frozen=True)
class WeightRow:
    """What a past task counts for.

    Args:
        name: The task's.
        weight: w_m; None for what is no past task.
        mean: Its share of the mean; None where there is no such thing.
        variance: Its share of the variance; None where there is no such thing.
    """

    name: str
    weight: float | None
    mean: float | None = None
    variance: float | None = None

    @property
    def described(self) -> str:
        """All of it in one line."""
        parts = [] if self.weight is None else [f"weight {number(self.weight, 3)}"]
        if self.mean is not None:
            parts.append(f"{percent(self.mean)} of the mean")
        if self.variance is not None:
            parts.append(f"{percent(self.variance)} of the variance")
        return f"{plain(self.name)}: {', '.join(parts)}"


def weight_rows(
    model: Model, X: Tensor, names: tuple[str, ...], method: str = "This model"
) -> list[WeightRow]:
    """The past tasks by their weights, the largest first; last what none of them explains.

    Args:
        model: What a prior makes of a task.
        X: `n x d` points that stand for the space.
        names: Of the past tasks.
        method: What to call the model in a sentence.
    """
    weights = weights_of(model, names)
    if not names:
        raise Inapplicable("There is no past task: the model knows the new data alone.")
    if weights is None:
        raise Inapplicable(f"{method} gives the past tasks no weights.")
    order = weights.abs().argsort(descending=True, stable=True).tolist()
    parts = past_parts_of(model)
    if parts is None:
        return [WeightRow(names[m], float(weights[m])) for m in order]
    shares = Shares.of(parts, X)
    rows = [
        WeightRow(names[m], float(weights[m]), float(shares.mean[m]), float(shares.variance[m]))
        for m in order
    ]
    rest_of_mean = None if parts.of_prior else float(shares.mean[-1])
    return [*rows, WeightRow(_REST[parts.of_prior], None, rest_of_mean, float(shares.variance[-1]))]


def weight_in_words(weight: float) -> str:
    """A weight to two digits that tells 0, which drops the task, from little.

    Examples:
        >>> weight_in_words(0.0), weight_in_words(1e-5), weight_in_words(0.618)
        ('0', '≈ 0', '0.62')
    """
    if weight == 0:
        return "0"
    return number(weight, 2) if abs(weight) >= 5e-4 else "≈ 0"


@dataclass(frozen=True)
class Suggested:
    """A point to evaluate next.

    Args:
        settings: The values of the parameters, those that cannot vary included.
        expected: The expected value with two standard deviations; empty where there is none.
        behind: The past tasks that move the expectation most, each with how far it does.
    """

    settings: tuple[str, ...]
    expected: str
    behind: tuple[tuple[str, str], ...]


def setting_names(run: Run) -> list[str]:
    """The names of all parameters, those that cannot vary included."""
    space = run.subject.space
    return [p.name for p in run.parameters] if space is None else list(space.names)


def suggested(run: Run) -> list[Suggested]:
    """The suggestions; empty if there are none."""
    X = run.subject.suggestions
    if X is None:
        return []
    try:
        mean, deviation = run.shown(X)
        expected = [
            with_spread(m, BAND * s) for m, s in zip(mean.tolist(), deviation.tolist(), strict=True)
        ]
    except Inapplicable:
        expected = [""] * len(X)
    parts = past_parts_of(run.model)
    moves = torch.empty(0, len(X)) if parts is None else run.sign * parts.means(X)[:-1]
    names = () if parts is None else parts.names
    return [
        Suggested(_settings(run, x), expected[i], _behind(names, moves[:, i])) for i, x in enumerate(X)
    ]


def _settings(run: Run, x: Tensor) -> tuple[str, ...]:
    space = run.subject.space
    if space is None:
        return tuple(parameter.text(x) for parameter in run.parameters)
    return tuple(setting(value) for value in space.rounded(space.decode(x)).values())


def _behind(names: tuple[str, ...], moves: Tensor) -> tuple[tuple[str, str], ...]:
    """The two or three tasks that move the mean most."""
    if not len(moves) or not moves.abs().max() > 0:
        return ()
    least = _LEAST_BEHIND * float(moves.abs().max())
    order = moves.abs().argsort(descending=True, stable=True)[:_MOST_BEHIND].tolist()
    return tuple((names[m], signed(float(moves[m]))) for m in order if abs(float(moves[m])) >= least)
