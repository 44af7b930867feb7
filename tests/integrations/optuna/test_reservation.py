"""Reserved points: what a worker stores, what the others read, and who keeps a point that two took."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from scaml.integrations.optuna import reservation
from scaml.integrations.optuna.reservation import (
    LONGEST_ATTRIBUTE,
    intended,
    is_ours,
    reserve,
    reserved,
)
from scaml.spaces.space import Space

pytestmark = pytest.mark.usefixtures("quiet")

SPACE = Space({"x": FloatDistribution(0.0, 1.0), "k": CategoricalDistribution(["a", "b"])})
POINT = {"x": 0.25, "k": "b"}


def running(study: optuna.Study, params: dict[str, Any] | None = None) -> FrozenTrial:
    """A running trial that has reserved the parameters."""
    trial = study._storage.get_trial(study.ask()._trial_id)
    if params is not None:
        reserve(study, trial, params)
        trial = study._storage.get_trial(trial._trial_id)
    return trial


def begin(study: optuna.Study, trial: FrozenTrial, params: dict[str, Any]) -> None:
    """Optuna stores the parameters, as it does when the objective asks for them."""
    for name, value in params.items():
        d = SPACE.distributions[name]
        study._storage.set_trial_param(trial._trial_id, name, d.to_internal_repr(value), d)


@pytest.fixture
def study() -> optuna.Study:
    return optuna.create_study()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker waits for another."""
    monkeypatch.setattr(reservation, "_PATIENCE", 0.0)


# Which parameters a trial evaluates.


def test_a_reserved_point_is_read_back(study: optuna.Study) -> None:
    assert intended(running(study), SPACE) is None
    assert intended(running(study, POINT), SPACE) == POINT


def test_optunas_parameters_come_before_reserved_ones(study: optuna.Study) -> None:
    trial = running(study, POINT)
    begin(study, trial, {"x": 0.75})
    assert intended(study.trials[0], SPACE) == {"x": 0.75, "k": "b"}
    begin(study, trial, {"k": "a"})
    assert intended(study.trials[0], SPACE) == {"x": 0.75, "k": "a"}


def test_parameters_outside_the_space_are_not_read(study: optuna.Study) -> None:
    assert intended(running(study, {**POINT, "other": 3}), SPACE) == POINT


@pytest.mark.parametrize(
    "params",
    [{"x": 0.25}, {"x": 1.5, "k": "a"}, {"x": 0.25, "k": "c"}, {"x": "much", "k": "a"}, {}],
    ids=["missing", "out of range", "unknown choice", "not a number", "nothing"],
)
def test_a_point_that_the_space_cannot_take_is_no_point(
    study: optuna.Study, params: dict[str, Any]
) -> None:
    assert intended(running(study, params), SPACE) is None


def test_what_cannot_be_stored_is_not_reserved(study: optuna.Study) -> None:
    assert intended(running(study, {**POINT, "other": object()}), SPACE) is None
    longest = LONGEST_ATTRIBUTE - len(json.dumps({**POINT, "other": ""}))
    assert intended(running(study, {**POINT, "other": "x" * longest}), SPACE) == POINT
    assert intended(running(study, {**POINT, "other": "x" * (longest + 1)}), SPACE) is None


# Which points the others have.


def test_points_of_the_other_trials_are_reserved_once(study: optuna.Study) -> None:
    study.enqueue_trial({"x": 0.9, "k": "a"})  # waiting: nobody evaluates it yet
    study.add_trial(create_trial(state=TrialState.WAITING))
    done = {"x": 0.1, "k": "a"}
    pruned = create_trial(
        state=TrialState.PRUNED,
        params=done,
        distributions=dict(SPACE.distributions),
        intermediate_values={0: 1.0},
    )
    value = create_trial(params=done | {"x": 0.2}, distributions=dict(SPACE.distributions), value=1.0)
    study.add_trials([pruned, value])
    number = study.trials[-1].number
    mine, _, _ = (running_after(study, POINT) for _ in range(3))
    assert reserved(study, mine, SPACE, known={number}) == [done, POINT]
    assert reserved(study, mine, SPACE, known=set()) == [done, done | {"x": 0.2}, POINT]


def running_after(study: optuna.Study, params: dict[str, Any]) -> FrozenTrial:
    """Like `running`, for a study with waiting trials, which `ask` would take."""
    number = study._storage.create_new_trial(study._study_id)
    trial = study._storage.get_trial(number)
    reserve(study, trial, params)
    return study._storage.get_trial(number)


# Who keeps a point.


@pytest.mark.usefixtures("impatient")
def test_a_point_that_nobody_else_has_is_ours(study: optuna.Study) -> None:
    running(study, {"x": 0.26, "k": "b"})
    running(study, {"x": 0.25, "k": "a"})
    mine = running(study, POINT)
    assert is_ours(study, mine, SPACE, set(), SPACE.encode(POINT))


@pytest.mark.usefixtures("impatient")
def test_of_two_trials_the_later_one_gives_way_at_once(study: optuna.Study) -> None:
    running(study, POINT)
    later = running(study, POINT)
    assert not is_ours(study, later, SPACE, set(), SPACE.encode(POINT))
    assert is_ours(study, later, SPACE, {0}, SPACE.encode(POINT))  # trial 0 is an observation


def test_the_earlier_one_waits_until_the_later_one_has_moved(study: optuna.Study) -> None:
    earlier, later = running(study, POINT), running(study, POINT)

    def move() -> None:
        time.sleep(0.1)
        reserve(study, later, {"x": 0.9, "k": "b"})

    thread = threading.Thread(target=move)
    thread.start()
    assert is_ours(study, earlier, SPACE, set(), SPACE.encode(POINT))
    thread.join()


def test_the_earlier_one_gives_way_if_the_later_one_has_begun(study: optuna.Study) -> None:
    earlier, later = running(study, POINT), running(study, POINT)
    begin(study, later, POINT)
    start = time.monotonic()
    assert not is_ours(study, earlier, SPACE, set(), SPACE.encode(POINT))
    assert time.monotonic() - start < 0.5  # at once, not after its patience


@pytest.mark.usefixtures("impatient")
def test_the_earlier_one_does_not_wait_for_ever(study: optuna.Study) -> None:
    earlier, _ = running(study, POINT), running(study, POINT)
    assert not is_ours(study, earlier, SPACE, set(), SPACE.encode(POINT))


@pytest.mark.usefixtures("impatient")
def test_integers_are_compared_as_points_of_the_cube(study: optuna.Study) -> None:
    space = Space({"n": IntDistribution(0, 10**6)})
    running(study, {"n": 500_000})
    mine = running(study, {"n": 500_001})
    near = is_ours(study, mine, space, set(), space.encode({"n": 500_001}))
    far = is_ours(study, mine, space, set(), space.encode({"n": 500_600}))
    assert (near, far) == (False, True)
