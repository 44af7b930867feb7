"""Sentences about which past tasks the new one is like. They are plain text; the page escapes them."""

from __future__ import annotations

from scaml.common.wording import counted
from scaml.explain.explanations import ExplanationRow
from scaml.model.verdict import Verdict
from scaml.report.text import listed, percent, quoted, short

__all__ = ["ABOUT_PROBABILITIES", "about_explanations", "about_verdict", "explanation_text", "warnings"]

ABOUT_PROBABILITIES = (
    "A past task matters if the new one is like it, alone or together with others; it is mirrored if "
    "what was good there is bad here."
)
_USE = {
    True: "The predictions are the average over all of them, weighted by their probabilities.",
    False: "The past tasks have something in common, so that one model of them all makes the "
    "predictions; the probabilities only tell which of them the new task is like.",
}
_LONGEST = 90  # characters of an explanation
_NAMED = 5  # tasks in a sentence


def explanation_text(row: ExplanationRow) -> str:
    """An explanation in words, with the names of its past tasks."""
    if row.explanation is None:
        return counted(row.count, "other explanation")
    return short(row.explanation, _LONGEST)


def about_verdict(verdict: Verdict) -> str:
    """The most probable explanation, in one sentence."""
    n, best = verdict.observations, verdict.best
    told = f"like {short(best, _LONGEST)} ({percent(best.probability)})"
    if not n:
        return f"Before the first experiment, the past suggests that the new task is {told}."
    return f"After {counted(n, 'experiment')}, the new task is most probably {told}."


def about_explanations(verdict: Verdict) -> list[str]:
    """How to read the table of explanations."""
    words = ["Each row of the table is one explanation of the new task.", _USE[verdict.acted_on]]
    if not verdict.observations:
        words.append("Before the first experiment, they tell only how alike the past tasks are.")
    return words


def warnings(verdict: Verdict) -> list[str]:
    """What a reader should check before trusting the past; empty if there is nothing."""
    found, mirrored = [], verdict.looks_mirrored
    if verdict.set_aside:
        found.append(
            f"{verdict.consequence}: after {counted(verdict.observations, 'experiment')}, the "
            f"probability that no past task is like the new one is {percent(verdict.none)}."
        )
    if mirrored:
        more = len(mirrored) - _NAMED
        names = [quoted(name) for name in mirrored[:_NAMED]] + ([f"{more} more"] if more > 0 else [])
        found.append(
            f"{listed(names)} {'looks' if len(mirrored) == 1 else 'look'} mirrored: what was good "
            "there is bad here. Check the direction of the objective."
        )
    return found
