"""`thinned`: which rows of a long task are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaml.tasks.past_task import MOST_TRIALS, thinned


def by_hand(y: list[float], most: int) -> tuple[set[int], int]:
    """The indices of the best rows, the first of equal ones first, and how many others are kept."""
    order = sorted(range(len(y)), key=lambda i: (-y[i], i))
    return set(order[: most // 2]), most - most // 2


@pytest.mark.parametrize("n", [0, 1, 2, MOST_TRIALS - 1, MOST_TRIALS])
def test_all_rows_of_a_short_task_are_kept(n: int) -> None:
    assert thinned([float(-i) for i in range(n)]) == list(range(n))


@given(st.lists(st.integers(-3, 3), min_size=6, max_size=40), st.integers(2, 5))
def test_the_best_half_is_kept_and_ties_go_to_the_first(values: list[int], most: int) -> None:
    y = [float(value) for value in values]
    kept = thinned(y, most=most)
    best, others = by_hand(y, most)
    assert kept == sorted(set(kept))
    assert best <= set(kept)
    assert len(set(kept) - best) == others


def test_larger_is_better() -> None:
    y = np.random.default_rng(0).permutation(5000).astype(float)
    kept = y[thinned(y.tolist())]
    assert len(kept) == MOST_TRIALS == 300
    assert (np.sort(kept)[150:] == np.arange(4850, 5000)).all()
    # The other half is drawn from all of the rest, the worst rows included.
    assert kept.min() < 250
    assert 2000 < np.sort(kept)[:150].mean() < 2900


def test_the_same_rows_are_kept_every_time() -> None:
    y = np.random.default_rng(1).standard_normal(1000).tolist()
    assert thinned(y) == thinned(y)
    assert thinned(y, most=100) == thinned(y, most=100)
    assert len(thinned(y, most=100)) == 100


def test_both_zeros_tie() -> None:
    """A value 0.0 that is minimized becomes -0.0: its row must not move."""
    plus = [0.0, 1.0, 0.0, -1.0] * 10
    minus = [-0.0, 1.0, 0.0, -1.0] * 10
    assert thinned(plus, most=30) == thinned(minus, most=30)
