"""Pruned trials of past studies: which are read, with which values, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import create_trial

import scaml
from scaml.integrations.optuna.past_studies import read_studies
from tests.pruned_cases import (
    COMPLETE,
    INF,
    MAXIMIZE,
    MINIMIZE,
    NAN,
    PRUNED,
    long_way,
    number_of,
    pruned_past,
    study_with,
    trial_of,
)
from tests.sampler_cases import UNIT, params

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_past_with_pruned_trials_has_more_rows() -> None:
    study = pruned_past()
    complete, pruned = (number_of(study, state) for state in (COMPLETE, PRUNED))
    assert complete >= 4
    assert pruned >= 4
    past = read_studies([study])
    (task,) = past.tasks
    assert len(task.y) == len(task.params) == complete + pruned == 20
    assert list(task.params) == params(study)
    expected = long_way(study.trials, MINIMIZE) | {
        t.number: t.value or 0.0 for t in study.trials if t.state == COMPLETE
    }
    assert list(task.y) == pytest.approx([-expected[i] for i in range(20)], rel=1e-12)
    assert str(past) == f"1 past study, 20 trials used ({pruned} of them pruned)"
    assert past.pruned == (pruned,)
    assert not past.left_out


def test_pruned_trials_are_counted_without_the_study_itself() -> None:
    complete = [trial_of(float(i), {0: float(i)}) for i in range(3)]
    one = study_with([*complete, trial_of(None, {0: 9.0})], study_name="one")
    two = study_with([*complete, *[trial_of(None, {0: 9.0})] * 2], study_name="two")
    past = read_studies([one, two])
    assert str(past) == "2 past studies, 9 trials used (3 of them pruned)"
    assert str(past.without(one)) == "1 past study, 5 trials used (2 of them pruned)"


def test_pruned_trials_that_say_nothing_are_left_out_by_reason() -> None:
    other = create_trial(
        state=PRUNED, params={"z": 0.5}, distributions={"z": UNIT}, intermediate_values={0: 1.0}
    )
    study = study_with(
        [
            trial_of(1.0, {0: 1.0}),
            trial_of(2.0, {0: 2.0}),
            trial_of(None, {0: 3.0}),
            trial_of(None, {1: 3.0}),
            trial_of(None, {1: NAN}),
            trial_of(None, {}),
            other,
        ]
    )
    past = read_studies([study])
    assert past.left_out == {
        "pruned": 1,
        "pruned with other parameters": 1,
        "pruned without complete trials to compare with": 2,
    }
    assert list(past.tasks[0].y) == [-1.0, -2.0, -2.0]
    assert set(past.tasks[0].distributions) == {"x"}  # the trial with "z" alone does not take it away


def test_a_study_of_pruned_trials_alone_is_left_out() -> None:
    study = study_with([trial_of(1.0, {0: 1.0}), *[trial_of(None, {0: 3.0})] * 4])
    past = read_studies([study])
    assert past.tasks == ()
    assert past.pruned == ()
    assert past.left_out == {
        "in studies with fewer than 2 usable trials": 1,
        "pruned without complete trials to compare with": 4,
    }


def test_thinned_pruned_trials_are_not_counted() -> None:
    complete = [trial_of(float(i), {0: float(i)}) for i in range(150)]
    study = study_with([*complete, *[trial_of(None, {0: 200.0})] * 250])
    past = read_studies([study])
    # The best 150 are all the complete ones; the rest are drawn from the pruned.
    assert past.pruned == (150,)
    assert str(past).startswith("1 past study, 300 trials used (150 of them pruned); left out: 100")


def test_a_negated_study_keeps_what_pruned_trials_say() -> None:
    study = study_with(
        [
            trial_of(1.0, {0: 1.0, 1: NAN}, x=0.1),
            trial_of(2.0, {0: 2.0, 3: INF}, x=0.2),
            trial_of(5.0, {0: 5.0}, x=0.3),
            trial_of(INF, {0: 1.0}, x=0.4),
            trial_of(None, {0: 2.0}, x=0.5),
            trial_of(None, {0: NAN}, x=0.6),
            trial_of(None, {}, x=0.7),
        ]
    )
    other = scaml.negated(study)
    assert other.direction == MAXIMIZE
    kept = [study.trials[i] for i in (0, 1, 2, 4, 5, 6)]  # without the infinite value
    assert [t.state for t in other.trials] == [t.state for t in kept]
    assert params(other) == [t.params for t in kept]
    assert [t.value for t in other.trials] == [-1.0, -2.0, -5.0, -2.0, None, None]
    assert [str(t.intermediate_values) for t in other.trials] == [
        "{0: -1.0, 1: nan}",
        "{0: -2.0, 3: -inf}",
        "{0: -5.0}",
        "{0: -2.0}",
        "{0: nan}",
        "{}",
    ]
    past, flipped = read_studies([study]), read_studies([other])
    assert list(past.tasks[0].y) == [-1.0, -2.0, -5.0, -2.0, -5.0]
    assert flipped.tasks == past.tasks
    assert str(flipped) == "1 past study, 5 trials used (2 of them pruned); left out: 1 pruned"


def test_reports_that_are_not_finite_come_back_from_a_database(tmp_path: Path) -> None:
    storage = RDBStorage(f"sqlite:///{tmp_path / 'past.db'}")
    trials = [trial_of(float(i), {0: float(i)}) for i in (1, 2, 3, 4)]
    pruned = [trial_of(None, {0: value}) for value in (NAN, INF, -INF)]
    study_with([*trials, *pruned], study_name="past", storage=storage)
    (task,) = read_studies([optuna.load_study(study_name="past", storage=storage)]).tasks
    assert list(task.y) == [-1.0, -2.0, -3.0, -4.0, -4.0, -4.0, -2.5]
    storage.remove_session()
    storage.engine.dispose()
