"""What is said of the past: probabilities, words, and the signs of mirrored tasks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scaml import MetaData, ScaML, Task
from scaml.gp.hyperpriors import LogScale
from scaml.model.explanations import Explanation, Explanations
from scaml.model.fit_explanations import Explained
from scaml.model.verdict import ProbableExplanation, Verdict
from tests.cases import meta_data, smooth, task_of

NAMES = ("a", "b", "c")
ITEMS = (
    Explanation("none"),
    Explanation("all", (0, 1, 2)),
    Explanation("all", (0, 1, 2), mirrored=True),
    Explanation("group", (0, 2)),
    Explanation("group", (0, 2), mirrored=True),
    Explanation("task", (1,)),
    Explanation("task", (1,), mirrored=True),
)
# In the group, c is the opposite of a.
DIRECTIONS = [
    [0.0, 0.0, 0.0],
    [1 / 3, 1 / 3, 1 / 3],
    [-1 / 3, -1 / 3, -1 / 3],
    [0.5, 0.0, -0.5],
    [-0.5, 0.0, 0.5],
    [0.0, 1.0, 0.0],
    [0.0, -1.0, 0.0],
]


def verdict_of(p: list[float], observations: int = 5) -> Verdict:
    one = torch.ones(7, dtype=torch.float64)
    scale = LogScale(one[0], one[0])
    directions = torch.tensor(DIRECTIONS, dtype=torch.float64)
    told = Explanations(ITEMS, directions, one, one, one, one, one, scale, scale, "strangers")
    log_p = torch.tensor(p, dtype=torch.float64).log()
    return Explained(log_p, log_p, [], []).verdict(told, NAMES, observations, acted_on=True)


@given(st.lists(st.floats(0.01, 1.0), min_size=7, max_size=7))
def test_probabilities_of_tasks_are_sums_over_explanations(parts: list[float]) -> None:
    p = [part / sum(parts) for part in parts]
    verdict = verdict_of(p)
    assert verdict.none == pytest.approx(p[0])
    everywhere = p[1] + p[2]
    expected = {"a": everywhere + p[3] + p[4], "b": everywhere + p[5] + p[6]}
    expected["c"] = expected["a"]
    assert verdict.matters == pytest.approx(expected)
    mirrored = {"a": p[2] + p[4], "b": p[2] + p[6], "c": p[2] + p[3]}
    assert verdict.mirrored == pytest.approx(mirrored)
    told = [e.probability for e in verdict.explanations]
    assert told == sorted(told, reverse=True)
    assert sum(told) == pytest.approx(1.0)
    assert verdict.best == verdict.explanations[0]
    assert verdict.best.probability == pytest.approx(max(p))


def test_explanations_have_names() -> None:
    verdict = verdict_of([0.05, 0.1, 0.02, 0.6, 0.03, 0.15, 0.05])
    assert (verdict.best.kind, verdict.best.tasks) == ("group", ("a", "c"))
    second = verdict.explanations[1]
    assert (second.kind, second.tasks, second.mirrored) == ("task", ("b",), False)
    assert {e.kind for e in verdict.explanations} == {"none", "all", "group", "task"}


@pytest.mark.parametrize(
    ("kind", "tasks", "mirrored", "words"),
    [
        ("all", NAMES, False, "all past tasks together"),
        ("all", NAMES, True, "all past tasks together, mirrored"),
        ("group", ("a", "c"), False, "a group of 2 past tasks ('a', 'c')"),
        ("group", NAMES, True, "a group of 3 past tasks ('a', 'b', ...), mirrored"),
        ("task", ("b",), False, "'b' alone"),
        ("task", ("b",), True, "'b' alone, mirrored"),
        ("none", (), False, "no past task"),
    ],
)
def test_words_of_an_explanation(kind: str, tasks: tuple[str, ...], mirrored: bool, words: str) -> None:
    assert str(ProbableExplanation(kind, tasks, mirrored, 0.5)) == words  # type: ignore[arg-type]


def test_words_of_a_verdict() -> None:
    """The three best explanations, without those that are hardly possible."""
    several = verdict_of([0.05, 0.1, 0.02, 0.6, 0.03, 0.15, 0.05])
    expected = (
        "after 5 observations, the new task is like: a group of 2 past tasks ('a', 'c') 60%; 'b' alone "
        "15%; all past tasks together 10%"
    )
    assert str(several) == expected
    one = verdict_of([0.9, 0.02, 0.02, 0.02, 0.02, 0.01, 0.01], observations=1)
    assert str(one) == "after 1 observation, the new task is like: no past task 90%"
    many = Verdict((ProbableExplanation("task", ("a",), False, 0.01),) * 100, {}, {}, 0)
    assert str(many) == "before the first observation, the new task is like: 'a' alone 1%"


def test_a_user_is_warned_after_five_observations_if_it_is_more_likely_than_not() -> None:
    strange = [0.52, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08]
    assert verdict_of(strange, 5).set_aside
    assert not verdict_of(strange, 4).set_aside
    assert not verdict_of([0.48, 0.12, *strange[2:]], 5).set_aside
    mirrored = [0.1, 0.05, 0.6, 0.05, 0.1, 0.05, 0.05]
    assert verdict_of(mirrored, 5).looks_mirrored == ("a", "b", "c")
    assert verdict_of(mirrored, 4).looks_mirrored == ()
    assert verdict_of([0.1, 0.05, 0.05, 0.6, 0.1, 0.05, 0.05], 5).looks_mirrored == ("c",)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_the_verdict_of_a_model(n: int) -> None:
    prior = ScaML(weights="explained").meta_fit(meta_data((10, 14, 8), 2))
    verdict = prior.condition(task_of(n, 2)).explain()
    assert verdict.observations == n
    assert sum(e.probability for e in verdict.explanations) == pytest.approx(1.0)
    assert set(verdict.matters) == set(verdict.mirrored) == set(prior.names)
    for name, p in verdict.matters.items():
        own = sum(e.probability for e in verdict.explanations if name in e.tasks)
        assert p == pytest.approx(own)
        assert 0.0 <= verdict.mirrored[name] <= p + 1e-12
        assert p + verdict.none <= 1.0 + 1e-9


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_mirrored_task_is_told_as_such(sign: float) -> None:
    rng = np.random.default_rng(0)
    X, Q = rng.random((30, 2)), rng.random((14, 2))
    meta = MetaData(
        [Task(X, smooth(X, 0.0), name="only"), Task(X, np.sin(9.0 * X[:, 0]), name="other")]
    )
    verdict = (
        ScaML(weights="explained").meta_fit(meta).condition(Task(Q, sign * smooth(Q, 0.0))).explain()
    )
    best = verdict.best
    assert (best.kind, best.tasks, best.mirrored) == ("task", ("only",), sign < 0)
    share = verdict.mirrored["only"] / verdict.matters["only"]
    assert share > 0.9 if sign < 0 else share < 0.1
