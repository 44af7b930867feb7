from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gpytorch.priors import GammaPrior, LogNormalPrior
from scipy import stats
from torch import Tensor

from scaml.gp import hyperpriors
from scaml.gp.hyperpriors import META_TASK, TEST_TASK, Gamma, KernelPriors, LogNormal, LogScale, Prior

PARTS = ("lengthscale", "outputscale", "noise")
WHOSE = {"meta": META_TASK, "test": TEST_TASK}

# Appendix C, "Choices of Prior Distributions and Constraints for GP Hyperparameters".
PAPER: dict[tuple[str, str], Any] = {
    ("meta", "lengthscale"): stats.gamma(3, scale=1 / 6),
    ("meta", "outputscale"): stats.gamma(2, scale=1 / 0.15),
    ("meta", "noise"): stats.lognorm(2.0, scale=math.exp(-8.0)),
    ("test", "lengthscale"): stats.lognorm(1.5, scale=math.exp(0.5)),
    ("test", "outputscale"): stats.lognorm(3.0, scale=math.exp(-2.0)),
    ("test", "noise"): stats.lognorm(2.0, scale=math.exp(-8.0)),
}
QUANTILES = {
    ("meta", "lengthscale"): (0.14, 1.05),
    ("meta", "outputscale"): (2.4, 31.8),
    ("meta", "noise"): (1.25e-5, 9e-3),
    ("test", "lengthscale"): (0.14, 19.44),
    ("test", "outputscale"): (1e-3, 18.8),
    ("test", "noise"): (1.25e-5, 9e-3),
}
each_prior = pytest.mark.parametrize(("whose", "part"), list(PAPER))


def prior(whose: str, part: str) -> Prior:
    chosen: Prior = getattr(WHOSE[whose], part)
    return chosen


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def logarithms() -> Tensor:
    """From below the lowest to above the highest bound."""
    return torch.linspace(math.log(1e-9), math.log(1e3), 401, dtype=torch.float64)


# Single priors.


@each_prior
def test_log_density_is_the_papers(whose: str, part: str) -> None:
    u = logarithms()
    expected = PAPER[whose, part].logpdf(u.exp().numpy())
    np.testing.assert_allclose(prior(whose, part).log_prob(u).numpy(), expected, rtol=1e-12, atol=1e-12)


@each_prior
def test_log_density_is_gpytorchs(whose: str, part: str) -> None:
    ours, u = prior(whose, part), logarithms()
    if isinstance(ours, Gamma):
        numbers = torch.tensor([ours.shape, ours.rate], dtype=torch.float64)
        theirs = GammaPrior(*numbers)
    else:
        assert isinstance(ours, LogNormal)
        numbers = torch.tensor([ours.mu, ours.sigma], dtype=torch.float64)
        theirs = LogNormalPrior(*numbers)
    torch.testing.assert_close(ours.log_prob(u), theirs.log_prob(u.exp()), rtol=1e-12, atol=1e-12)


@each_prior
def test_slope_is_that_of_the_log_density(whose: str, part: str) -> None:
    ours, u = prior(whose, part), logarithms().requires_grad_()
    (expected,) = torch.autograd.grad(ours.log_prob(u).sum(), u)
    torch.testing.assert_close(ours.slope(u.detach()), expected, rtol=1e-12, atol=1e-12)
    # And of the density the paper means, by central differences.
    h, at = 1e-5, u.detach().numpy()
    density = PAPER[whose, part]
    differences = (density.logpdf(np.exp(at + h)) - density.logpdf(np.exp(at - h))) / (2 * h)
    np.testing.assert_allclose(ours.slope(u.detach()).numpy(), differences, rtol=1e-6, atol=1e-6)


@each_prior
def test_samples_follow_the_distribution(whose: str, part: str) -> None:
    draws = prior(whose, part).sample((4000, 2), generator(1))
    assert draws.shape == (4000, 2)
    assert draws.dtype == torch.float64
    assert stats.kstest(draws.flatten().numpy(), PAPER[whose, part].cdf).pvalue > 0.01


@each_prior
def test_samples_are_seeded(whose: str, part: str) -> None:
    ours = prior(whose, part)
    assert torch.equal(ours.sample((5,), generator(1)), ours.sample((5,), generator(1)))
    assert not torch.equal(ours.sample((5,), generator(1)), ours.sample((5,), generator(2)))


@each_prior
def test_quantiles_are_those_the_paper_quotes(whose: str, part: str) -> None:
    low, high = QUANTILES[whose, part]
    ours = prior(whose, part)
    # The code's density, integrated over log x, must put 5 % below and 95 % below.
    u = torch.linspace(-30.0, 15.0, 200_001, dtype=torch.float64)
    share = torch.cumulative_trapezoid((ours.log_prob(u) + u).exp(), u)
    quantiles = [u[int((share < level).sum())].exp().item() for level in (0.05, 0.95)]
    assert share[-1].item() == pytest.approx(1.0, abs=1e-6)
    # Quoted to two or three digits, the upper outputscale a little generously.
    assert quantiles == [pytest.approx(low, rel=0.04), pytest.approx(high, rel=0.01)]


@each_prior
def test_the_default_is_a_typical_value(whose: str, part: str) -> None:
    center = prior(whose, part).center
    low, high = QUANTILES[whose, part]
    assert low < center < high
    ours = PAPER[whose, part]
    assert center == pytest.approx(
        ours.mean() if ours.dist.name == "gamma" else ours.median(), rel=1e-12
    )


def test_bounds_are_the_papers() -> None:
    assert hyperpriors.LENGTHSCALE_BOUNDS == (1e-4, 1e2)
    assert hyperpriors.OUTPUTSCALE_BOUNDS == (1e-4, 1e2)
    assert hyperpriors.NOISE_BOUNDS == (1e-8, 1e-2)


# The priors of one GP together.


@pytest.mark.parametrize("whose", WHOSE)
def test_joint_log_density_and_slope_put_every_prior_in_its_place(whose: str) -> None:
    theta = torch.randn(2, 4, 5, generator=generator(), dtype=torch.float64)
    x = theta.exp().numpy()
    expected = (
        PAPER[whose, "lengthscale"].logpdf(x[..., :3]).sum(-1)
        + PAPER[whose, "outputscale"].logpdf(x[..., 3])
        + PAPER[whose, "noise"].logpdf(x[..., 4])
    )
    priors = WHOSE[whose]
    np.testing.assert_allclose(priors.log_prob(theta).numpy(), expected, rtol=1e-12)
    theta.requires_grad_()
    (slope,) = torch.autograd.grad(priors.log_prob(theta).sum(), theta)
    torch.testing.assert_close(priors.slope(theta.detach()), slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("free", [1, 2, 3])
def test_free_lengthscales_have_a_flat_prior_and_leave_the_others_as_they_are(free: int) -> None:
    theta = torch.randn(4, 5, generator=generator(), dtype=torch.float64)
    priors = replace(META_TASK, free=free)
    bound = torch.cat([theta[:, : 3 - free], theta[:, 3:]], dim=-1)
    torch.testing.assert_close(priors.log_prob(theta), META_TASK.log_prob(bound))
    expected = META_TASK.slope(theta)
    expected[:, 3 - free : 3] = 0.0
    assert torch.equal(priors.slope(theta), expected)


def test_bounds_of_theta_are_logarithms_in_the_order_of_theta() -> None:
    lower, upper = KernelPriors.bounds(2)
    np.testing.assert_allclose(lower.exp().numpy(), [1e-4, 1e-4, 1e-4, 1e-8], rtol=1e-12)
    np.testing.assert_allclose(upper.exp().numpy(), [1e2, 1e2, 1e2, 1e-2], rtol=1e-12)


@pytest.mark.parametrize("whose", WHOSE)
@pytest.mark.parametrize("n", [1, 6])
def test_the_first_start_is_the_default(whose: str, n: int) -> None:
    starts = WHOSE[whose].starts(n, 3, generator())
    assert starts.shape == (n, 5)
    assert starts.dtype == torch.float64
    center = [float(prior(whose, "lengthscale").center)] * 3
    center += [float(prior(whose, part).center) for part in ("outputscale", "noise")]
    np.testing.assert_allclose(starts[0].exp().numpy(), center, rtol=1e-12)


@pytest.mark.parametrize("whose", WHOSE)
def test_starts_are_seeded_and_distinct(whose: str) -> None:
    priors = WHOSE[whose]
    first = priors.starts(6, 3, generator(4))
    assert torch.equal(first, priors.starts(6, 3, generator(4)))
    assert not torch.equal(first[1:], priors.starts(6, 3, generator(5))[1:])
    assert len(first.unique(dim=0)) == 6
    assert len(first[1:, :3].unique()) == 15  # every lengthscale has a draw of its own


@pytest.mark.parametrize("whose", WHOSE)
def test_starts_are_drawn_from_the_priors_and_pushed_into_the_bounds(whose: str) -> None:
    n = 4000
    starts = WHOSE[whose].starts(n, 2, generator(3))[1:]
    lower, upper = KernelPriors.bounds(2)
    assert (starts >= lower).all()
    assert (starts <= upper).all()
    assert starts.isfinite().all()
    for column, part in enumerate(("lengthscale", *PARTS)):
        drawn = starts[:, column]
        inside = torch.linspace(float(lower[column]), float(upper[column]), 12, dtype=torch.float64)[
            1:-1
        ]
        expected = PAPER[whose, part].cdf(inside.exp().numpy())
        share = np.array([float((drawn <= u).double().mean()) for u in inside])
        error = np.sqrt(expected * (1 - expected) / n)
        assert (np.abs(share - expected) <= 4 * error + 1e-3).all()


# Priors around their centers.


def test_a_log_scale_is_a_normal_of_the_logarithm() -> None:
    mu, sigma = torch.tensor([-1.0, 2.0]).double(), torch.tensor([0.5, 3.0]).double()
    ours, u = LogScale(mu, sigma), logarithms()[:, None].repeat(1, 2)
    expected = stats.norm(mu.numpy(), sigma.numpy()).logpdf(u.numpy())
    np.testing.assert_allclose(ours.log_prob(u).numpy(), expected, rtol=1e-12, atol=1e-12)
    u.requires_grad_()
    (slope,) = torch.autograd.grad(ours.log_prob(u).sum(), u)
    torch.testing.assert_close(ours.slope(u.detach()), slope, rtol=1e-12, atol=1e-12)
    assert (ours.slope(mu) == 0).all()  # unlike a log-normal's, its mode is its center
    np.testing.assert_allclose(ours.center.numpy(), np.exp(mu.numpy()), rtol=1e-12)
    draws = ours.sample((4000, 2), generator(1)).log()
    for column, (center, spread) in enumerate(zip(mu.tolist(), sigma.tolist(), strict=True)):
        assert stats.kstest(draws[:, column].numpy(), stats.norm(center, spread).cdf).pvalue > 0.01


def test_lengthscales_may_have_priors_of_their_own() -> None:
    mu, sigma = torch.tensor([-1.0, 0.0, 1.0]).double(), torch.tensor([0.1, 0.2, 0.3]).double()
    priors = replace(TEST_TASK, lengthscale=LogScale(mu, sigma))
    starts = priors.starts(3000, 3, generator())
    torch.testing.assert_close(starts[0, :3], mu)
    torch.testing.assert_close(starts[1:, :3].mean(0), mu, rtol=0.0, atol=0.02)
    torch.testing.assert_close(starts[1:, :3].std(0), sigma, rtol=0.05, atol=0.0)
    theta = starts[:5]
    expected = stats.norm(mu.numpy(), sigma.numpy()).logpdf(theta[:, :3].numpy()).sum(-1)
    found = priors.log_prob(theta) - TEST_TASK.log_prob(theta)
    found = found + TEST_TASK.lengthscale.log_prob(theta[:, :3]).sum(-1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("free", [0, 1])
def test_the_coefficients_are_those_of_the_density(free: int) -> None:
    """All three kinds of prior at once."""
    scale = LogScale(torch.tensor(-1.2, dtype=torch.float64), torch.tensor(0.7, dtype=torch.float64))
    priors = KernelPriors(Gamma(3, 6.0), scale, LogNormal(-8.0, 2.0), free=free)
    theta = torch.randn(4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, u = priors.coefficients(3), theta.numpy()
    away = u - found.mean
    value = found.constant + found.linear * u - found.rate * np.exp(u) - found.precision * away**2 / 2
    np.testing.assert_allclose(value.sum(-1), priors.log_prob(theta).numpy(), rtol=1e-12)
    slope = found.linear - found.rate * np.exp(u) - found.precision * away
    np.testing.assert_allclose(slope, priors.slope(theta).numpy(), rtol=1e-12)
