"""The same work done with BoTorch alone: what scaml is compared with, in tests and benchmarks."""

from __future__ import annotations

import warnings

import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.exceptions.errors import ModelFittingError
from botorch.exceptions.warnings import InputDataWarning, OptimizationWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior, LogNormalPrior
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from scaml.gp.kernels import KernelName

# A start drawn beyond a bound lies on it, where a sigmoid transform cannot go.
_INSIDE = 1e-6


def single_task_gp(kernel: KernelName, X: Tensor, z: Tensor, theta: Tensor) -> SingleTaskGP:
    """A zero-mean GP with the hyperpriors and bounds of the paper, at θ = (log ℓ, log o, log σ²)."""
    make = RBFKernel if kernel == "se" else MaternKernel
    base = make(
        ard_num_dims=X.shape[-1],
        lengthscale_prior=GammaPrior(3.0, 6.0),
        lengthscale_constraint=Interval(1e-4, 1e2),
    )
    covariance = ScaleKernel(
        base, outputscale_prior=GammaPrior(2.0, 0.15), outputscale_constraint=Interval(1e-4, 1e2)
    )
    likelihood = GaussianLikelihood(
        noise_prior=LogNormalPrior(-8.0, 2.0), noise_constraint=Interval(1e-8, 1e-2)
    )
    model = SingleTaskGP(
        X,
        z.unsqueeze(-1),
        likelihood=likelihood,
        covar_module=covariance,
        mean_module=ZeroMean(),
        outcome_transform=None,
    )
    values = theta.exp()
    base.lengthscale = values[:-2].clamp(1e-4 * (1 + _INSIDE), 1e2 * (1 - _INSIDE))
    covariance.outputscale = values[-2].clamp(1e-4 * (1 + _INSIDE), 1e2 * (1 - _INSIDE))
    likelihood.noise = values[-1].clamp(1e-8 * (1 + _INSIDE), 1e-2 * (1 - _INSIDE))
    return model


def negative_log_posterior(model: SingleTaskGP) -> float:
    """The fitted objective per point: -(log p(y | θ) + log p(θ)) / n."""
    mll = ExactMarginalLogLikelihood(model.likelihood, model).train()
    with torch.no_grad():
        value = -float(mll(model(*model.train_inputs), model.train_targets))
    model.eval()
    return value


def fit(kernel: KernelName, X: Tensor, z: Tensor, starts: Tensor) -> tuple[SingleTaskGP, float]:
    """The best of one `fit_gpytorch_mll` from every start."""
    best: tuple[SingleTaskGP | None, float] = (None, float("inf"))
    with warnings.catch_warnings():
        for category in (OptimizationWarning, InputDataWarning, NumericalWarning):
            warnings.simplefilter("ignore", category)
        for theta in starts:
            model = single_task_gp(kernel, X, z, theta)
            try:
                fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            except ModelFittingError:  # this start was no good
                continue
            value = negative_log_posterior(model)
            if value < best[1]:
                best = (model, value)
    assert best[0] is not None
    return best[0], best[1]


def step(X: Tensor, z: Tensor, starts: Tensor, *, raw_samples: int, num_restarts: int) -> Tensor:
    """One whole step of plain GP-based BO: fit, then maximize UCB with √β = 3."""
    model, _ = fit("se", X, z, starts)
    d = X.shape[-1]
    cube = torch.stack([torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)])
    with warnings.catch_warnings():
        for category in (OptimizationWarning, NumericalWarning):
            warnings.simplefilter("ignore", category)
        point, _ = optimize_acqf(
            UpperConfidenceBound(model, beta=9.0),
            cube,
            q=1,
            num_restarts=num_restarts,
            raw_samples=raw_samples,
        )
    result: Tensor = point
    return result
