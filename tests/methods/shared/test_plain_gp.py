"""A plain GP on one task against GPyTorch's exact GP of the same hyperparameters."""

from __future__ import annotations

import gpytorch
import pytest
import torch
from botorch.models import SingleTaskGP

from scaml import Task
from scaml.gp.hyperpriors import META_TASK, TEST_TASK
from scaml.gp.map_fit import FitInput, fit_gps
from scaml.gp.units import standardize
from scaml.methods.shared.plain_gp import fit_plain_gp
from tests.cases import query, task_of


def test_it_is_gpytorchs_exact_gp() -> None:
    task, X = task_of(9, 2), query(6, 2)
    model = fit_plain_gp(task, standardize(task.y), kernel="se", seed=0)
    z = (task.y - model.y_offset) / model.y_scale
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2)).double()
    kernel.base_kernel.lengthscale = model.lengthscale
    kernel.outputscale = model.outputscale
    theirs = SingleTaskGP(
        task.X,
        z.unsqueeze(-1),
        train_Yvar=model.noise.expand(9, 1),
        covar_module=kernel,
        mean_module=gpytorch.means.ZeroMean(),
        outcome_transform=None,
    ).eval()
    ours, posterior = model.posterior(X), theirs.posterior(X)
    torch.testing.assert_close(
        ours.mean, model.y_offset + model.y_scale * posterior.mean, rtol=0, atol=1e-6
    )
    torch.testing.assert_close(
        ours.variance, model.y_scale.square() * posterior.variance, rtol=0, atol=1e-6
    )


def test_without_data_it_has_the_centers_of_the_priors() -> None:
    nothing = Task.empty(d=2)
    model = fit_plain_gp(nothing, standardize(nothing.y), kernel="se", seed=0)
    assert model.lengthscale.tolist() == pytest.approx([META_TASK.lengthscale.center] * 2)
    assert not len(model.weights)


def test_the_priors_are_those_given() -> None:
    task, units = task_of(3, 2), standardize(task_of(3, 2).y)
    found = []
    for priors in (META_TASK, TEST_TASK):
        model = fit_plain_gp(task, units, kernel="se", seed=0, priors=priors)
        data = FitInput("", task.X, (task.y - units.offset) / units.scale)
        theta = fit_gps([data], kernel="se", seed=0, priors=priors).theta[0].exp()
        torch.testing.assert_close(model.lengthscale, theta[:2])
        torch.testing.assert_close(model.noise, theta[-1])
        found.append(model.lengthscale)
    assert not torch.allclose(found[0], found[1])
