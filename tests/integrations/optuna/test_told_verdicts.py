"""What the sampler tells of past studies: attributes, one log line per change, warnings."""

from __future__ import annotations

from itertools import pairwise

import optuna
import pytest

from scaml import ScaML, ScaMLSampler
from scaml.integrations.optuna.told_verdicts import EXPLANATIONS, MATTERS
from tests.sampler_cases import Ear, run, study_of, valley, valleys

pytestmark = pytest.mark.usefixtures("quiet")


def against(trial: optuna.Trial) -> float:
    return -valley(trial)


def explained(past: list[optuna.Study], trials: int = 8) -> optuna.Study:
    sampler = ScaMLSampler(past, method=ScaML(weights="explained"), seed=0)
    study: optuna.Study = run(sampler, valley, trials)
    return study


def test_every_trial_has_the_probabilities(ear: Ear) -> None:
    study = explained(valleys())
    for trial in study.trials[1:]:
        told, matters = trial.user_attrs[EXPLANATIONS], trial.user_attrs[MATTERS]
        assert sum(told.values()) == pytest.approx(1.0, abs=0.1)
        assert set(matters) <= {past.study_name for past in valleys()}
        assert list(told.values()) == sorted(told.values(), reverse=True)


def test_a_line_is_logged_when_the_best_explanation_changes_and_only_then(ear: Ear) -> None:
    study = explained(valleys())
    best = [next(iter(trial.user_attrs[EXPLANATIONS])) for trial in study.trials[1:]]
    changes = 1 + sum(a != b for a, b in pairwise(best))
    lines = [line for line in ear.said() if "the new task is like" in line]
    assert len(lines) == changes


def test_a_past_that_runs_against_the_new_study_is_warned_of_once(ear: Ear) -> None:
    past = [study_of(against, 15, seed=i) for i in range(3)]
    explained(past, 12)
    assert len([line for line in ear.warned() if "mirrored" in line]) >= 1
    assert len(ear.warned()) == len(set(ear.warned()))


def test_a_method_without_explanations_tells_nothing(ear: Ear) -> None:
    study = run(ScaMLSampler(valleys(), method=ScaML.paper(), seed=0), valley, 3)
    assert all(EXPLANATIONS not in trial.user_attrs for trial in study.trials)
