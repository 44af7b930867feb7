"""What the past is worth, as lines and as JSON."""

from __future__ import annotations

import json

import pytest
import torch

from scaml import ScaML
from scaml.cli.show_past import past_json, past_lines
from scaml.explain.leave_one_out import Comparison, LeftOut
from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.methods import GPBO, RGPE
from scaml.methods.gpbo import GPBOPrior
from tests.cases import meta_data, task_of
from tests.run_cases import UGLY, explained_run, verdict


def test_json_has_the_numbers_of_the_model() -> None:
    run = explained_run()
    told = run.verdict
    assert told is not None
    found = json.loads(json.dumps(past_json(run)))
    assert list(found) == ["explanations", "matters", "mirrored", "leave_one_out"]
    first, best = found["explanations"][0], told.best
    assert first == {
        "like": str(best),
        "kind": best.kind,
        "tasks": list(best.tasks),
        "mirrored": best.mirrored,
        "probability": best.probability,
    }
    assert all(one["probability"] >= 0.01 for one in found["explanations"])
    assert found["matters"] == told.matters
    assert found["mirrored"] == told.mirrored
    comparison = run.comparison
    assert comparison.plain is not None
    assert found["leave_one_out"] == {
        "error": comparison.ours.error,
        "error_without_past": comparison.plain.error,
        "gain": comparison.plain.error - comparison.ours.error,
    }


def test_json_of_what_is_not_known_is_null() -> None:
    assert past_json(explained_run(2))["leave_one_out"] is None
    ensemble = Run.of(Subject(RGPE(samples=16).meta_fit(meta_data((7, 8), 2)), task_of(4, 2)))
    assert set(past_json(ensemble).values()) == {None}
    assert past_lines(ensemble) == []
    plain = Run.of(Subject(GPBOPrior(GPBO(), 2), task_of(4, 2)))
    errors = past_json(plain)["leave_one_out"]
    assert (errors["error_without_past"], errors["gain"]) == (None, None)
    assert errors["error"] > 0
    assert past_lines(plain) == []


def test_the_lines_of_a_model_that_explains_itself() -> None:
    run = explained_run()
    first, second = past_lines(run)
    assert first == f"A{str(run.verdict)[1:]}."
    assert first.startswith("After 6 observations, the new task is like: ")
    errors = [side.error for side in (run.comparison.ours, run.comparison.plain) if side]
    assert second.endswith(f"error is {errors[0]:.3g} with the past, {errors[1]:.3g} without.")
    (only,) = past_lines(explained_run(0))
    assert only.startswith("Before the first observation, the new task is like: ")


@pytest.mark.parametrize(
    ("ours", "words"), [(0.1, "helps"), (3.0, "no clear difference"), (9.0, "misl")]
)
def test_the_errors_come_with_their_meaning(ours: float, words: str) -> None:
    y = torch.zeros(4, dtype=torch.float64)
    model = ScaML(weights="shared").meta_fit(meta_data((7, 8), 2))
    run = Run.of(Subject(model, task_of(4, 2)))
    good, bad = (LeftOut(y + error, torch.ones(4), y) for error in (ours, 3.0))
    vars(run)["comparison"] = Comparison(good, bad)  # cached
    (line,) = past_lines(run)
    assert words in line.partition(":")[0]
    assert line.endswith(f"{ours:g} with the past, 3 without.")


def test_warnings_name_the_tasks_on_one_line() -> None:
    run = explained_run(2)
    vars(run)["verdict"] = verdict({"a\nb\x1b[31m": 0.6, "": 0.4}, mirrored=("a\nb\x1b[31m",))
    first, warning = past_lines(run)
    assert warning.startswith("'a\\nb\\x1b[31m' looks mirrored; check the direction")
    assert not any(ord(character) < 32 for character in first + warning)
    vars(run)["verdict"] = verdict({UGLY: 0.13, "": 0.87})
    assert past_lines(run)[1].startswith("The past is set aside: ")
    assert past_lines(run)[1].endswith("like the new one is 87%.")
