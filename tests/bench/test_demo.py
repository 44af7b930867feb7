"""The demonstration: regrets without noise, probabilities of past tasks, and words."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest

from scaml import SettingError
from scaml.bench import FAMILIES
from scaml.bench.demo import METHOD, PLAIN, SCAML, DemoResult, in_words, run_demo
from scaml.bench.demo_past import draw_past
from scaml.methods import GPBO
from scaml.methods.gpbo import GPBOPrior

RESULT = DemoResult(
    family=FAMILIES["branin"],
    seed=0,
    regrets={SCAML: (2.0, 1.0, 1.0), PLAIN: (3.0, 3.0, 3.0)},
    matters={
        "stranger 1": (0.25, 0.125, 0.0),
        "relative 2": (0.125, 0.5, 0.0),
        "twin": (0.25, 0.75, 0.875),
        "relative 1": (0.375, 0.25, 0.0625),
    },
    none=(0.25, 0.25, 0.125),
)


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run_demo(FAMILIES["hartmann3"], 0, evaluations=4, tasks=3)


def test_regrets_fall_and_never_go_below_zero(result: DemoResult) -> None:
    assert list(result.regrets) == [SCAML, PLAIN]
    for regrets in result.regrets.values():
        assert len(regrets) == 4
        assert all(after <= before for before, after in pairwise(regrets))
        assert min(regrets) >= 0.0


def test_past_tasks_help(result: DemoResult) -> None:
    assert result.regrets[SCAML][-1] < 0.5 * result.regrets[PLAIN][-1]


def test_probabilities_begin_before_the_first_evaluation(result: DemoResult) -> None:
    assert sorted(result.matters) == ["relative 1", "stranger 1", "twin"]
    for values in (*result.matters.values(), result.none):
        assert len(values) == 5
        assert all(0.0 <= value <= 1.0 for value in values)
    for n in range(5):  # either no past task is like the new one, or at least one is
        matters = [values[n] for values in result.matters.values()]
        assert max(matters) <= 1.0 - result.none[n] + 1e-9 <= sum(matters) + 2e-9


def test_the_twin_is_found(result: DemoResult) -> None:
    first, last = result.matters["twin"][0], result.matters["twin"][-1]
    stranger = result.best("stranger")
    assert stranger is not None
    assert last > max(first, 0.5, stranger[-1])


def test_both_methods_have_the_same_acquisition_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same kernel, so that only the past differs."""
    made: list[GPBO] = []
    fit = GPBO.meta_fit

    def meta_fit(self: GPBO, *args: object, **options: object) -> GPBOPrior:
        made.append(self)
        return fit(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(GPBO, "meta_fit", meta_fit)
    run_demo(FAMILIES["branin"], 0, evaluations=1, tasks=1)
    (plain,) = made
    chosen = METHOD.meta_fit(draw_past(FAMILIES["branin"].draw(0), 1, 0)).task_gps.kernel
    assert plain == GPBO(chosen, METHOD.acquisition, METHOD.sqrt_beta)
    assert plain.acquisition == "lognei"


def test_seed_decides_everything() -> None:
    steps: list[tuple[str, int, int]] = []
    one = run_demo(
        FAMILIES["branin"],
        1,
        evaluations=2,
        tasks=2,
        progress=lambda what, done, total: steps.append((what, done, total)),
    )
    assert one == run_demo(FAMILIES["branin"], 1, evaluations=2, tasks=2)
    assert one != run_demo(FAMILIES["branin"], 2, evaluations=2, tasks=2)
    assert [done for _, done, _ in steps] == [0, 1, 2, 3, 4, 5]
    assert {total for _, _, total in steps} == {5}
    assert steps[0][0] == "Learning from the past tasks"
    assert steps[1][0] == "Optimizing with ScaML-GP"
    assert steps[3][0] == "Optimizing with plain GP"


@pytest.mark.parametrize(
    ("evaluations", "tasks", "seed", "message"),
    [
        (0, 2, 0, "evaluations is 0; give an integer of at least 1"),
        (2, 0, 0, "meta-tasks is 0"),
        (2, 2, -1, "seed is -1"),
    ],
)
def test_bad_settings_are_refused(evaluations: int, tasks: int, seed: int, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        run_demo(FAMILIES["branin"], seed, evaluations=evaluations, tasks=tasks)


def test_best_of_a_role_is_taken_after_every_evaluation() -> None:
    assert RESULT.best("relative") == (0.375, 0.5, 0.0625)
    assert RESULT.best("twin") == RESULT.matters["twin"]
    assert dataclasses.replace(RESULT, matters={"twin": (0.5,)}).best("stranger") is None


@pytest.mark.parametrize(
    ("twin", "after"),
    [
        ((0.6, 0.7, 0.8), 0),
        ((0.5, 0.7, 0.8), 1),
        ((0.9, 0.4, 0.8), 2),
        ((0.9, 0.9, 0.5), None),
        ((0.1, 0.1, 0.1), None),
    ],
)
def test_a_twin_is_found_where_it_stays_probable(twin: tuple[float, ...], after: int | None) -> None:
    assert dataclasses.replace(RESULT, matters={"twin": twin}).found_after == after


def test_words() -> None:
    assert in_words(RESULT) == (
        "After 2 evaluations, the twin matters with probability 0.88, the best relative with 0.06, "
        "the best stranger with 0.00, none of them with 0.12. "
        "The twin was found: from evaluation 1 on, its probability is above 0.5, and no stranger's is."
    )
    alone = dataclasses.replace(RESULT, matters={"twin": (0.5, 0.25)}, none=(0.5, 0.75))
    assert in_words(alone) == (
        "After 1 evaluation, the twin matters with probability 0.25, none of them with 0.75. "
        "The twin was not found."
    )
    known = dataclasses.replace(alone, matters={"twin": (0.75, 0.75)}, none=(0.25, 0.25))
    assert "The twin was found: from the start, its probability" in in_words(known)
    both = dataclasses.replace(known, matters={"twin": (0.75, 0.75), "stranger 1": (0.5, 0.75)})
    assert both.found_after is None
    assert in_words(both).endswith("The twin was not told apart from the strangers.")
