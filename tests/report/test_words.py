from __future__ import annotations

import torch

from scaml import Task
from scaml.explain.leave_one_out import Comparison, LeftOut
from scaml.explain.run import Run
from scaml.methods import GPBO
from scaml.methods.gpbo import GPBOPrior
from scaml.report import Subject
from scaml.report.rows import WeightRow, suggested
from scaml.report.words import (
    about_left_out,
    about_matching,
    about_suggestions,
    about_summary,
    about_weights,
    ignored_tasks,
)
from scaml.spaces.matching import match
from scaml.tasks.past_task import PastTask
from tests.cases import task_of
from tests.report.cases import SPACE, run_of


def test_the_summary_says_what_is_best_and_what_it_rests_on() -> None:
    X = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    run = run_of(0)
    task = Task(X, [-3.0, -1.5, -2.0])
    words = " ".join(about_summary(Run(Subject(run.prior, task, maximize=False), run.model)))
    assert "The best of 3 experiments reached 1.5 in y (smaller is better)" in words
    assert "number 2, 1 experiment ago" in words
    assert "rest on them and on 3 past tasks" in words
    assert "what 3 past tasks lead to expect of y (larger is better)" in about_summary(run)[0]
    one = Run(Subject(run.prior, Task(X[:1], [2.0])), run.model)
    assert about_summary(one)[0] == "The only experiment reached 2 in y (larger is better)."
    plain = Run.of(Subject(GPBOPrior(GPBO(), 2), task_of(2, 2)))
    assert "on no past task" in about_summary(plain)[1]


def rest(share: float) -> WeightRow:
    return WeightRow("not explained by the past", None, None, share)


def test_the_weights_are_told_with_their_names() -> None:
    rows = [WeightRow("reactor-B", 0.62, 0.7, 0.5), WeightRow("A", 0.3, 0.3, 0.3), rest(0.2)]
    words = " ".join(about_weights(rows, 4))
    assert "Most of what is expected comes from ‘reactor-B’ (weight 0.62, 70 % of the mean)." in words
    rows = [
        WeightRow("A", 0.5, 1.0, 0.1),
        WeightRow("B", 0.0, 0.0, 0.0),
        WeightRow("r", None, None, 0.9),
    ]
    words = " ".join(about_weights(rows, 4))
    assert "What is expected comes from ‘A’ alone (weight 0.5)." in words
    assert "1 of 2 past tasks has weight 0 and plays no part." in words
    assert "90 % of the prior’s uncertainty is beyond the past tasks" in words


def test_weights_of_0_and_weights_before_any_experiment() -> None:
    rows = [
        WeightRow("A", 0.0, 0.0, 0.0),
        WeightRow("B", 0.0, 0.0, 0.0),
        WeightRow("r", None, None, 1.0),
    ]
    assert "All 2 past tasks have weight 0" in about_weights(rows, 5)[0]
    assert "The past task has weight 0" in about_weights([rows[0], rows[2]], 5)[0]
    rows = [
        WeightRow("A", 0.5, 0.6, 0.1),
        WeightRow("B", 0.5, 0.4, 0.1),
        WeightRow("r", None, None, 0.8),
    ]
    assert "all have the same weight, 0.5" in about_weights(rows, 0)[0]
    assert "all have the same weight" not in about_weights(rows, 1)[0]


def test_the_winner_is_told_with_both_errors() -> None:
    y = torch.zeros(4, dtype=torch.float64)
    good, bad = (LeftOut(y + error, torch.ones(4), y) for error in (0.1, 3.0))
    words = " ".join(about_left_out(Comparison(good, bad), "y"))
    assert "So far the past helps: the typical error is 0.1 with the past tasks and 3 with" in words
    assert "4 of 4 experiments lie within their error bars" in words
    assert "With 4 experiments this is a hint" in words
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

    assert said(same) == ("The past task is in exactly the parameters of the new space.", [])
    words, ignored = said(same, lacking, other)
    assert "2 of 3 past tasks could be used." in words
    assert "lacks a parameter" in words
    assert ignored == ["‘other’: it shares no parameter with the new space"]
    assert said()[0] == "There is no past task, so nothing had to be matched."
    assert about_matching(run_of(0)) == [
        "All 3 past tasks are given in the parameters of the new task."
    ]


def test_suggestions_are_announced_with_what_they_promise() -> None:
    points = torch.tensor([[0.2, 0.3], [0.4, 0.5]], dtype=torch.float64)
    run = run_of(3, suggestions=points)
    rows = suggested(run)
    assert f"the first is expected to reach {rows[0].expected} in y" in about_suggestions(rows, "y")[0]
    assert about_suggestions(rows[:1], "y")[0].startswith("Try this point next; it is expected")
    assert about_suggestions([], "y") == ["No suggestion was asked for."]
