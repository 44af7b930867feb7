from __future__ import annotations

import pytest
import torch

from scaml import ScaML
from scaml.explain.explanations import explanation_rows, verdict_of
from scaml.explain.run import Inapplicable
from scaml.methods import GPBO, RGPE
from scaml.model.average_gp import AverageGP
from tests.cases import meta_data, task_of
from tests.run_cases import explained_run, verdict


@pytest.mark.parametrize("n", [0, 2, 6])
def test_the_rows_are_what_the_model_explains(n: int) -> None:
    run = explained_run(n)
    assert isinstance(run.model, AverageGP)
    told = run.model.explain()
    rows = explanation_rows(run.verdict)
    assert sum(row.probability for row in rows) == pytest.approx(1.0)
    assert sum(row.count for row in rows) == len(told.explanations)
    own = [row.explanation for row in rows if row.explanation is not None]
    assert tuple(own) == told.explanations[: len(own)]
    assert all(e.probability >= 0.01 for e in own)


def test_improbable_explanations_share_one_row() -> None:
    told = verdict({"a": 0.004, "b": 0.6, "": 0.387, "c": 0.009})
    rows = explanation_rows(told)
    assert [row.explanation for row in rows[:-1]] == list(told.explanations[:2])
    assert rows[-1].explanation is None
    assert rows[-1].probability == pytest.approx(0.013)
    assert rows[-1].count == 2
    assert explanation_rows(verdict({"a": 0.7, "": 0.3}))[-1].explanation is not None


def test_many_explanations_are_cut_and_the_best_is_always_shown() -> None:
    rows = explanation_rows(verdict({str(i): 0.05 for i in range(20)}))
    assert len(rows) == 9
    assert rows[-1].probability == pytest.approx(0.6)
    rows = explanation_rows(verdict({str(i): 0.001 for i in range(1000)}))
    assert [row.count for row in rows] == [1, 999]


@pytest.mark.parametrize("method", [ScaML(weights="shared"), ScaML.paper(), GPBO(), RGPE(samples=16)])
def test_other_models_explain_nothing(method: ScaML | GPBO | RGPE) -> None:
    model = method.meta_fit(meta_data((7, 8), 2)).condition(task_of(4, 2))
    assert verdict_of(model) is None
    with pytest.raises(Inapplicable, match="GPX does not tell which past tasks"):
        explanation_rows(verdict_of(model), "GPX")


def test_a_model_with_fantasies_has_no_verdict() -> None:
    model = explained_run().model
    X = torch.full((1, 2), 0.5, dtype=torch.float64)
    assert verdict_of(model.condition_on_observations(X, torch.zeros(1, 1))) is None
