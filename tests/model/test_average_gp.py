"""AverageGP against its members: posteriors, Bayes' rule, leave-one-out, parts, copies."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.sampling import SobolQMCNormalSampler

from scaml import ScaMLGP, SettingError, Task
from scaml.explain.moments import moments
from scaml.gp.mixture_posterior import REPLICAS
from scaml.gp.units import Units
from scaml.model.average_gp import AverageGP
from tests.model.average_cases import P, average_of, density, normalized, points


@pytest.mark.parametrize("n_t", [0, 1, 5])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("q", [1, 4])
def test_posterior_is_the_mixture_of_the_members(n_t: int, batch: tuple[int, ...], q: int) -> None:
    model, X = average_of(n_t), points(*batch, q)
    posterior, own = model.posterior(X), [member.posterior(X) for member in model.members]
    assert posterior.mean.shape == posterior.variance.shape == (*batch, REPLICAS, q, 1)
    assert posterior.rsample(torch.Size([5])).shape == (5, *batch, REPLICAS, q, 1)
    mean = sum(p * one.mean for p, one in zip(P, own, strict=True))
    raw = sum(p * (one.variance + one.mean.square()) for p, one in zip(P, own, strict=True))
    torch.testing.assert_close(posterior.mixture_mean, mean)
    torch.testing.assert_close(posterior.mixture_variance, raw - mean.square(), rtol=1e-8, atol=1e-10)
    # 16 p is 8, 4.8 and 3.2.
    for e, replica in ((0, 0), (0, 7), (1, 8), (1, 12), (2, 13), (2, 15)):
        torch.testing.assert_close(posterior.mean[..., replica, :, :], own[e].mean)
        torch.testing.assert_close(posterior.variance[..., replica, :, :], own[e].variance)


def test_observation_noise_is_that_of_each_member() -> None:
    model, X = average_of(4), points(3)
    noise = [float(member.noise * member.y_scale.square()) for member in model.members]
    bare, noisy = model.posterior(X), model.posterior(X, observation_noise=True)
    mean_noise = sum(p * s for p, s in zip(P, noise, strict=True))
    torch.testing.assert_close(noisy.mixture_variance, bare.mixture_variance + mean_noise)
    torch.testing.assert_close(noisy.variance[0], bare.variance[0] + noise[0])
    given = model.posterior(X, observation_noise=torch.full((3, 1), 0.5, dtype=torch.float64))
    torch.testing.assert_close(given.mixture_variance, bare.mixture_variance + 0.5)
    assert float(model.likelihood.noise) == pytest.approx(mean_noise)


def test_transforms_and_outputs() -> None:
    model, X = average_of(4), points(2, 3)
    transform = ScalarizedPosteriorTransform(torch.tensor([-2.0], dtype=torch.float64), offset=1.0)
    bare, transformed = model.posterior(X), model.posterior(X, posterior_transform=transform)
    torch.testing.assert_close(transformed.mean, 1.0 - 2.0 * bare.mean)
    torch.testing.assert_close(transformed.variance, 4.0 * bare.variance)
    assert model.num_outputs == 1
    assert model.batch_shape == (REPLICAS,)
    assert model.subset_output([0]) is model
    assert model.to(torch.float32).posterior(X).mean.dtype == torch.float64
    for wrong in (lambda: model.subset_output([1]), lambda: model.posterior(X, output_indices=[1])):
        with pytest.raises(SettingError, match="the model has one output"):
            wrong()


def test_weights_are_the_mean_weights() -> None:
    model = average_of(4)
    for m in range(3):
        expected = sum(p * float(member.weights[m]) for p, member in zip(P, model.members, strict=True))
        assert float(model.weights[m]) == pytest.approx(expected)
    assert len(model.weights) == 3


@pytest.mark.parametrize("n_t", [0, 4])
@pytest.mark.parametrize("level", [0.0, 5.0])
def test_new_observations_change_the_probabilities_by_bayes_rule(n_t: int, level: float) -> None:
    model, X = average_of(n_t, level=level), points(3)
    y = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    after = model.condition_on_observations(X, y.unsqueeze(-1))
    own = [math.log(p) + density(member, X, y) for p, member in zip(P, model.members, strict=True)]
    assert after.probability.tolist() == pytest.approx(normalized(own), rel=1e-6)
    assert float(after.probability.sum()) == pytest.approx(1.0)
    for old, new in zip(model.members, after.members, strict=True):
        expected = old.condition_on_observations(X, y.unsqueeze(-1)).posterior(points(4)).mean
        torch.testing.assert_close(new.posterior(points(4)).mean, expected)
    assert after.train_targets.shape == (n_t + 3,)
    assert model.train_targets.shape == (n_t,)
    assert model.probability.tolist() == pytest.approx(P)


def test_observations_one_by_one_are_observations_at_once() -> None:
    model, X = average_of(2), points(3)
    y = torch.tensor([[0.3], [-1.0], [2.0]], dtype=torch.float64)
    together, one_by_one = model.condition_on_observations(X, y), model
    for i in range(3):
        one_by_one = one_by_one.condition_on_observations(X[i : i + 1], y[i : i + 1])
    torch.testing.assert_close(one_by_one.probability, together.probability, rtol=1e-6, atol=1e-9)


def test_the_given_noise_of_new_observations_counts() -> None:
    model, X = average_of(3), points(2)
    y = torch.tensor([[4.0], [-3.0]], dtype=torch.float64)
    vague = model.condition_on_observations(X, y, noise=torch.full_like(y, 1e12))
    torch.testing.assert_close(vague.probability, model.probability, rtol=1e-6, atol=1e-6)
    sharp = model.condition_on_observations(X, y)
    assert not torch.allclose(sharp.probability, model.probability, atol=1e-2)


def test_batches_of_values_have_probabilities_each() -> None:
    model, X, Q = average_of(3), points(2, 2), points(2, 4)
    Y = torch.randn(5, 2, 2, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    after = model.condition_on_observations(X, Y)
    assert after.probability.shape == (5, 2, 3)
    posterior = after.posterior(Q)
    assert posterior.mixture_mean.shape == (5, 2, 4, 1)
    for s in range(5):
        for b in range(2):
            alone = model.condition_on_observations(X[b], Y[s, b])
            torch.testing.assert_close(after.probability[s, b], alone.probability)
            expected = alone.posterior(Q[b])
            torch.testing.assert_close(posterior.mixture_mean[s, b], expected.mixture_mean)
            torch.testing.assert_close(
                posterior.mixture_variance[s, b], expected.mixture_variance, rtol=1e-7, atol=1e-9
            )


@pytest.mark.parametrize("n_t", [0, 3])
def test_fantasies_have_probabilities_each(n_t: int) -> None:
    model, X = average_of(n_t), points(2, 3)
    sampler = SobolQMCNormalSampler(torch.Size([20]), seed=0)
    fantasies = model.fantasize(X, sampler)
    assert fantasies.batch_shape == (20, 2, REPLICAS)
    assert fantasies.probability.shape == (20, 2, 3)
    assert fantasies.train_targets.shape == (20, 2, n_t + 3)
    drawn = sampler(model.posterior(X, observation_noise=True))
    for s in range(20):
        for b in range(2):
            y = fantasies.train_targets[s, b, n_t:]
            torch.testing.assert_close(y, drawn[s, b, s % REPLICAS].squeeze(-1))
            own = [math.log(p) + density(m, X[b], y) for p, m in zip(P, model.members, strict=True)]
            found = fantasies.probability[s, b].tolist()
            assert found == pytest.approx(normalized(own), rel=1e-5, abs=1e-9)


def test_believed_values_change_no_mean_and_no_probability() -> None:
    model, X, Q = average_of(3), points(2), points(5)
    after = model.believing(X)
    assert torch.equal(after.log_probability, model.log_probability)
    assert after.train_targets.shape == (5,)
    before, now = model.posterior(Q), after.posterior(Q)
    torch.testing.assert_close(now.mixture_mean, before.mixture_mean, rtol=1e-6, atol=1e-6)
    assert (now.variance < before.variance).all()


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_leave_one_out_is_the_average_without_the_row(level: float) -> None:
    """Its probabilities are those that become the model's once the row is observed."""
    model = average_of(6, level=level)
    (X,), y = model.train_inputs, model.train_targets
    mean, deviation = model.leave_one_out()
    for j in range(6):
        rest, row = [i for i in range(6) if i != j], X[j : j + 1]
        without = [
            ScaMLGP(m.task_gps, Task(X[rest], y[rest]), Units(m.y_offset, m.y_scale), m.hyperparameters)
            for m in model.members
        ]
        told = [density(member, row, y[j : j + 1]) for member in without]
        p = normalized([math.log(p) - d for p, d in zip(P, told, strict=True)])
        average = AverageGP(without, torch.tensor(p, dtype=torch.float64).log())
        posterior = average.posterior(row, observation_noise=True)
        assert float(mean[j]) == pytest.approx(float(posterior.mixture_mean), rel=1e-6)
        assert float(deviation[j]) ** 2 == pytest.approx(float(posterior.mixture_variance), rel=1e-6)
        back = average.condition_on_observations(row, y[j].view(1, 1)).probability
        assert back.tolist() == pytest.approx(P, rel=1e-6)


def test_parts_add_up_to_the_prior() -> None:
    model, X = average_of(5, level=0.5), points(7)
    parts, prior = model.past_parts(), model.before_data().posterior(X)
    assert parts is not None
    assert torch.equal(parts.weights, model.weights)
    means, variances = parts.means(X), parts.variances(X)
    assert means.shape == variances.shape == (4, 7)
    offset = model.members[0].y_offset
    torch.testing.assert_close(means.sum(0), prior.mixture_mean.squeeze(-1) - offset)
    torch.testing.assert_close(variances.sum(0), prior.mixture_variance.squeeze(-1))
    for m in range(3):
        own = torch.zeros(7, dtype=torch.float64)
        for p, member in zip(P, model.members, strict=True):
            own += p * member.y_scale * member.weights[m] * member.task_gps.mean(X)[m]
        torch.testing.assert_close(means[m], own)


def test_before_data_keeps_all_but_the_data() -> None:
    model, X = average_of(5), points(3)
    before = model.before_data()
    assert before.train_targets.shape == (0,)
    assert torch.equal(before.log_probability, model.log_probability)
    torch.testing.assert_close(
        before.posterior(X).mixture_mean, average_of(0).posterior(X).mixture_mean
    )


def test_explanations_show_the_moments_of_the_mixture() -> None:
    model, X = average_of(5), points(300)
    mean, deviation = moments(model, X)
    posterior = model.posterior(X.unsqueeze(-2))
    torch.testing.assert_close(mean, posterior.mixture_mean.flatten())
    torch.testing.assert_close(deviation.square(), posterior.mixture_variance.flatten())


@pytest.mark.parametrize("copy", [deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("n_t", [0, 4])
def test_copies_predict_the_same(n_t: int, copy: Callable[[AverageGP], AverageGP]) -> None:
    model, X = average_of(n_t), points(3)
    twin = copy(model)
    assert torch.equal(twin.posterior(X).mixture_mean, model.posterior(X).mixture_mean)
    assert torch.equal(twin.posterior(X).variance, model.posterior(X).variance)
    assert torch.equal(twin.log_probability, model.log_probability)


def test_fantasies_have_no_verdict() -> None:
    model, X = average_of(3), points(2)
    after = model.condition_on_observations(X, torch.zeros(2, 1, dtype=torch.float64))
    with pytest.raises(SettingError, match="explain the model that `condition` returned"):
        after.explain()
