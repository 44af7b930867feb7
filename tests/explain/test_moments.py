from __future__ import annotations

import torch

from scaml.explain.moments import moments, predicts_values
from scaml.methods import GC3P
from tests.cases import meta_data, query, task_of
from tests.run_cases import Known, run_of


def test_moments_are_those_of_the_posterior_also_in_several_parts() -> None:
    run, Q = run_of(4), query(600, 2)
    mean, deviation = moments(run.model, Q)
    posterior = run.model.posterior(Q.unsqueeze(-2))
    torch.testing.assert_close(mean, posterior.mean.flatten())
    torch.testing.assert_close(deviation, posterior.variance.flatten().sqrt())


def test_any_model_with_a_posterior_will_do() -> None:
    Q = query(3, 2)
    mean, deviation = moments(Known(lambda X: X.sum(-1)), Q)
    torch.testing.assert_close(mean, Q.sum(-1))
    torch.testing.assert_close(deviation, torch.full_like(mean, 0.1))


def test_models_of_ranks_do_not_predict_values() -> None:
    assert predicts_values(run_of(4).model)
    ranks = GC3P(updates=2).meta_fit(meta_data((6, 7), 2)).condition(task_of(4, 2))
    assert not predicts_values(ranks)
