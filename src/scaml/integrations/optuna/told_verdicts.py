"""What the sampler says of the past studies: attributes of trials, and log lines when it changes."""

from __future__ import annotations

import json

from optuna.study import Study
from optuna.trial import FrozenTrial

from scaml.common.logger import logger
from scaml.integrations.optuna.reservation import LONGEST_ATTRIBUTE
from scaml.model.protocols import ExplainedModel
from scaml.model.verdict import Verdict

__all__ = ["EXPLANATIONS", "MATTERS", "ToldVerdicts"]

EXPLANATIONS = "scaml:explanations"
"""The user attribute with the probable explanations of the new study."""
MATTERS = "scaml:matters"
"""The user attribute with the probability that each past study matters."""
_WORTH_TELLING = 0.005  # probability


class ToldVerdicts:
    """Tells what a model says of the past, once per change."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._warned: set[tuple[str, str]] = set()

    def tell(self, study: Study, trial: FrozenTrial, model: object) -> None:
        """Store the verdict with the trial, and log it if another explanation is now the best."""
        if not isinstance(model, ExplainedModel):
            return
        verdict = model.explain()
        _store(study, trial, EXPLANATIONS, {str(e): e.probability for e in verdict.explanations})
        _store(study, trial, MATTERS, verdict.matters)
        best = str(verdict.best)
        if verdict.observations and self._told.get(study.study_name) != best:
            self._told[study.study_name] = best
            logger.info("ScaMLSampler: %s.", verdict)
        for warning in _warnings(verdict):
            if (study.study_name, warning[0]) not in self._warned:
                self._warned.add((study.study_name, warning[0]))
                logger.warning("%s", warning[1])


def _warnings(verdict: Verdict) -> list[tuple[str, str]]:
    """What a user should know about the past, each with a key under which it is said once."""
    n, found, mirrored = verdict.observations, [], verdict.looks_mirrored
    if mirrored:
        names = ", ".join(map(repr, mirrored[:5]))
        looks = "looks" if len(mirrored) == 1 else "look"
        text = f"The past studies disagree with these {n} trials: {names} {looks} mirrored."
        found.append((f"mirrored {names}", f"{text} Check the direction of the objective."))
    if verdict.set_aside:
        found.append(
            (
                "none",
                f"{verdict.consequence}: after {n} trials, no past study is like the new one with "
                f"probability {verdict.none:.0%}.",
            )
        )
    return found


def _store(study: Study, trial: FrozenTrial, key: str, values: dict[str, float]) -> None:
    """Store probabilities, the largest first, as many as fit into an attribute."""
    shown: dict[str, float] = {}
    for name, p in sorted(values.items(), key=lambda pair: -pair[1]):
        longer = shown | {name: round(p, 4)}
        if p < _WORTH_TELLING or len(json.dumps(longer)) > LONGEST_ATTRIBUTE:
            break
        shown = longer
    study._storage.set_trial_user_attr(trial._trial_id, key, shown)
