"""Posteriors in the units of y: moments, noise, transforms, and variances of any size."""

from __future__ import annotations

import warnings

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.posterior import (
    LEAST_VARIANCE,
    ScaMLPosterior,
    check_outputs,
    likelihood_of,
    posterior_of,
)
from scaml.gp.units import Units
from tests.cases import query

NOISE = torch.tensor(0.25, dtype=torch.float64)


def units(scale: float = 3.0) -> Units:
    return Units(torch.tensor(7.0, dtype=torch.float64), torch.tensor(scale, dtype=torch.float64))


def moments(*batch: int, q: int = 3) -> tuple[Tensor, Tensor]:
    """A mean and a positive definite covariance."""
    A = query(*batch, q, q)
    return query(*batch, q), A @ A.mT + 0.1 * torch.eye(q, dtype=torch.float64)


@pytest.mark.parametrize("batch", [(), (2,), (4, 2)])
def test_moments_are_brought_to_the_units_of_y(batch: tuple[int, ...]) -> None:
    mean, covariance = moments(*batch)
    posterior = posterior_of((mean, covariance), units(), NOISE, X=query(*batch, 3, 2))
    assert posterior.mean.shape == posterior.variance.shape == (*batch, 3, 1)
    torch.testing.assert_close(posterior.mean.squeeze(-1), 7.0 + 3.0 * mean)
    torch.testing.assert_close(posterior.distribution.covariance_matrix, 9.0 * covariance)
    diagonal = covariance.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(posterior.variance.squeeze(-1), 9.0 * diagonal)


def test_a_covariance_is_shared_by_all_means_of_a_batch() -> None:
    mean, (_, covariance) = query(4, 3), moments()
    posterior = posterior_of((mean, covariance), units(), NOISE, X=query(4, 3, 2))
    torch.testing.assert_close(
        posterior.distribution.covariance_matrix, (9.0 * covariance).expand(4, 3, 3)
    )


def test_observation_noise_is_that_of_the_model_or_the_given_one() -> None:
    mean, covariance = moments(2)
    given = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64).view(1, 3, 1)
    X = query(2, 3, 2)

    def matrix(noise: bool | Tensor) -> Tensor:
        posterior = posterior_of((mean, covariance), units(), NOISE, X=X, observation_noise=noise)
        torch.testing.assert_close(posterior.mean.squeeze(-1), 7.0 + 3.0 * mean)
        found: Tensor = posterior.distribution.covariance_matrix
        return found

    identity = torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(matrix(False), 9.0 * covariance)
    # The model's noise is standardized, a given one is in the units of y².
    torch.testing.assert_close(matrix(True), 9.0 * covariance + 9.0 * 0.25 * identity)
    torch.testing.assert_close(matrix(given), 9.0 * covariance + torch.diag(given.flatten()))


def test_the_transform_comes_last() -> None:
    mean, covariance = moments(2)
    transform = ScalarizedPosteriorTransform(torch.tensor([-2.0], dtype=torch.float64), offset=1.0)
    posterior = posterior_of(
        (mean, covariance),
        units(),
        NOISE,
        X=query(2, 3, 2),
        observation_noise=True,
        posterior_transform=transform,
    )
    torch.testing.assert_close(posterior.mean.squeeze(-1), 1.0 - 2.0 * (7.0 + 3.0 * mean))
    variance = 9.0 * (covariance.diagonal(dim1=-2, dim2=-1) + 0.25)
    torch.testing.assert_close(posterior.variance.squeeze(-1), 4.0 * variance)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_variance_is_exact_in_any_unit(scale: float) -> None:
    """GPyTorch would raise small variances to 1e-10, with a warning."""
    covariance = torch.diag(torch.tensor([LEAST_VARIANCE, 1e-3, 1.0], dtype=torch.float64))
    mean = torch.zeros(3, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = posterior_of((mean, covariance), units(scale), NOISE, X=query(3, 2))
        variance = posterior.variance.flatten()
    assert isinstance(posterior, ScaMLPosterior)
    torch.testing.assert_close(variance / scale**2, covariance.diagonal(), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("variance", [1e-18, 0.5, 1e12])
def test_the_likelihood_has_the_given_noise_and_learns_nothing(variance: float) -> None:
    likelihood = likelihood_of(torch.tensor(variance, dtype=torch.float64))
    assert likelihood.noise.dtype == torch.float64
    assert likelihood.noise.item() == pytest.approx(variance, rel=1e-6)
    assert not likelihood.training
    assert not any(parameter.requires_grad for parameter in likelihood.parameters())


@pytest.mark.parametrize("indices", [None, [], [0], [-1], [0, 0]])
def test_the_only_output_may_be_asked_for(indices: list[int] | None) -> None:
    check_outputs(indices)


@pytest.mark.parametrize("indices", [[1], [0, 1], [-2]])
def test_other_outputs_are_refused(indices: list[int]) -> None:
    with pytest.raises(SettingError, match=r"but the model has one output; ask for \[0\]\.$") as caught:
        check_outputs(indices)
    assert str(indices) in str(caught.value)
