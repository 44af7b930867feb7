"""Flat new tasks: the recipe, and that every end of a study is counted as what it is."""

from __future__ import annotations

import math

import pytest
import torch

from scaml import ScaML, SettingError
from scaml.errors import FitError
from study import plateau
from study.plateau import GRID, VALUE, Outcome, Plateau, Variant, exceptions, needles, run_studies

ALL = plateau.variants()


def test_variants_are_every_combination_once() -> None:
    assert len({variant.name for variant in ALL}) == len(ALL) == 4 * 3 * 4
    assert [variant.name for variant in plateau.variants("table se 1")] == ["table se 1 value"]
    assert len(plateau.variants("needle")) == 12
    with pytest.raises(SettingError, match="No variant has the words 'table cubes'; give some of tab"):
        plateau.variants("table cubes")


def test_the_past_is_levels_and_one_common_bump() -> None:
    for seed in range(5):
        meta = Plateau.draw("1 value", seed).meta
        assert {task.n for task in meta} == {64}
        assert len(meta) == 40
        heights, tops = [], []
        for task in meta:
            assert all((GRID == x).all(-1).any() for x in task.X)
            assert 0.5 <= task.y.min() <= task.y.max() <= 1.0 + 10**-0.3
            heights.append((task.y.max() - task.y.min()).item())
            tops.append(task.X[task.y.argmax()])
        assert min(heights) < 0.005 < 0.1 < max(heights)
        assert torch.stack(tops).std(0).max() < 0.1


@pytest.mark.parametrize(("kind", "number"), [("1 value", 1), ("2 values", 2), ("3 values", 3)])
def test_a_plateau_has_so_many_values(kind: str, number: int) -> None:
    drawn = Plateau.draw(kind, 1)
    assert len(drawn.values.unique()) == number
    assert drawn.values.max() == VALUE
    assert drawn.needle is None
    assert drawn(GRID[17]) == (17, drawn.values[17].item())


def test_the_needle_is_one_row_beside_the_top_of_the_past() -> None:
    distances = []
    for seed in range(8):
        drawn = Plateau.draw("needle", seed)
        assert drawn.needle is not None
        assert (drawn.values > VALUE).nonzero().flatten().tolist() == [drawn.needle]
        assert (drawn.values >= VALUE).all()
        whole = max(drawn.meta, key=lambda task: task.y.max().item())  # its top may be another row
        assert (GRID[drawn.needle] - whole.X[whole.y.argmax()]).abs().max() < 3.1 / 11
        # The top of the bump, from all past tasks that hold the same rows.
        top = torch.stack([task.X[task.y.argmax()] for task in drawn.meta]).median(0).values
        distances.append((GRID[drawn.needle] - top).abs() * torch.tensor([13.0, 11.0]))
    assert torch.stack(distances).max() <= 2.01
    assert 0.3 < torch.stack(distances).mean() < 1.3


def test_points_between_the_rows_count_as_the_nearest() -> None:
    drawn = Plateau.draw("needle", 0)
    assert drawn.needle is not None
    near = (GRID[drawn.needle] + 0.03).clamp(0.0, 1.0)
    assert drawn(near)[0] == drawn.needle


def test_the_past_is_the_same_for_every_new_task() -> None:
    one, other = (Plateau.draw(kind, 3) for kind in ("2 values", "needle"))
    assert all(torch.equal(a.y, b.y) for a, b in zip(one.meta, other.meta, strict=True))


@pytest.mark.parametrize("space", ["table", "cube", "mixed", "optuna"])
def test_every_space_is_searched(space: str) -> None:
    (outcome,) = run_studies([Variant(space, "se", "needle")], 1, 2)
    assert (outcome.error, outcome.step) == (None, None)


def test_variants_take_turns_and_results_do_not_depend_on_jobs() -> None:
    chosen, told = plateau.variants("table needle")[:2], []
    one = run_studies(chosen, 3, 2, progress=lambda done, total: told.append((done, total)))
    assert [(outcome.variant, outcome.seed) for outcome in one] == [
        (chosen[0], 0),
        (chosen[1], 0),
        (chosen[0], 1),
    ]
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert run_studies(chosen, 3, 2, n_jobs=2) == one


def test_an_exception_ends_a_study_at_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def suggest(prior: object, task: object, **options: object) -> torch.Tensor:
        asked.append(options["seed"])
        if len(asked) == 3:
            raise FitError("No.")
        return GRID[len(asked) :][:1]

    monkeypatch.setattr(plateau, "suggest", suggest)
    (outcome,) = run_studies([Variant("table", "se", "1 value")], 1, 5)
    assert (outcome.error, outcome.message, outcome.step) == ("FitError", "No.", 3)


def test_an_exception_of_the_meta_fit_counts_as_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ScaML, "meta_fit", fail)
    (outcome,) = run_studies([Variant("cube", "paper", "1 value")], 1, 5)
    assert (outcome.error, outcome.step, outcome.found) == ("ZeroDivisionError", 1, None)


def test_the_needle_is_found_with_the_evaluation_that_hits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    needle = Plateau.draw("needle", 0).needle
    assert needle is not None
    rows = iter([needle - 1, needle, needle, needle - 2])
    monkeypatch.setattr(plateau, "suggest", lambda *args, **options: GRID[next(rows)][None])
    (outcome,) = run_studies([Variant("table", "se", "needle")], 1, 4)
    assert outcome.found == 2


def test_summaries() -> None:
    table, cube = Variant("table", "se", "needle"), Variant("cube", "se", "needle")
    outcomes = [
        Outcome(table, 0, found=3),
        Outcome(table, 1, "FitError", "No.", 8, found=5),
        Outcome(table, 2, "ValueError", "No.", 20),
        Outcome(cube, 0, found=1),
    ]
    ended = exceptions(outcomes)
    assert ended.loc["table se needle"].tolist() == ["3", "2", "1 FitError, 1 ValueError", "8 to 20"]
    assert ended.loc["cube se needle"].tolist() == ["1", "0", "nan", "nan"]
    found = needles(outcomes)
    assert found.loc["se"].tolist() == ["3", "2", "5", f"{math.inf:g}"]
    assert needles(outcomes[3:]).empty


@pytest.mark.parametrize(("studies", "evaluations"), [(0, 5), (5, 0)])
def test_no_studies_are_refused(studies: int, evaluations: int) -> None:
    with pytest.raises(SettingError, match="is 0; give an integer of at least 1"):
        run_studies(ALL, studies, evaluations)
