from __future__ import annotations

import pytest
import torch

from scaml import ScaML, Task, report
from scaml.methods import GPBO
from tests.cases import ONE_MODEL, meta_data, task_of
from tests.report.cases import strings
from tests.run_cases import EXPLAINED, SPACE, explained_run, points, ugly

pytest.importorskip("plotly")


def test_every_figure_of_a_run_in_a_space() -> None:
    subject = ugly()
    prior, task = subject.prior, subject.task
    model = prior.condition(task)
    slices = report.slices(prior, task, objective="<u>")
    figures = [
        report.weights(model, space=SPACE),
        slices,
        report.maps(prior, task, suggestions=points(1)),
        report.leave_one_out(prior, task, objective="<u>"),
        report.progress(task, objective="<u>"),
        report.suggestions(prior, task, points(2), objective="<u>"),
    ]
    for figure in figures:
        assert figure.data
        assert not [text for text in strings(figure) if "<" in text]
    axes = [slices.layout[name] for name in ("xaxis", "xaxis2", "xaxis3")]
    titles = {axis.title.text for axis in axes}
    assert titles == {"rate", "depth", "&lt;img src=x onerror=alert(1)&gt;"}
    assert {axis.type for axis in axes if axis.title.text == "rate"} == {"log"}
    shown = [trace.name for trace in slices.data if trace.showlegend]
    assert len(shown) == len(set(shown)) > 3


def test_without_a_space_the_axes_are_those_of_the_cube() -> None:
    prior = ONE_MODEL.meta_fit(meta_data((6, 7), 2))
    slices = report.slices(prior, Task.empty(2))
    assert {slices.layout.xaxis.title.text, slices.layout.xaxis2.title.text} == {"x1", "x2"}
    low, high = slices.layout.xaxis.range
    assert low < 0 < 1 < high


@pytest.mark.parametrize("n", [0, 1, 2])
def test_any_number_of_observations_will_do(n: int) -> None:
    prior = ONE_MODEL.meta_fit(meta_data((6, 7), 2))
    task = task_of(n, 2) if n else Task.empty(2)
    assert report.slices(prior, task).data
    assert report.maps(prior, task).data
    assert "at least 3 experiments" in report.leave_one_out(prior, task).layout.annotations[0].text
    assert len(report.progress(task).data) == (2 if n else 0)


def test_what_does_not_apply_is_a_sentence() -> None:
    prior = GPBO().meta_fit(meta_data((6, 7), 2))
    empty = Task.empty(2)
    model = prior.condition(empty)
    sentences = [
        (report.weights(model, prior.names), "has no weights of the past tasks"),
        (report.weights(model), "no past task"),
        (report.slices(prior, empty), "Nothing is known yet"),
        (report.maps(prior, empty), "Nothing is known yet"),
    ]
    for figure, words in sentences:
        assert words in figure.layout.annotations[0].text


def test_names_may_be_given() -> None:
    prior = ONE_MODEL.meta_fit(meta_data((6, 7), 2))
    figure = report.weights(prior.condition(task_of(3, 2)), ["one", "two"])
    assert {"one", "two"} < set(figure.layout.yaxis.ticktext)


def test_the_answer_does_not_depend_on_when_it_is_asked() -> None:
    prior, task = ONE_MODEL.meta_fit(meta_data((6, 7), 2)), task_of(4, 2)
    torch.manual_seed(0)
    one = report.slices(prior, task).to_json()
    torch.manual_seed(1)
    assert report.slices(prior, task).to_json() == one


def test_a_model_that_explains_itself_is_drawn_with_its_probabilities() -> None:
    run = explained_run()
    assert run.verdict is not None
    (table,) = report.explanations(run.model).data
    assert table.cells.values[0][0] == str(run.verdict.best).replace("'", "&#x27;")
    weights = report.weights(run.model)
    assert set(run.prior.names) < set(weights.layout.yaxis.ticktext)
    matters = run.verdict.matters
    assert [matters[name] for name in weights.layout.yaxis.ticktext[:-1]] == list(
        weights.data[1].x[:-1]
    )


def test_a_model_in_a_space_of_several_columns_that_explains_itself() -> None:
    subject = ugly(method=EXPLAINED)
    model = subject.prior.condition(subject.task)
    for figure in (report.weights(model, space=SPACE), report.explanations(model)):
        assert figure.data
        assert not [text for text in strings(figure) if "<" in text]


def test_other_models_have_no_explanations() -> None:
    model = ScaML(weights="shared").meta_fit(meta_data((6, 7), 2)).condition(task_of(3, 2))
    words = report.explanations(model).layout.annotations[0].text
    assert "does not tell which past tasks the new one is like" in words
