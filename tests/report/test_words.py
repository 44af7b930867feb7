from __future__ import annotations

import torch

from scaml import Task
from scaml.explain.leave_one_out import Comparison, LeftOut
from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.explain.suggestions import Suggestion
from scaml.explain.weights import WeightRow
from scaml.methods import GPBO
from scaml.methods.gpbo import GPBOPrior
from scaml.report.row_texts import expected_text
from scaml.report.words import (
    about_left_out,
    about_map,
    about_matching,
    about_shares,
    about_slices,
    about_suggestions,
    about_summary,
    about_weights,
    ignored_tasks,
)
from scaml.spaces.matching import match
from scaml.tasks.past_task import PastTask
from tests.cases import task_of
from tests.run_cases import SPACE, run_of


def test_the_summary_says_what_is_best_and_what_it_rests_on() -> None:
    X = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    run = run_of(0)
    task = Task(X, [-3.0, -1.5, -2.0])
    words = " ".join(about_summary(Run(Subject(run.prior, task, maximize=False), run.model)))
    assert "The best of 3 experiments reached 1.5 in y (smaller is better)" in words
    assert "number 2, 1 experiment ago" in words
    assert "The predictions use these experiments and 3 past tasks." in words
    assert "what the model predicts for y (larger is better) from 3 past tasks" in about_summary(run)[0]
    one = Run(Subject(run.prior, Task(X[:1], [2.0])), run.model)
    assert about_summary(one)[0] == "The only experiment reached 2 in y (larger is better)."
    plain = Run.of(Subject(GPBOPrior(GPBO(), 2), task_of(2, 2)))
    assert about_summary(plain)[1] == "The predictions use only these experiments."
    nothing = Run.of(Subject(GPBOPrior(GPBO(), 2), Task.empty(2)))
    assert "there is no past task, so nothing is known about y" in about_summary(nothing)[0]


def rest(share: float) -> WeightRow:
    return WeightRow(None, None, None, share)


def test_the_weights_are_told_with_their_names() -> None:
    rows = [WeightRow("reactor-B", 0.62, 0.7, 0.5), WeightRow("A", 0.3, 0.3, 0.3), rest(0.2)]
    words = " ".join(about_weights(rows, 4))
    assert (
        "Most of what the past contributes comes from ‘reactor-B’ (weight 0.62, 70 % of the mean)."
        in words
    )
    rows = [
        WeightRow("A", 0.5, 1.0, 0.1),
        WeightRow("B", 0.0, 0.0, 0.0),
        WeightRow(None, None, None, 0.9),
    ]
    words = " ".join(about_weights(rows, 4))
    assert "All that the past contributes comes from ‘A’ (weight 0.5)." in words
    assert "1 of 2 past tasks has weight 0 and is not used." in words
    assert "90 % of the prior’s variance is not explained by the past tasks" in words


def test_a_negative_weight_is_no_advice_to_follow_the_task() -> None:
    rows = [WeightRow("A", -0.6, 0.8, 0.5), WeightRow("B", 0.1, 0.2, 0.1), rest(0.4)]
    assert "may fail here" in about_weights(rows, 6)[-1]
    rows[0] = WeightRow("A", 0.6, 0.8, 0.5)
    assert "may work here" in about_weights(rows, 6)[-1]


def test_weights_of_0_and_weights_before_any_experiment() -> None:
    rows = [
        WeightRow("A", 0.0, 0.0, 0.0),
        WeightRow("B", 0.0, 0.0, 0.0),
        WeightRow(None, None, None, 1.0),
    ]
    assert "All 2 past tasks have weight 0" in about_weights(rows, 5)[0]
    assert "The past task has weight 0" in about_weights([rows[0], rows[2]], 5)[0]
    rows = [
        WeightRow("A", 0.5, 0.6, 0.1),
        WeightRow("B", 0.5, 0.4, 0.1),
        WeightRow(None, None, None, 0.8),
    ]
    assert "all past tasks have the same weight, 0.5" in about_weights(rows, 0)[0]
    assert "the same weight" not in about_weights(rows, 1)[0]


def test_the_winner_is_told_with_both_errors() -> None:
    y = torch.zeros(4, dtype=torch.float64)
    good, bad = (LeftOut(y + error, torch.ones(4), y) for error in (0.1, 3.0))
    words = " ".join(about_left_out(Comparison(good, bad), "y"))
    assert "So far the past helps: the typical error is 0.1 with the past tasks and 3 with" in words
    assert "4 of 4 experiments lie within their error bars" in words
    assert "With 4 experiments this is only a hint" in words
    assert "misleads" in " ".join(about_left_out(Comparison(bad, good), "y"))
    assert "no clear difference" in " ".join(about_left_out(Comparison(good, good), "y"))
    assert "The typical error is 0.1 in y" in " ".join(about_left_out(Comparison(good, None), "y"))


def test_what_was_matched_and_what_was_ignored() -> None:
    row = SPACE.decode([0.5] * SPACE.d)
    same = PastTask("same", SPACE.distributions, [row, row], [1.0, 2.0])
    fewer = {name: d for name, d in SPACE.distributions.items() if name != "depth"}
    lacking = PastTask("lacking", fewer, [row, row], [1.0, 2.0])
    other = PastTask("other", {}, [{}, {}], [1.0, 2.0])

    def said(*past: PastTask) -> tuple[str, list[str]]:
        _, matching = match(past, SPACE)
        run = run_of(0)
        run = Run(Subject(run.prior, run.task, matching=matching), run.model)
        return " ".join(about_matching(run)), ignored_tasks(run)

    assert said(same) == ("The past task has exactly the parameters of the new space.", [])
    words, ignored = said(same, lacking, other)
    assert "2 of 3 past tasks could be used." in words
    assert "If a past task lacks a parameter, its prediction does not depend on" in words
    assert ignored == ["‘other’: it shares no parameter with the new space"]
    assert said()[0] == "There is no past task, so nothing had to be matched."
    assert about_matching(run_of(0)) == ["All 3 past tasks have the parameters of the new task."]


def test_suggestions_are_announced_with_what_they_promise() -> None:
    points = torch.tensor([[0.2, 0.3], [0.4, 0.5]], dtype=torch.float64)
    run = run_of(3, suggestions=points)
    found = run.suggestions
    words = " ".join(about_suggestions(found, "y"))
    assert f"The expected y of the first is {expected_text(found[0])}, where" in words
    assert "the past tasks that raise or lower the prediction most" in words
    one = " ".join(about_suggestions(found[:1], "y"))
    assert one.startswith(f"Try this point next. The expected y is {expected_text(found[0])}")
    low = " ".join(about_suggestions([Suggestion({}, -0.03, 0.02, {}, 0.01)], "error"))
    reading = "(no experiment gave less than 0.01, so read it as: lower than so far)"
    assert f"The expected error is −0.030 ± 0.040 {reading}, where" in low
    ranks = [Suggestion({}, None, None, {})]
    assert about_suggestions(ranks, "y") == ["Try the points of this table next."]
    assert about_suggestions([], "y") == ["No suggestion was asked for."]


def test_the_map_names_its_two_parameters_and_the_point() -> None:
    run = run_of(4)
    words = " ".join(about_map(run, ("a", "b"), (0.5, 0.25)))
    assert "‘a’ and ‘b’ have the largest effects" in words
    assert "they account for 50 % and 25 % of its variance" in words
    assert f"the best experiment so far (number {int(run.task.y.argmax()) + 1})" in words
    flat = " ".join(about_map(run_of(0), ("a", "b"), (0.0, 0.0)))
    assert "the maps show the first two parameters, ‘a’ and ‘b’." in flat
    assert "the point with the best expected value" in flat


def test_the_slices_are_explained_as_they_are_drawn() -> None:
    run = run_of(4)
    words = " ".join(about_slices(run, 2, with_tasks=True))
    assert "the blue band" in words
    assert "together they make the prior’s mean" in words
    assert "The charts show" not in words
    empty = run_of(0, suggestions=torch.full((1, 2), 0.5))
    words = " ".join(about_slices(empty, 1, with_tasks=True))
    assert "at the first suggestion" in words
    assert "together they make the expected value" in words
    assert "The charts show the 1 of 2 parameters" in words
    assert "thin lines" not in " ".join(about_slices(empty, 2, with_tasks=False))


def test_the_grey_bar_is_explained_by_what_the_rest_is() -> None:
    assert "no past task explains" in about_shares([rest(0.2)])
    assert "a plain GP on the new data alone" in about_shares([WeightRow(None, None, 0.1, 0.2)])
