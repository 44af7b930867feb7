"""Past Optuna studies: what is read of them, what is left out and reported, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

import scaml
from scaml.errors import DatabaseError, SettingError
from scaml.integrations.optuna.past_studies import read_studies, values_of
from scaml.tasks.past_task import MOST_TRIALS

pytestmark = pytest.mark.usefixtures("quiet")

X: dict[str, BaseDistribution] = {"x": FloatDistribution(0.0, 1.0)}
MINIMIZE, MAXIMIZE = StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Callable[[str], RDBStorage]]:
    """Opens SQLite files of a folder, and leaves no connection behind."""
    opened: list[RDBStorage] = []

    def open_(name: str) -> RDBStorage:
        opened.append(RDBStorage(f"sqlite:///{tmp_path / name}"))
        return opened[-1]

    yield open_
    for storage in opened:
        storage.remove_session()
        storage.engine.dispose()


def study_of(values: list[float], name: str = "past", **settings: Any) -> optuna.Study:
    """A study of completed trials at x = 0, 1/n, 2/n, …"""
    study = optuna.create_study(study_name=name, **settings)
    study.add_trials(
        create_trial(params={"x": i / len(values)}, distributions=X, value=value)
        for i, value in enumerate(values)
    )
    return study


def mixed(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    step = trial.suggest_float("step", 0.0, 1.0, step=0.25)
    n = trial.suggest_int("n", 1, 9)
    width = trial.suggest_int("width", 1, 64, log=True)
    kind = trial.suggest_categorical("kind", ["a", None, 3, True])
    return x**2 + math.log10(rate) ** 2 + step + 0.1 * n + width / 64 + (kind is None)


@pytest.mark.parametrize("where", ["memory", "sqlite", "journal"])
def test_all_kinds_of_parameters_come_from_all_kinds_of_storages(
    where: str, tmp_path: Path, sqlite: Callable[[str], RDBStorage]
) -> None:
    def storage() -> BaseStorage:
        if where == "memory":
            return InMemoryStorage()
        if where == "sqlite":
            return sqlite("past.db")
        return JournalStorage(JournalFileBackend(str(tmp_path / "past.log")))

    study = optuna.create_study(
        study_name="mixed", storage=storage(), sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(mixed, n_trials=8)
    if where != "memory":
        study = optuna.load_study(study_name="mixed", storage=storage())
    past = read_studies([study])
    assert past.directions == (MINIMIZE,)
    (task,) = past.tasks
    assert task.name == "mixed"
    assert dict(task.distributions) == study.trials[0].distributions
    assert list(task.params) == [trial.params for trial in study.trials]
    assert [repr(row["kind"]) for row in task.params] == [repr(t.params["kind"]) for t in study.trials]
    assert list(task.y) == [-(trial.value or 0.0) for trial in study.trials]
    assert not past.left_out


def test_what_cannot_be_used_is_left_out_and_counted() -> None:
    study = study_of([1.0, 2.0, 3.0, math.inf, -math.inf, 1e200])
    for state in (TrialState.FAIL, TrialState.FAIL, TrialState.RUNNING, TrialState.WAITING):
        study.add_trial(create_trial(state=state))
    study.add_trial(
        create_trial(
            state=TrialState.PRUNED, params={"x": 0.5}, distributions=X, intermediate_values={0: 1.0}
        )
    )
    past = read_studies([study, study_of([5.0], name="one trial"), study_of([], name="none")])
    assert [task.name for task in past.tasks] == ["past"]
    assert list(past.tasks[0].y) == [-1.0, -2.0, -3.0]
    assert past.left_out == {
        "failed": 2,
        "running": 1,
        "waiting": 1,
        "pruned without complete trials to compare with": 1,
        "not finite": 3,
        "in studies with fewer than 2 usable trials": 1,
    }
    assert str(past) == (
        "1 past study, 3 trials used; left out: 2 failed, 1 in studies with fewer than 2 usable "
        "trials, 3 not finite, 1 pruned without complete trials to compare with, 1 running, 1 waiting"
    )


def test_a_summary_counts_in_english() -> None:
    one = read_studies([study_of([1.0, 2.0])])
    two = read_studies([study_of([1.0, 2.0], name="a"), study_of([1.0, 2.0, 3.0], name="b")])
    assert str(one) == "1 past study, 2 trials used"
    assert str(two) == "2 past studies, 5 trials used"
    assert str(read_studies([])) == "0 past studies, 0 trials used"


def test_conditional_parameters_of_the_past_are_not_read() -> None:
    study = optuna.create_study()
    for i in range(4):
        trial = study.ask()
        x = trial.suggest_float("x", 0.0, 1.0)
        study.tell(trial, x + (trial.suggest_float("y", 0.0, 1.0) if i % 2 else 0.0))
    (task,) = read_studies([study]).tasks
    assert set(task.distributions) == {"x"}
    assert len(task.y) == 4


def test_a_study_whose_trials_share_no_parameter_is_left_out() -> None:
    study = optuna.create_study()
    for name in ("a", "b"):
        study.add_trial(create_trial(params={name: 0.5}, distributions={name: X["x"]}, value=1.0))
    past = read_studies([study])
    assert past.tasks == ()
    assert sum(past.left_out.values()) == 2


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_long_study_is_thinned_and_keeps_its_best(direction: str) -> None:
    values = np.random.default_rng(0).standard_normal(5000)
    study = study_of(values.tolist(), direction=direction)
    past = read_studies([study])
    (task,) = past.tasks
    assert len(task.y) == len(task.params) == MOST_TRIALS == 300
    signed = -values if direction == "minimize" else values
    best, kept = np.sort(signed)[-(MOST_TRIALS // 2) :], np.sort(task.y)
    np.testing.assert_array_equal(kept[-(MOST_TRIALS // 2) :], best)
    # The others are drawn from all of the rest, bad ones included.
    assert kept[0] < np.quantile(signed, 0.05)
    assert all(signed[round(row["x"] * 5000)] == y for row, y in zip(task.params, task.y, strict=True))
    assert past.left_out == {"beyond the 300 kept of one study": 4700}
    assert list(read_studies([study]).tasks[0].y) == list(task.y)


def test_three_hundred_trials_are_kept_as_they_are() -> None:
    values = [float(i % 7) for i in range(MOST_TRIALS)]
    (task,) = read_studies([study_of(values, direction="maximize")]).tasks
    assert list(task.y) == values


def test_studies_of_one_name_are_told_apart() -> None:
    studies = [study_of([1.0, 2.0], name=name) for name in ("a", "a", "b", "a")]
    assert [task.name for task in read_studies(studies).tasks] == ["a", "a (2)", "b", "a (3)"]


def test_a_name_that_looks_like_a_second_one_is_told_apart_too() -> None:
    studies = [study_of([1.0, 2.0], name=name) for name in ("a", "a", "a (2)")]
    assert len({task.name for task in read_studies(studies).tasks}) == 3


@pytest.mark.parametrize(("direction", "sign"), [(MINIMIZE, -1.0), (MAXIMIZE, 1.0)])
def test_larger_is_better_in_what_is_learned_from(direction: StudyDirection, sign: float) -> None:
    past = read_studies([study_of([1.0, 2.0, -3.0], direction=direction)])
    assert list(past.tasks[0].y) == [sign * 1.0, sign * 2.0, sign * -3.0]
    assert past.for_direction(direction) == list(past.tasks)
    assert past.directions == (direction,)


def test_values_are_larger_where_better_bit_for_bit() -> None:
    trials = study_of([0.0, -0.0, 1.5, -2.0]).trials
    assert [str(y) for y in values_of(trials, MINIMIZE).values()] == ["-0.0", "-0.0", "-1.5", "2.0"]
    assert [str(y) for y in values_of(trials, MAXIMIZE).values()] == ["0.0", "0.0", "1.5", "-2.0"]


def test_studies_of_both_directions_are_read_each_by_its_own() -> None:
    past = read_studies([study_of([1.0, 2.0], name="up", direction="maximize"), study_of([1.0, 2.0])])
    assert [list(task.y) for task in past.tasks] == [[1.0, 2.0], [-1.0, -2.0]]
    assert past.directions == (MAXIMIZE, MINIMIZE)


def test_studies_of_the_other_direction_are_refused_by_name() -> None:
    past = read_studies([study_of([1.0, 2.0], name="up", direction="maximize"), study_of([1.0, 2.0])])
    with pytest.raises(SettingError, match=r"minimize.*'up' is of.*scaml\.negated"):
        past.for_direction(MINIMIZE)
    many = [study_of([1.0, 2.0], name=f"up-{i}", direction="maximize") for i in range(9)]
    with pytest.raises(SettingError, match="'up-4' are of") as caught:
        read_studies(many).for_direction(MINIMIZE)
    assert "up-5" not in str(caught.value)


def test_a_negated_study_is_of_the_other_direction_with_flipped_signs() -> None:
    study = study_of([1.0, 2.0, math.inf, -3.0], direction="maximize")
    study.add_trial(create_trial(state=TrialState.FAIL))
    other = scaml.negated(study)
    assert other.direction == MINIMIZE
    assert other.study_name == study.study_name
    assert [trial.value for trial in other.trials] == [-1.0, -2.0, 3.0]
    assert [trial.params for trial in other.trials] == [study.trials[i].params for i in (0, 1, 3)]
    assert [trial.distributions for trial in other.trials] == [X] * 3
    assert [trial.value for trial in study.trials[:2]] == [1.0, 2.0]
    back = scaml.negated(other)
    assert back.direction == MAXIMIZE
    assert [trial.value for trial in back.trials] == [1.0, 2.0, -3.0]
    assert read_studies([other]).for_direction(MINIMIZE)[0].y == [1.0, 2.0, -3.0]


def test_a_negated_study_keeps_every_kind_of_parameter() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(mixed, n_trials=3)
    assert [t.params for t in scaml.negated(study).trials] == [t.params for t in study.trials]
    assert [t.distributions for t in scaml.negated(study).trials] == [
        t.distributions for t in study.trials
    ]
    kinds = {type(d) for d in study.trials[0].distributions.values()}
    assert kinds == {FloatDistribution, IntDistribution, CategoricalDistribution}


def test_a_study_is_not_its_own_past() -> None:
    study, other = study_of([1.0, 2.0]), study_of([3.0, 4.0])  # of one name
    past = read_studies([study, other])
    assert [list(task.y) for task in past.without(study).tasks] == [[-3.0, -4.0]]
    assert len(past.without(study).directions) == len(past.without(study).fingerprints) == 1
    assert past.without(study_of([5.0, 6.0])) is past
    assert past.without(optuna.create_study(study_name="past")) is past


def test_a_study_loaded_twice_is_one_study(sqlite: Callable[[str], RDBStorage]) -> None:
    study_of([1.0, 2.0], storage=sqlite("a.db"))
    study_of([3.0, 4.0], storage=sqlite("b.db"))
    first, second, other = (
        optuna.load_study(study_name="past", storage=sqlite(name)) for name in ("a.db", "a.db", "b.db")
    )
    (left,) = read_studies([first, other]).without(second).tasks
    assert list(left.y) == [-3.0, -4.0]
    second.add_trial(create_trial(params={"x": 0.1}, distributions=X, value=0.0))
    assert len(read_studies([first]).without(second).tasks) == 0


@pytest.mark.parametrize("studies", [5, study_of([1.0, 2.0])], ids=["a number", "one study"])
def test_past_studies_that_are_no_list_are_refused(studies: Any) -> None:
    with pytest.raises(SettingError, match=rf"meta_studies is a {type(studies).__name__}; give a list"):
        read_studies(studies)


@pytest.mark.parametrize("studies", [["past"], "past", [None], [study_of([1.0, 2.0]).trials[0]]])
def test_something_that_is_no_study_is_refused(studies: Any) -> None:
    with pytest.raises(SettingError, match=rf"is a {type(studies[0]).__name__}; give Optuna studies"):
        read_studies(studies)


def test_any_iterable_of_studies_will_do() -> None:
    past = read_studies(study_of([1.0, 2.0], name=name) for name in "ab")
    assert [task.name for task in past.tasks] == ["a", "b"]


def test_a_past_study_of_two_objectives_is_refused_by_name() -> None:
    study = optuna.create_study(study_name="pareto", directions=["minimize", "maximize"])
    for use in (lambda: read_studies([study]), lambda: scaml.negated(study)):
        with pytest.raises(SettingError, match="'pareto' has 2 objectives; give studies with one"):
            use()


def test_an_sqlite_file_that_is_gone_is_named(
    tmp_path: Path, sqlite: Callable[[str], RDBStorage]
) -> None:
    storage = sqlite("past.db")
    study = study_of([1.0, 2.0], storage=storage)
    storage.engine.dispose()
    (tmp_path / "past.db").unlink()
    with pytest.raises(DatabaseError, match=r"past\.db of study 'past' does not answer"):
        read_studies([study])


def test_an_sqlite_file_that_is_no_database_any_more_is_named(
    tmp_path: Path, sqlite: Callable[[str], RDBStorage]
) -> None:
    storage = sqlite("past.db")
    study = study_of([1.0, 2.0], storage=storage)
    storage.engine.dispose()
    (tmp_path / "past.db").write_text("Somebody wrote a shopping list over it.\n" * 200)
    for use in (lambda: read_studies([study]), lambda: scaml.negated(study)):
        with pytest.raises(DatabaseError, match=r"past\.db of study 'past' does not answer") as caught:
            use()
        assert caught.value.__suppress_context__  # one sentence, not SQLAlchemy's pages


def test_a_journal_that_is_gone_is_named(tmp_path: Path) -> None:
    path = tmp_path / "past.log"
    study = study_of([1.0, 2.0], storage=JournalStorage(JournalFileBackend(str(path))))
    path.unlink()
    with pytest.raises(DatabaseError, match=r"past\.log of study 'past' does not answer"):
        read_studies([study])
