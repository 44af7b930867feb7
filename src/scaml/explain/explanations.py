"""Which past tasks the new one is like: the probable explanations as rows, the others summed up."""

from __future__ import annotations

from dataclasses import dataclass

from botorch.models.model import Model

from scaml.errors import SettingError
from scaml.explain.inapplicable import Inapplicable
from scaml.model.protocols import ExplainedModel
from scaml.model.verdict import ProbableExplanation, Verdict

__all__ = ["ExplanationRow", "explanation_rows", "verdict_of"]

_LEAST = 0.01  # probability of an explanation with a row of its own
_MOST = 8  # explanations with a row of their own


@dataclass(frozen=True)
class ExplanationRow:
    """An explanation of the new task, or all that have no row of their own.

    Args:
        explanation: The explanation; None for the others together.
        probability: Its posterior probability, or the sum over the others.
        count: The number of explanations in this row.
    """

    explanation: ProbableExplanation | None
    probability: float
    count: int = 1


def verdict_of(model: Model) -> Verdict | None:
    """What the model says of the past tasks; None if it does not explain itself."""
    if not isinstance(model, ExplainedModel):
        return None
    try:
        return model.explain()
    except SettingError:  # a model with fantasies, which has probabilities but no verdict
        return None


def explanation_rows(verdict: Verdict | None, method: str = "This model") -> list[ExplanationRow]:
    """The probable explanations, the most probable first; the last row has the others, if any are left.

    The most probable one has a row however improbable it is.

    Args:
        verdict: What `verdict_of` returns.
        method: What to call the model in a sentence.

    Raises:
        Inapplicable: If there is no verdict.
    """
    if verdict is None:
        raise Inapplicable(f"{method} does not tell which past tasks the new one is like.")
    shown = [e for e in verdict.explanations[:_MOST] if e.probability >= _LEAST]
    shown = shown or [verdict.best]
    rows = [ExplanationRow(e, e.probability) for e in shown]
    others = verdict.explanations[len(shown) :]
    if others:
        rows.append(ExplanationRow(None, sum(e.probability for e in others), len(others)))
    return rows
