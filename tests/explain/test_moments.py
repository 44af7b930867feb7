from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from scaml.explain.moments import moments, predicts_values
from scaml.explain.run import Run
from scaml.gp.posterior import mean_and_variance
from scaml.methods import GC3P
from tests.cases import meta_data, query, task_of
from tests.run_cases import Known, explained_run, run_of


@pytest.mark.parametrize("n", [0, 4])
@pytest.mark.parametrize("run", [run_of, explained_run], ids=["one model", "average"])
def test_moments_are_those_of_the_posterior_also_in_several_parts(
    run: Callable[[int], Run], n: int
) -> None:
    model, Q = run(n).model, query(600, 2)
    mean, deviation = moments(model, Q)
    expected, variance = mean_and_variance(model.posterior(Q.unsqueeze(-2)))
    torch.testing.assert_close(mean, expected.flatten())
    torch.testing.assert_close(deviation, variance.flatten().sqrt())


def test_any_model_with_a_posterior_will_do() -> None:
    Q = query(3, 2)
    mean, deviation = moments(Known(lambda X: X.sum(-1)), Q)
    torch.testing.assert_close(mean, Q.sum(-1))
    torch.testing.assert_close(deviation, torch.full_like(mean, 0.1))


def test_models_of_ranks_do_not_predict_values() -> None:
    assert predicts_values(run_of(4).model)
    ranks = GC3P(updates=2).meta_fit(meta_data((6, 7), 2)).condition(task_of(4, 2))
    assert not predicts_values(ranks)
