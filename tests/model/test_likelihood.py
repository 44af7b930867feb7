"""Equation 8: the likelihood of all data and its decomposition; equation 9 as the fit computes it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scaml.gp.hyperpriors import TEST_TASK
from scaml.gp.kernels import KernelName
from scaml.gp.likelihood import negative_log_likelihood
from scaml.model.fit_theta import Cache, negative_log_posterior
from scaml.model.hyperparameters import ThetaPriors
from scaml.model.lemma1 import JointGP
from scaml.model.likelihood import (
    joint_log_likelihood,
    log_likelihood_of_meta_tasks,
    log_likelihood_of_test_task,
)
from scaml.model.weight_priors import weight_prior
from tests.cases import Pair, meta_data, pair

SIZES = (6, 15, 11)
each_kernel = pytest.mark.parametrize("kernel", ["se", "matern52"])


def case_of(kernel: KernelName, level: float = 0.0) -> tuple[Pair, Tensor, Tensor]:
    case = pair(kernel, SIZES, 7, d=2, seed=4, level=level)
    return case, torch.tensor(case.joint.X_test), torch.tensor(case.joint.z_test)


@each_kernel
@pytest.mark.parametrize("level", [0.0, 0.6])
def test_both_sides_of_equation_8(kernel: KernelName, level: float) -> None:
    case, X, z = case_of(kernel, level)
    meta, gps, theta = meta_data(SIZES, 2, 4), case.task_gps, case.model.hyperparameters
    left = JointGP(meta, gps, theta, X, z).log_likelihood()
    right = joint_log_likelihood(meta, gps, theta, X, z)
    assert right.item() == pytest.approx(left.item(), abs=1e-8)
    assert left.item() == pytest.approx(case.joint.log_likelihood(), abs=1e-8)


@each_kernel
def test_the_batched_likelihood_of_the_meta_tasks_is_the_second_term(kernel: KernelName) -> None:
    """`gp.likelihood`, which the meta-fit maximizes."""
    case, _, _ = case_of(kernel)
    gps, meta = case.task_gps, meta_data(SIZES, 2, 4)
    expected = log_likelihood_of_meta_tasks(meta, gps)
    theta = torch.cat([gps.lengthscale, gps.outputscale[:, None], gps.noise[:, None]], dim=-1).log()
    for m, task in enumerate(meta):
        z = (task.y - gps.y_mean[m]) / gps.y_std[m]
        ours = -negative_log_likelihood(kernel, theta[m : m + 1], task.X[None], z[None]).value
        assert ours.item() == pytest.approx(expected[m].item(), abs=1e-8)


@each_kernel
@pytest.mark.parametrize("level", [0.0, 0.6])
def test_the_fit_of_theta_maximizes_the_first_term(kernel: KernelName, level: float) -> None:
    """`fit_theta.negative_log_posterior` without its priors, in the paper's coordinates."""
    case, X, z = case_of(kernel, level)
    theta, priors = case.model.hyperparameters, ThetaPriors(weight_prior("positive"), level=level)
    mean, covariance = case.task_gps.posterior(X)
    kernel_part = torch.cat([theta.lengthscale, theta.outputscale[None], theta.noise[None]]).log()
    x = torch.cat([theta.weights, kernel_part])[None]
    value, _ = negative_log_posterior(kernel, Cache.of(X, z, mean, covariance), priors, x)
    log_prior = priors.weights.log_prob(theta.weights[None], None) + TEST_TASK.log_prob(
        kernel_part[None]
    )
    expected = log_likelihood_of_test_task(case.task_gps, theta, X, z)
    assert -(value + log_prior).item() == pytest.approx(expected.item(), abs=1e-8)
