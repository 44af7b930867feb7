"""What the past is worth to the new task, as lines for the terminal and as JSON for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaml.explain.leave_one_out import Comparison
    from scaml.explain.run import Run
    from scaml.model.verdict import Verdict

__all__ = ["past_json", "past_lines"]

_NAMED = 5  # past tasks in a line
_HELPS = {
    1: "So far the past helps",
    0: "So far the past makes no clear difference",
    -1: "So far the past misleads",
}


def past_lines(run: Run) -> list[str]:
    """Which past tasks the new one is like, warnings, and the errors with the past and without it."""
    lines = [] if run.verdict is None else _verdict_lines(run.verdict)
    comparison = _comparison(run)
    if comparison is not None and comparison.plain is not None:
        lines.append(
            f"{_HELPS[comparison.winner]}: predicting each experiment from the others, the typical "
            f"error is {comparison.ours.error:.3g} with the past, {comparison.plain.error:.3g} without."
        )
    return lines


def past_json(run: Run) -> dict[str, Any]:
    """The same as values that JSON has; null where the method or the data do not tell."""
    from scaml.explain.explanations import explanation_rows

    verdict, comparison = run.verdict, _comparison(run)
    rows = [] if verdict is None else explanation_rows(verdict)
    told = [
        {
            "like": str(e),
            "kind": e.kind,
            "tasks": list(e.tasks),
            "mirrored": e.mirrored,
            "probability": e.probability,
        }
        for row in rows
        if (e := row.explanation) is not None
    ]
    return {
        "explanations": None if verdict is None else told,
        "matters": None if verdict is None else verdict.matters,
        "mirrored": None if verdict is None else verdict.mirrored,
        "leave_one_out": None if comparison is None else _errors(comparison),
    }


def _verdict_lines(verdict: Verdict) -> list[str]:
    told = str(verdict)
    lines = [f"{told[0].upper()}{told[1:]}."]
    if verdict.set_aside:
        lines.append(
            f"{verdict.consequence}: the probability that no past task is like the new one is "
            f"{verdict.none:.0%}."
        )
    mirrored = verdict.looks_mirrored
    if mirrored:
        names = ", ".join(map(repr, mirrored[:_NAMED])) + (", ..." if len(mirrored) > _NAMED else "")
        looks = "looks" if len(mirrored) == 1 else "look"
        lines.append(f"{names} {looks} mirrored; check the direction of the objective.")
    return lines


def _errors(comparison: Comparison) -> dict[str, float | None]:
    plain = comparison.plain
    return {
        "error": comparison.ours.error,
        "error_without_past": None if plain is None else plain.error,
        "gain": comparison.gain,
    }


def _comparison(run: Run) -> Comparison | None:
    from scaml.explain.inapplicable import Inapplicable

    try:
        return run.comparison
    except Inapplicable:
        return None
