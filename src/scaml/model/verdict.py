"""`Verdict`: which past tasks the new one is like, in probabilities and in words."""

from __future__ import annotations

from dataclasses import dataclass

from scaml.common.wording import counted
from scaml.model.mutual_evidence import Kind

__all__ = ["ProbableExplanation", "Verdict"]

_LISTED = 3  # explanations in the one-line form
_WORTH_A_WORD = 0.05  # probability
_FEWEST = 5  # observations before a user is warned
_LIKELY = 0.5  # probability above which a user is warned


@dataclass(frozen=True)
class ProbableExplanation:
    """An explanation of the new task, with its posterior probability.

    Args:
        kind: "all", the past as a whole; "group", past tasks that are alike; "task", one past task
            alone; "none", no past task.
        tasks: The names of the past tasks that it uses.
        mirrored: Whether the new task is like them with the opposite sign.
        probability: Its posterior probability.
    """

    kind: Kind
    tasks: tuple[str, ...]
    mirrored: bool
    probability: float

    def __str__(self) -> str:
        named = {
            "all": "all past tasks together",
            "group": f"a group of {len(self.tasks)} past tasks ({_first(self.tasks)})",
            "task": f"{_first(self.tasks)} alone",
            "none": "no past task",
        }[self.kind]
        if self.kind == "all" and len(self.tasks) == 1:
            named = _first(self.tasks)
        return f"{named}, mirrored" if self.mirrored else named


@dataclass(frozen=True)
class Verdict:
    """What `model.explain()` returns.

    Args:
        explanations: All explanations, the most probable first.
        matters: For every past task, the probability that it matters: that of all explanations in which
            it is used.
        mirrored: For every past task, the probability that it is like the new one with the opposite
            sign.
        observations: n_t, the observations that it is based on.
        acted_on: Whether the model is the average over the explanations. It is not where the past tasks
            have something in common: then one model of them all predicts.
    """

    explanations: tuple[ProbableExplanation, ...]
    matters: dict[str, float]
    mirrored: dict[str, float]
    observations: int
    acted_on: bool = True

    @property
    def best(self) -> ProbableExplanation:
        """The most probable explanation."""
        return self.explanations[0]

    @property
    def none(self) -> float:
        """The probability that no past task is like the new one."""
        return sum(e.probability for e in self.explanations if e.kind == "none")

    @property
    def set_aside(self) -> bool:
        """Whether a user should know that no past task is like the new one."""
        return self.observations >= _FEWEST and self.none > _LIKELY

    @property
    def consequence(self) -> str:
        """What follows from that, as the beginning of a sentence."""
        return "The past is set aside" if self.acted_on else "The past may mislead"

    @property
    def looks_mirrored(self) -> tuple[str, ...]:
        """The past tasks of which a user should know that they look mirrored."""
        if self.observations < _FEWEST:
            return ()
        return tuple(name for name, p in self.mirrored.items() if p > _LIKELY)

    def __str__(self) -> str:
        told = [e for e in self.explanations[:_LISTED] if e.probability >= _WORTH_A_WORD]
        shown = "; ".join(f"{e} {e.probability:.0%}" for e in told or self.explanations[:1])
        n = self.observations
        when = f"after {counted(n, 'observation')}" if n else "before the first observation"
        return f"{when}, the new task is like: {shown}"


def _first(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:2]))
    return f"{shown}, ..." if len(names) > 2 else shown
