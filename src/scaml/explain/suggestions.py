"""The numbers that explain a suggestion: what is expected, how sure, and which past tasks move it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scaml.explain.run import Inapplicable, Run
from scaml.explain.shares import past_parts_of
from scaml.explain.subject import Subject

__all__ = ["Suggestion", "suggestions"]


@dataclass(frozen=True)
class Suggestion:
    """An experiment to do next.

    Args:
        params: The values of the parameters, with as many digits as somebody sets.
        expected: The value that is expected; None where a method does not predict values.
        deviation: Its standard deviation.
        behind: How far each past task moves the expectation, the largest first.
    """

    params: dict[str, Any]
    expected: float | None
    deviation: float | None
    behind: dict[str, float]


def suggestions(subject: Subject, *, seed: int = 0) -> list[Suggestion]:
    """What is known of each of the subject's suggestions.

    Args:
        subject: With a space.
        seed: Of the model's fit.
    """
    run, X, space = Run.of(subject, seed=seed), subject.suggestions, subject.space
    if X is None or space is None:
        return []
    try:
        mean, deviation = (values.tolist() for values in run.shown(X))
    except Inapplicable:
        mean = deviation = [None] * len(X)
    parts = past_parts_of(run.model)
    found = []
    for i, x in enumerate(X):
        behind = {}
        if parts is not None:
            moves = (run.sign * parts.means(x[None])[:-1, 0]).tolist()
            moved = sorted(zip(parts.names, moves, strict=True), key=lambda pair: -abs(pair[1]))
            behind = {name: move for name, move in moved if move}
        found.append(Suggestion(space.rounded(space.decode(x)), mean[i], deviation[i], behind))
    return found
