from __future__ import annotations

import pytest
import torch

from scaml import Task
from scaml.explain.moments import moments
from scaml.explain.run import Inapplicable, Run
from scaml.report.surfaces import check_two, map_panels, near_slice, slice_panel, task_curves
from tests.report.cases import strings
from tests.run_cases import run_of, ugly, without_weights

pytest.importorskip("plotly")


def trace(figure: object, name: str) -> dict[str, list[float]]:
    (found,) = [t for t in figure.to_dict()["data"] if t.get("name") == name]  # type: ignore[attr-defined]
    return found  # type: ignore[no-any-return]


def test_a_slice_is_prior_and_posterior_through_the_best_point() -> None:
    run = run_of(5)
    panel = slice_panel(run, run.parameters[1], task_curves(run))
    curve = trace(panel, "posterior")
    X = run.center.repeat(len(curve["x"]), 1)
    X[:, 1] = torch.tensor(curve["x"], dtype=torch.float64)
    posterior = run.model.posterior(X.unsqueeze(-2)).mean.flatten()
    assert curve["y"] == pytest.approx(posterior.tolist())
    prior = run.model.before_data().posterior(X.unsqueeze(-2)).mean.flatten()
    assert trace(panel, "prior")["y"] == pytest.approx(prior.tolist())
    assert float(run.center[1]) in curve["x"]
    best = trace(panel, "best experiment")
    assert (best["x"], best["y"]) == ([float(run.center[1])], [float(run.task.y.max())])


def test_the_lines_of_the_past_tasks_add_up_to_the_prior() -> None:
    run = run_of(5, sizes=(6, 6, 6, 6, 6, 6, 6), maximize=False)
    drawn = task_curves(run)
    assert (
        sorted(m for item in drawn for m in item.tasks)
        == run.model.weights.nonzero().flatten().tolist()
    )
    panel = slice_panel(run, run.parameters[0], drawn)
    (level, _) = trace(panel, "the common level")["y"]
    total = [level] * len(trace(panel, "prior")["y"])
    for item in drawn:
        line = trace(panel, item.name)["y"]
        total = [before + value - level for before, value in zip(total, line, strict=True)]
    assert total == pytest.approx(trace(panel, "prior")["y"])


def test_few_tasks_are_drawn_alone_and_many_together() -> None:
    few, many = run_of(0, sizes=(5, 5, 5, 5)), run_of(0, sizes=(5,) * 7)
    assert [len(item.tasks) for item in task_curves(few)] == [1, 1, 1, 1]
    assert [len(item.tasks) for item in task_curves(many)] == [1, 1, 1, 4]
    assert task_curves(without_weights(run_of(4))) == []


def test_observations_near_the_slice_are_told_from_others() -> None:
    run = run_of(1, d=3)
    x = run.task.X[0]
    there = [x, x + torch.tensor([0.0, 0.1, 0.1]), x + torch.tensor([0.5, 0.0, 0.0])]
    far = [x + torch.tensor([0.0, 0.5, 0.0])]
    task = Task(torch.stack([*there, *far]).clamp(-1, 2), [9.0, 1.0, 2.0, 3.0])
    moved = Run(run.subject.__class__(run.prior, task), run.model)
    assert near_slice(moved, moved.parameters[0]).tolist() == [True, True, True, False]
    panel = slice_panel(moved, moved.parameters[0], [])
    assert sorted(trace(panel, "experiment near the slice")["y"]) == [1.0, 2.0]
    assert trace(panel, "experiment elsewhere")["y"] == [3.0]


def test_without_experiments_there_is_one_curve() -> None:
    run = run_of(0)
    names = [t.get("name") for t in slice_panel(run, run.parameters[0], []).to_dict()["data"]]
    assert names == [None, "expected"]  # the band has no name


def test_choices_and_steps_are_drawn_value_by_value() -> None:
    run = Run.of(ugly())
    _, kind, depth = run.parameters
    panel = slice_panel(run, kind, task_curves(run))
    assert len(trace(panel, "posterior")["y"]) == 3
    assert trace(slice_panel(run, depth, []), "posterior")["x"] == pytest.approx([2, 6, 10])


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (0, 2)])
def test_a_map_is_mean_and_uncertainty_on_a_grid(pair: tuple[int, int]) -> None:
    run = Run.of(ugly())
    across, up = (run.parameters[i] for i in pair)
    mean, uncertainty = map_panels(run, (across, up))
    grid = mean.data[0]
    i, j = len(grid.x) // 2, len(grid.y) - 1
    x = run.center.clone()
    for parameter, place, n in ((across, i, len(grid.x)), (up, j, len(grid.y))):
        x[list(parameter.block.columns)] = parameter.levels(n)[place]
    expected, deviation = moments(run.model, x.unsqueeze(0))
    assert grid.z[j][i] == pytest.approx(-float(expected))
    assert uncertainty.data[0].z[j][i] == pytest.approx(2.0 * float(deviation))
    assert grid.reversescale  # of a minimized objective the small values are the good ones
    assert len(trace(mean, "suggestion")["x"]) == 2
    assert len(trace(mean, "experiment")["x"]) == run.task.n - 1


def test_no_label_is_markup() -> None:
    run = Run.of(ugly())
    drawn = task_curves(run)
    figures = [slice_panel(run, parameter, drawn) for parameter in run.parameters]
    for figure in [*figures, *map_panels(run, (run.parameters[0], run.parameters[1]))]:
        assert not [text for text in strings(figure) if "<" in text or "$" in text]


def test_one_parameter_has_no_map() -> None:
    check_two(run_of(3))
    with pytest.raises(Inapplicable, match="only one parameter"):
        check_two(run_of(3, d=1))
