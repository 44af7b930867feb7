"""Algorithm 1 line by line, and as `ScaML.paper()` runs it."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import minimize

from scaml import MetaData, ScaML, Task
from scaml.gp.hyperpriors import META_TASK
from scaml.model.algorithm1 import algorithm1, cached, learn_new_task, meta_fit
from scaml.model.fit_theta import fit_theta
from scaml.model.hyperparameters import Hyperparameters, ThetaPriors
from scaml.model.likelihood import log_likelihood_of_meta_tasks, log_likelihood_of_test_task
from scaml.model.normalization import Levels, normalize
from scaml.model.weight_priors import weight_prior
from tests.cases import meta_data, query, task_of

META = meta_data((10, 14, 8), 2)


@pytest.mark.parametrize("n", [0, 1, 9])
def test_the_paper_s_setting_is_algorithm_1(n: int) -> None:
    task, X = (task_of(n, 2) if n else Task.empty(d=2)), query(5, 2)
    ours = algorithm1(META, task, seed=4).posterior(X)
    method = ScaML.paper().meta_fit(META, seed=4).condition(task, seed=4).posterior(X)
    assert torch.equal(ours.mean, method.mean)
    assert torch.equal(ours.variance, method.variance)


def test_line_2_trains_every_gp_on_its_own_data() -> None:
    together = meta_fit(META, kernel="se", seed=0)
    for m, task in enumerate(META):
        alone = meta_fit(MetaData([task]), kernel="se", seed=0)
        assert torch.equal(together.lengthscale[m], alone.lengthscale[0])
        assert torch.equal(together.noise[m], alone.noise[0])
    # No neighbour of θ_m is more probable.
    best = log_likelihood_of_meta_tasks(META, together)
    theta = torch.cat(
        [together.lengthscale, together.outputscale[:, None], together.noise[:, None]], dim=-1
    ).log()
    best = best + META_TASK.log_prob(theta)
    for step in 0.05 * torch.cat([torch.eye(4), -torch.eye(4)]).double():
        moved = (theta + step).exp()
        gps = type(together).condition(
            META, kernel="se", lengthscale=moved[:, :2], outputscale=moved[:, 2], noise=moved[:, 3]
        )
        assert (
            log_likelihood_of_meta_tasks(META, gps) + META_TASK.log_prob(theta + step) <= best
        ).all()


def test_line_3_caches_the_posteriors_at_the_test_data() -> None:
    gps, task = meta_fit(META, kernel="se", seed=0), task_of(6, 2)
    scaling = normalize("union", task.y, Levels.of([past.y for past in META]))
    cache = cached(gps, task, scaling)
    torch.testing.assert_close(cache.mean, gps.mean(task.X), rtol=1e-10, atol=1e-12)
    expected = gps.covariance(task.X).flatten(1)
    torch.testing.assert_close(cache.covariances(), expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(scaling.offset + scaling.scale * cache.z, task.y)


def test_lines_4_and_5_find_what_scipy_finds() -> None:
    """θ_t* of equation 9 with the paper's priors, by a search over the reference likelihood."""
    gps, task = meta_fit(META, kernel="se", seed=0), task_of(8, 2)
    scaling = normalize("union", task.y, Levels.of([past.y for past in META]))
    priors = ThetaPriors(weight_prior("positive"))
    model = learn_new_task(gps, task, scaling, priors, seed=0)
    z = (task.y - scaling.offset) / scaling.scale

    def loss(theta: Hyperparameters) -> float:
        vector = torch.cat([theta.lengthscale, theta.outputscale[None], theta.noise[None]]).log()
        value = log_likelihood_of_test_task(gps, theta, task.X, z)
        value = value + priors.kernel.log_prob(vector) - theta.weights.sum()
        return -value.item()

    found = model.hyperparameters
    start = torch.cat([found.weights, found.lengthscale, found.outputscale[None], found.noise[None]])
    start[3:] = start[3:].log()
    lower, upper = priors.kernel.bounds(2)
    bounds = [(0.0, None)] * 3 + list(zip(lower.tolist(), upper.tolist(), strict=True))
    better = minimize(
        lambda x: loss(Hyperparameters.from_vector(torch.tensor(x), 2)),
        start.numpy(),
        method="L-BFGS-B",
        bounds=bounds,
    )
    assert loss(found) <= better.fun + 1e-5
    assert torch.equal(model.train_inputs[0], task.X)


def test_a_learned_scale_is_the_scale_of_the_model() -> None:
    """Ours: e^s multiplies the scale of y that was expected before the fit."""
    gps, task = meta_fit(META, kernel="se", seed=0), task_of(8, 2)
    scaling = normalize("learned", task.y, Levels.of([past.y for past in META]))
    priors = ThetaPriors(weight_prior("shared"), level=float(scaling.level), spread=scaling.spread)
    model = learn_new_task(gps, task, scaling, priors, seed=0)
    _, factor = fit_theta("se", cached(gps, task, scaling), priors, seed=0)
    assert abs(factor.item() - 1.0) > 0.01
    assert model.y_scale.item() == pytest.approx((factor * scaling.scale).item(), rel=1e-12)
