from __future__ import annotations

import pytest
import torch

from scaml import ScaMLGP, Task
from scaml.explain.leave_one_out import Comparison, LeftOut, compare, left_out
from scaml.explain.run import Inapplicable, Run
from scaml.explain.subject import Subject
from scaml.gp.units import Units, standardize
from scaml.methods import GPBO, RGPE
from scaml.methods.gpbo import GPBOPrior
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.hyperparameters import Hyperparameters
from tests.cases import meta_data, pair, task_of
from tests.run_cases import run_of


def conditioned_anew(model: ScaMLGP) -> LeftOut:
    """Every observation by a model that was never told of it."""
    (X,), y = model.train_inputs, model.train_targets
    theta = Hyperparameters(model.weights, model.lengthscale, model.outputscale, model.noise)
    means, deviations = [], []
    for j in range(len(y)):
        others = torch.arange(len(y)) != j
        fewer = ScaMLGP(
            model.task_gps, Task(X[others], y[others]), Units(model.y_offset, model.y_scale), theta
        )
        posterior = fewer.posterior(X[j : j + 1], observation_noise=True)
        means.append(posterior.mean.reshape(()))
        deviations.append(posterior.variance.reshape(()).sqrt())
    return LeftOut(torch.stack(means), torch.stack(deviations), y)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_closed_form_is_conditioning_without_the_observation(seed: int) -> None:
    task = task_of(7, 2)
    plain = fit_plain_gp(task, standardize(task.y), kernel="se", seed=0)
    for model in (pair("se", (6, 9), 5, 2, seed).model, plain):
        ours, expected = left_out(model, model.train_targets), conditioned_anew(model)
        torch.testing.assert_close(ours.mean, expected.mean, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(ours.deviation, expected.deviation, rtol=1e-6, atol=1e-8)


def test_errors_are_counted_in_the_units_of_y() -> None:
    y = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    found = LeftOut(y + torch.tensor([3.0, 0.0, -4.0]), torch.tensor([2.0, 1.0, 1.0]), y)
    assert found.error == pytest.approx((25.0 / 3.0) ** 0.5)
    assert found.covered == 2


def prediction(errors: list[float]) -> LeftOut:
    y = torch.zeros(len(errors), dtype=torch.float64)
    return LeftOut(torch.tensor(errors, dtype=torch.float64), torch.ones_like(y), y)


def test_a_winner_is_named_where_it_is_clear() -> None:
    bad, good = prediction([1.0, -1.2, 0.9, 1.1]), prediction([0.1, 0.2, -0.1, 0.0])
    mixed = prediction([0.0, 1.5, -0.9, 1.0])
    assert Comparison(good, bad).winner == 1
    assert Comparison(bad, good).winner == -1
    assert Comparison(bad, mixed).winner == 0
    assert Comparison(bad, bad).winner == 0
    assert Comparison(good, None).winner == 0


def test_the_gain_is_the_error_that_the_past_saves() -> None:
    bad, good = prediction([3.0, -4.0]), prediction([0.5, 0.5])
    assert Comparison(good, bad).gain == pytest.approx(12.5**0.5 - 0.5)
    assert Comparison(bad, good).gain == pytest.approx(0.5 - 12.5**0.5)
    assert Comparison(good, None).gain is None


def test_a_run_compares_once() -> None:
    run = run_of(6)
    assert run.comparison is run.comparison
    assert run.comparison.ours.error == pytest.approx(compare(run).ours.error)


def test_the_plain_gp_knows_the_new_data_alone() -> None:
    run = run_of(6)
    comparison = compare(run)
    plain = GPBO().meta_fit(run.prior.meta).condition(run.task)
    assert comparison.plain is not None
    torch.testing.assert_close(
        comparison.plain.mean, conditioned_anew(plain).mean, rtol=1e-6, atol=1e-8
    )


def test_a_plain_gp_is_not_compared_with_itself() -> None:
    run = Run.of(Subject(GPBOPrior(GPBO(), 2), task_of(4, 2)))
    assert compare(run).plain is None


@pytest.mark.parametrize(("n", "words"), [(0, "there are none"), (1, "there is 1"), (2, "there are 2")])
def test_few_observations_are_not_left_out(n: int, words: str) -> None:
    with pytest.raises(Inapplicable, match=words):
        compare(run_of(n))


def test_other_methods_say_so() -> None:
    prior = RGPE(samples=16).meta_fit(meta_data((7, 8), 2))
    with pytest.raises(Inapplicable, match="RGPE cannot predict an experiment from the others"):
        compare(Run.of(Subject(prior, task_of(4, 2))))
