from __future__ import annotations

from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.methods import GPBO, RGPE
from scaml.methods.gpbo import GPBOPrior
from scaml.report.legends import maps_legend, slices_legend
from scaml.report.surfaces import task_curves
from tests.cases import meta_data, task_of
from tests.run_cases import run_of, ugly


def test_the_legend_names_every_curve_of_the_slices() -> None:
    run = run_of(5)
    legend = slices_legend(run, task_curves(run))
    assert "prior: the past tasks with their present weights" in legend
    assert "posterior: with the new experiments" in legend
    for curve in task_curves(run):
        assert f"{curve.name} alone" in legend
    assert "the common level" in legend
    assert "best experiment" in legend


def test_only_what_is_drawn_has_an_entry() -> None:
    empty = slices_legend(run_of(0), [])
    assert "expected from the past tasks" in empty
    assert not [words for words in ("prior:", "common level", "experiment near") if words in empty]
    plain = slices_legend(Run.of(Subject(GPBOPrior(GPBO(), 2), task_of(3, 2))), [])
    assert "prior: before any experiment" in plain
    ensemble = RGPE(samples=16).meta_fit(meta_data((6, 7), 2))
    assert "prior:" not in slices_legend(Run.of(Subject(ensemble, task_of(3, 2))), [])


def test_marks_on_maps() -> None:
    run = Run.of(ugly())
    assert [words in maps_legend(run) for words in ("experiment", "suggestion")] == [True, True]
    assert maps_legend(run_of(0)) == ""


def test_names_are_escaped() -> None:
    run = Run.of(ugly())
    assert "<script>" not in slices_legend(run, task_curves(run))
