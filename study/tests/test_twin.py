"""The one good past task: asked with the data of a run, and found when it is probable."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from scaml import SettingError
from scaml.bench.contestants import Contestant, contestant
from scaml.bench.problems import problem
from scaml.bench.safety import SAFETY
from scaml.bench.settings import Setting
from scaml.bench.single_run import SingleRun, evaluate
from scaml.model.scaml_gp import ScaMLGP
from study.twin import find_twins, probabilities_of, summary


def weighted(*weights: float) -> SimpleNamespace:
    return SimpleNamespace(weights=torch.tensor(weights, dtype=torch.float64))


def test_weights_stand_in_for_probabilities() -> None:
    assert probabilities_of(weighted(0.5, -1.5), "ab") == {"a": 0.25, "b": 0.75}
    assert probabilities_of(weighted(0.0, 0.0), "ab") == {"a": 0.0, "b": 0.0}


def test_an_explanation_is_preferred() -> None:
    model = weighted(1.0, 1.0)
    model.explain = lambda: SimpleNamespace(matters={"b": 0.9, "a": 0.2, "c": 0.1})
    assert list(probabilities_of(model, "ab").items()) == [("a", 0.2), ("b", 0.9)]


@pytest.mark.parametrize("model", [SimpleNamespace(), weighted(1.0), SimpleNamespace(weights=None)])
def test_a_model_without_weights_per_task_is_refused(model: SimpleNamespace) -> None:
    with pytest.raises(SettingError, match="has no weight for every past task; give a method that has"):
        probabilities_of(model, "ab")


def test_a_run_is_that_of_the_bench() -> None:
    scaml = contestant("scaml-shared")
    frame = find_twins(["one-good"], [scaml], 1, 3)
    assert frame["evaluations"].tolist() == [0, 1, 2, 3]
    stored = evaluate(SingleRun(Setting.of("one-good", evaluations=3), scaml, 0))
    for row, probabilities in zip(stored, frame["probabilities"], strict=False):
        assert len(probabilities) == 31
        total = sum(map(abs, row["weights"]))
        shares = [abs(w) / total for w in row["weights"]]
        assert probabilities == pytest.approx(shares, rel=0.0, abs=5.1e-5)  # four digits
    name = problem("one-good").draw(0).meta.names[frame["twin"][0]]
    assert SAFETY["one-good"].good_tasks(31, 0) == (name,)


def test_results_do_not_depend_on_jobs() -> None:
    told: list[tuple[int, int]] = []
    one = find_twins(
        ["one-good"],
        [contestant("scaml")],
        2,
        1,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(0, 2), (1, 2), (2, 2)]
    pd.testing.assert_frame_equal(find_twins(["one-good"], [contestant("scaml")], 2, 1, n_jobs=2), one)


def test_a_model_that_knows_the_twin_is_first_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def explain(model: ScaMLGP) -> SimpleNamespace:
        names = [f"one-good-{m}" for m in range(31)]
        good = SAFETY["one-good"].good_tasks(31, 0)
        return SimpleNamespace(matters={name: 0.6 if name in good else 0.01 for name in names})

    monkeypatch.setattr(ScaMLGP, "explain", explain, raising=False)
    found = summary(find_twins(["one-good"], [contestant("scaml-shared")], 1, 1))
    assert found.to_dict("records") == [
        {"problem": "one-good", "method": "scaml-shared", "runs": 1, "until": 0.0, "first": 1.0}
    ]


def rows(run: int, twin: int, *probabilities: list[float]) -> list[dict[str, object]]:
    return [
        {
            "problem": "p",
            "method": "m",
            "run": run,
            "evaluations": n,
            "twin": twin,
            "first": max(range(2), key=p.__getitem__) if p[0] != p[1] else -1,
            "probabilities": p,
        }
        for n, p in enumerate(probabilities)
    ]


def test_the_median_counts_runs_without_the_twin_as_infinite() -> None:
    soon = rows(0, 1, [0.5, 0.5], [0.3, 0.7])
    late = rows(1, 0, [0.1, 0.2], [0.2, 0.1], [0.5, 0.1])
    never = rows(2, 0, [0.4, 0.9], [0.4, 0.4])
    found = summary(pd.DataFrame(soon + late + never)).iloc[0]
    assert (found["runs"], found["until"]) == (3, 2.0)
    assert found["first"] == pytest.approx(2 / 3)
    assert summary(pd.DataFrame(soon + never))["until"].item() == math.inf


def test_the_first_task_counts_after_twenty_evaluations() -> None:
    changing = rows(0, 0, *([[0.4, 0.1]] * 21), [0.1, 0.4])
    assert summary(pd.DataFrame(changing))["first"].item() == 1.0
    changing = rows(0, 0, *([[0.1, 0.4]] * 21), [0.4, 0.1])
    assert summary(pd.DataFrame(changing))["first"].item() == 0.0


@pytest.mark.parametrize(
    ("problems", "chosen", "message"),
    [
        (["related"], contestant("scaml"), "'related' has no single good past task; give one-good"),
        (["svm"], contestant("scaml"), "'svm' has no single good past task"),
        (["one-god"], contestant("scaml"), "There is no problem 'one-god'; did you mean 'one-good'"),
        (["one-good"], contestant("gpbo"), "'gpbo' has no past tasks; give another method"),
        (["one-good"], contestant("random"), "'random' has no past tasks"),
    ],
)
def test_wrong_input(problems: list[str], chosen: Contestant, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        find_twins(problems, [chosen], 1, 1)
