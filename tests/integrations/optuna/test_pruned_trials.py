"""The values that pruned trials are given: by examples, by the rule the long way, by its properties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from scaml.integrations.optuna.past_studies import values_of
from scaml.integrations.optuna.pruned_trials import FEWEST_PEERS, final_values
from tests.pruned_cases import COMPLETE, INF, MAXIMIZE, MINIMIZE, NAN, long_way, numbered, trial_of

pytestmark = pytest.mark.usefixtures("quiet")


def estimate(peers: Sequence[tuple[float, float]], value: float) -> float:
    """Of one pruned trial that reported the value at step 0; larger is better.

    The peers are pairs of an intermediate value at step 0 and a final value.
    """
    complete = [trial_of(final, {0: report}) for report, final in peers]
    trials = numbered([*complete, trial_of(None, {0: value})])
    return values_of(trials, MAXIMIZE)[len(peers)]


# The rule, in examples.

FIVE = [(1.0, 10.0), (2.0, 30.0), (3.0, 20.0), (4.0, 40.0), (5.0, 50.0)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, 10.0),  # worse than all: the worst final value
        (1.0, 10.0),  # ties with the worst
        (1.5, 15.0),  # between the worst two
        (2.0, 20.0),  # the second report, the second final value, though of another trial
        (2.5, 25.0),
        (3.0, 30.0),  # the median
        (3.5, 30.0),  # never better than it
        (9.0, 30.0),
        (INF, 30.0),
        (-INF, 10.0),
        (NAN, 10.0),
    ],
)
def test_the_rank_of_the_report_is_the_rank_of_the_value(value: float, expected: float) -> None:
    assert estimate(FIVE, value) == expected
    assert estimate(FIVE[::-1], value) == expected


def test_ties_are_in_the_middle() -> None:
    tied = [(1.0, 10.0), (2.0, 20.0), (2.0, 30.0), (2.0, 40.0), (3.0, 50.0), (4.0, 60.0), (5.0, 70.0)]
    assert estimate(tied, 2.0) == 30.0
    even = [(1.0, 10.0), (2.0, 20.0), (2.0, 30.0), (3.0, 40.0), (4.0, 50.0), (5.0, 60.0)]
    assert estimate(even, 2.0) == 25.0
    assert estimate([(1.0, 10.0), (1.0, 30.0)], 1.0) == 20.0


def test_nan_is_worse_than_peers_that_reported_nan_and_recovered() -> None:
    peers = [(NAN, 10.0), (-INF, 20.0), (3.0, 30.0), (4.0, 40.0), (5.0, 50.0)]
    assert estimate(peers, NAN) == 10.0
    assert estimate(peers, -INF) == 15.0  # ties with both of them
    assert estimate(peers, 2.0) == 25.0  # better than both


def test_two_complete_trials_are_enough_and_one_is_not() -> None:
    assert FEWEST_PEERS == 2
    for complete, expected in ((1, {}), (2, {9: 1.0}), (3, {9: 1.0})):
        trials = [trial_of(float(i + 1), {0: float(i)}) for i in range(complete)]
        pruned = trial_of(None, {0: -1.0})
        pruned.number = 9
        values = {trial.number: trial.value or 0.0 for trial in numbered(trials)}
        assert final_values([*trials, pruned], values, 1.0) == expected


def test_the_latest_step_that_enough_complete_trials_reported_counts() -> None:
    complete = [
        trial_of(10.0, {0: 1.0, 2: 9.0, 5: 1.0}),
        trial_of(20.0, {0: 2.0, 2: 8.0}),
        trial_of(30.0, {0: 3.0}),
    ]
    at_0 = trial_of(None, {0: 1.5})
    at_2 = trial_of(None, {0: 1.5, 2: 0.0})
    after_2 = trial_of(None, {0: 1.5, 2: 8.0, 3: -9.0, 5: -9.0})
    nowhere = trial_of(None, {1: 0.0, 5: 0.0})
    silent = trial_of(None, {})
    trials = numbered([*complete, at_0, at_2, after_2, nowhere, silent])
    values = values_of(trials, MAXIMIZE)
    # At step 2 only the trials with 10 and 20 can be compared; at step 0 all three.
    assert values == {0: 10.0, 1: 20.0, 2: 30.0, 3: 15.0, 4: 10.0, 5: 10.0}


def test_nan_at_a_step_without_peers_is_no_reason_for_the_worst() -> None:
    complete = [trial_of(10.0 * i, {0: float(i)}) for i in (1, 2, 3, 4)]
    trials = numbered([*complete, trial_of(None, {0: 2.0, 7: NAN})])
    assert values_of(trials, MAXIMIZE)[4] == 20.0


@pytest.mark.parametrize("unusable", [INF, -INF, 1e200])
def test_complete_trials_without_a_usable_value_are_no_peers(unusable: float) -> None:
    complete = [trial_of(10.0, {0: 1.0}), trial_of(unusable, {0: 2.0})]
    assert values_of(numbered([*complete, trial_of(None, {0: 0.0})]), MAXIMIZE) == {0: 10.0}


def test_failed_and_running_trials_are_no_peers() -> None:
    others = [
        create_trial(state=state, intermediate_values={0: 0.0})
        for state in (TrialState.FAIL, TrialState.RUNNING)
    ]
    trials = numbered([trial_of(10.0, {0: 1.0}), trial_of(None, {0: 0.0}), *others])
    assert values_of(trials, MAXIMIZE) == {0: 10.0}


# The rule, against itself the long way, and what follows from it.

# Few different numbers, so that many tie.
report = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0, NAN, INF, -INF])
reports = st.dictionaries(st.integers(0, 3), report, max_size=3)
final = st.integers(-4, 4).map(float) | st.floats(-1e6, 1e6)
either = st.sampled_from([MINIMIZE, MAXIMIZE])
peers_at_0 = st.lists(st.tuples(report, final), min_size=2, max_size=9)


@st.composite
def trial_lists(draw: st.DrawFn) -> list[FrozenTrial]:
    values = draw(st.lists(st.none() | final, max_size=12))
    return numbered([trial_of(value, draw(reports)) for value in values])


@given(trial_lists(), either)
def test_the_values_are_those_of_the_long_way(
    trials: list[FrozenTrial], direction: StudyDirection
) -> None:
    sign = 1.0 if direction == MAXIMIZE else -1.0
    expected = {number: sign * value for number, value in long_way(trials, direction).items()}
    expected |= {t.number: sign * (t.value or 0.0) for t in trials if t.state == COMPLETE}
    assert values_of(trials, direction) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(peers_at_0, report)
def test_a_pruned_trial_is_never_better_than_the_median_nor_worse_than_the_worst(
    peers: list[tuple[float, float]], value: float
) -> None:
    finals = [final for _, final in peers]
    assert min(finals) <= estimate(peers, value) <= median(finals)


@given(peers_at_0, report, report)
def test_a_better_report_gives_no_worse_value(
    peers: list[tuple[float, float]], worse: float, better: float
) -> None:
    assume(math.isnan(worse) or worse <= better)
    assert estimate(peers, worse) <= estimate(peers, better)


@given(trial_lists(), either)
def test_a_negated_study_gives_the_same_values_where_larger_is_better(
    trials: list[FrozenTrial], direction: StudyDirection
) -> None:
    other = MINIMIZE if direction == MAXIMIZE else MAXIMIZE
    flipped = [
        trial_of(
            -(t.value or 0.0) if t.state == COMPLETE else None,
            {step: -value for step, value in t.intermediate_values.items()},
        )
        for t in trials
    ]
    assert values_of(numbered(flipped), other) == values_of(trials, direction)


@given(trial_lists(), st.lists(st.tuples(report, final), max_size=3), either)
def test_complete_trials_of_other_steps_change_nothing(
    trials: list[FrozenTrial], others: list[tuple[float, float]], direction: StudyDirection
) -> None:
    before = values_of(trials, direction)
    added = [trial_of(final, {9: value}) for value, final in others]
    after = values_of(numbered([*trials, *added]), direction)
    assert {number: after[number] for number in after if number < len(trials)} == before


@given(trial_lists(), st.randoms(use_true_random=False))
def test_the_order_of_the_trials_does_not_matter(trials: list[FrozenTrial], draw: Any) -> None:
    shuffled = list(trials)
    draw.shuffle(shuffled)
    assert values_of(shuffled, MAXIMIZE) == values_of(trials, MAXIMIZE)
