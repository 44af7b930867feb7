from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from gpytorch.priors import GammaPrior
from scipy import stats

from scaml.errors import SettingError
from scaml.model.weight_priors import (
    Independent,
    Shared,
    WeightPrior,
    WeightsName,
    check_weights,
    weight_prior,
)

DENSITY: dict[str, Any] = {"positive": stats.expon(), "signed": stats.norm()}
PRIORS: dict[str, Independent] = {
    "positive": Independent(signed=False),
    "signed": Independent(signed=True),
}
ONE = torch.ones(6, dtype=torch.float64)
each_independent = pytest.mark.parametrize("name", PRIORS)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@each_independent
def test_independent_weights_have_the_stated_density(name: str) -> None:
    w = torch.linspace(0.0 if name == "positive" else -4.0, 4.0, 30, dtype=torch.float64).view(6, 5)
    found = PRIORS[name].log_prob(w, ONE)
    np.testing.assert_allclose(found.numpy(), DENSITY[name].logpdf(w.numpy()).sum(-1), rtol=1e-12)


def test_positive_weights_are_the_papers_gamma_of_1_and_1() -> None:
    one = torch.ones((), dtype=torch.float64)
    w = torch.linspace(0.01, 5.0, 50, dtype=torch.float64)
    found = PRIORS["positive"].log_prob(w[:, None], torch.ones_like(w))
    torch.testing.assert_close(found, GammaPrior(one, one).log_prob(w), rtol=1e-12, atol=1e-14)


def test_shared_weights_have_the_stated_density_up_to_a_constant() -> None:
    prior, M = Shared(0.8, 0.3), 5
    w = torch.rand(6, M, generator=generator(), dtype=torch.float64)
    c = torch.linspace(-1.0, 2.0, 6, dtype=torch.float64)
    expected = stats.cauchy(c[:, None].numpy() / M, 0.2 / M).logpdf(w.numpy()).sum(-1)
    expected = expected + stats.norm(0.8, 0.3).logpdf(c.numpy())
    shift = expected - prior.log_prob(w, c).numpy()
    np.testing.assert_allclose(shift, shift[0], rtol=1e-12)


@pytest.mark.parametrize("prior", [*PRIORS.values(), Shared(0.8, 0.3)])
def test_slopes_are_those_of_autograd(prior: WeightPrior) -> None:
    w = torch.rand(6, 5, generator=generator(), dtype=torch.float64).requires_grad_()
    c = torch.linspace(-1.0, 2.0, 6, dtype=torch.float64).requires_grad_()
    value = prior.log_prob(w, c).sum()
    by_weight, by_common = torch.autograd.grad(value, (w, c), allow_unused=True)
    found_weight, found_common = prior.slope(w.detach(), c.detach())
    torch.testing.assert_close(found_weight, by_weight, rtol=1e-12, atol=1e-14)
    assert (found_common is None) == (not prior.learns_common)
    if found_common is not None:
        torch.testing.assert_close(found_common, by_common, rtol=1e-12, atol=1e-14)


def test_only_signed_weights_are_not_bounded() -> None:
    assert weight_prior("positive").lower == weight_prior("shared").lower == 0.0
    assert weight_prior("signed").lower == -math.inf


def test_only_shared_weights_have_something_in_common_and_can_be_mirrored() -> None:
    shared = weight_prior("shared", 0.7, 0.2)
    assert shared == Shared(0.7, 0.2)
    assert shared.learns_common
    assert 0 < shared.mirrored < 0.5
    for name in ("positive", "signed"):
        assert not weight_prior(name).learns_common
        assert weight_prior(name).mirrored == 0.0


@each_independent
def test_drawn_weights_follow_their_prior(name: str) -> None:
    draws = PRIORS[name].sample((2000, 3), generator(2))
    assert draws.shape == (2000, 3)
    assert draws.dtype == torch.float64
    assert (draws.min() >= 0) == (name == "positive")
    assert stats.kstest(draws.flatten().numpy(), DENSITY[name].cdf).pvalue > 0.01
    assert torch.equal(draws, PRIORS[name].sample((2000, 3), generator(2)))


@pytest.mark.parametrize("prior", [*PRIORS.values(), Shared(0.8, 0.3), Shared(-0.5, 0.3)])
@pytest.mark.parametrize("tasks", [0, 1, 4])
def test_starts_are_inside_the_bound_and_begin_with_equal_weights(
    prior: WeightPrior, tasks: int
) -> None:
    likely = torch.arange(tasks, dtype=torch.float64)
    w, c = prior.starts(6, likely, generator())
    assert w.shape == (6, tasks)
    assert (w >= prior.lower).all()
    share = max(prior.center, 0.0) if isinstance(prior, Shared) else 1.0
    np.testing.assert_allclose(w[0].numpy(), share / max(tasks, 1), rtol=1e-12)
    if c is None:
        assert not prior.learns_common
    else:
        assert c.shape == (6,)
        assert c[0] == share


def test_shared_starts_know_no_task_and_the_likeliest_alone() -> None:
    w, c = Shared(0.8, 0.3).starts(6, torch.tensor([0.1, 0.9, 0.3]), generator())
    assert (w[1] == 0).all()
    assert w[2].tolist() == [0.0, 1.0, 0.0]
    assert c[1] == c[2] == 0.0
    assert len(w[3:].unique()) == 9


def test_weights_are_chosen_by_name() -> None:
    for name in ("shared", "positive", "signed"):
        check_weights(name)
    with pytest.raises(
        SettingError,
        match=r"^weights is 'negative'; choose 'past', 'shared', .* or 'explained'\.$",
    ):
        check_weights("negative")


# In NumPy.


@pytest.mark.parametrize("name", ["positive", "signed", "shared"])
def test_the_density_in_numpy_is_the_density(name: WeightsName) -> None:
    prior = weight_prior(name, 0.7, 0.4)
    w = torch.rand(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    c = torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64) if prior.learns_common else None
    value, by_w, by_c = prior.evaluate(w.numpy(), None if c is None else c.numpy())
    slope_w, slope_c = prior.slope(w, c)
    torch.testing.assert_close(torch.from_numpy(value), prior.log_prob(w, c))
    torch.testing.assert_close(torch.from_numpy(by_w), slope_w)
    assert (by_c is None) == (slope_c is None)
    if by_c is not None and slope_c is not None:
        torch.testing.assert_close(torch.from_numpy(by_c), slope_c)


def test_the_curvature_of_shared_weights_is_that_of_a_parabola_above_the_density() -> None:
    """-log p ≤ its value at w plus slope and curvature, wherever it moves; equal at w."""
    prior = weight_prior("shared", 0.7, 0.4)
    generator = torch.Generator().manual_seed(0)
    w, c = torch.rand(1, 4, generator=generator, dtype=torch.float64), torch.ones(1).double()
    bends, crossed, common = prior.curvature(w.numpy(), c.numpy())
    assert crossed is not None
    assert common is not None
    B = torch.diag(torch.from_numpy(np.append(bends[0], common)))
    B[4, :4] = B[:4, 4] = torch.from_numpy(crossed[0])
    value = -prior.log_prob(w, c)
    by_w, by_c = prior.slope(w, c)
    assert by_c is not None
    slope = -torch.cat([by_w, by_c[:, None]], dim=-1)
    for _ in range(50):
        step = 0.3 * torch.randn(1, 5, generator=generator, dtype=torch.float64)
        moved = -prior.log_prob(w + step[:, :4], c + step[:, 4])
        above = value + (slope * step).sum(-1) + 0.5 * ((step @ B) * step).sum(-1)
        assert (moved <= above + 1e-9).all()
