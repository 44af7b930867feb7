r"""Acquisition functions other than UCB with a constant β.

"thompson" maximizes one path of the posterior. The prior paths $g_m$ and $g_t$ are made of random
Fourier features (Rahimi and Recht, 2007). Matheron's rule, first for every meta-task and then for the
test-task, subtracts the paths from the data:

$$f(x) = g(x) + E[f_t(x) \mid z_m - g_m(X_m) - \epsilon_m,\; z_t - g(X_t) - \epsilon_t], \qquad
g = \sum_m w_m g_m + g_t + b,$$

where b is one draw of the level. The expectation is the posterior mean of a ScaML-GP with other data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from botorch.acquisition import AcquisitionFunction, LogExpectedImprovement
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.models.model import Model
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.moments_model import MomentsModel
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.methods.base import AcquisitionName
from scaml.methods.scaml import ScaMLPrior
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.normalization import SeenPast
from scaml.model.scaml_gp import ScaMLGP
from scaml.search.ucb import UpperConfidenceBound
from scaml.tasks.task import Task
from study.choices.former_default import FormerDefault

__all__ = ["Acquiring", "AcquiringPrior", "FirstName", "Path", "RuleName", "Standardized"]

RuleName = Literal["ucb", "schedule", "logei", "lognei", "thompson"]
FirstName = Literal["ucb", "mean"]

_SAMPLES = 32  # draws of noisy expected improvement
_FREQUENCIES = 256  # each with a sine and a cosine
_MATERN_FREEDOM = 5  # the spectral density of Matérn-5/2 is a Student-t of 2ν degrees
# Added to standardized variances: the posterior covariance of almost known points is singular.
_JITTER = 1e-8
_SEEDS = 2**31


@dataclass(frozen=True)
class Acquiring(FormerDefault):
    """ScaML-GP with another acquisition function.

    Args:
        acquisition: Only "ucb": `rule` takes its place.
        rule: "ucb" with the method's √β; "schedule", UCB with β = 0.2 d log(2 (n_t + 1))
            (Kandasamy et al., 2015); "logei", expected improvement over the best posterior mean at the
            data; "lognei", expected improvement over the unknown best value at the data; "thompson".
        first: What is maximized while there are no data: "mean", the prior mean; or "ucb", the
            acquisition function above, or UCB if that one needs data.
    """

    acquisition: AcquisitionName = "ucb"
    rule: RuleName = "ucb"
    first: FirstName = "ucb"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.acquisition != "ucb":
            raise SettingError(f"acquisition is {self.acquisition!r}; choose 'ucb', and set rule.")
        if self.rule not in get_args(RuleName):
            names = ", ".join(map(repr, get_args(RuleName)))
            raise SettingError(f"rule is {self.rule!r}; choose one of {names}.")
        if self.first not in get_args(FirstName):
            raise SettingError(f"first is {self.first!r}; choose 'ucb' or 'mean'.")

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> AcquiringPrior:
        """A prior that makes the acquisition function of this method."""
        return AcquiringPrior(**vars(super().prior(past, task_gps)))


@dataclass(frozen=True, eq=False)
class AcquiringPrior(ScaMLPrior):
    """The prior of `Acquiring`."""

    method: Acquiring

    def acquisition(self, model: Model) -> AcquisitionFunction:
        """The acquisition function; torch's generator, which `suggest` seeds, decides its draws."""
        assert isinstance(model, ScaMLGP)
        (X,), name = model.train_inputs, self.method.rule
        n, d = X.shape[-2:]
        if n == 0 and self.method.first == "mean":
            return UpperConfidenceBound(model, sqrt_beta=0.0)
        if name == "schedule":
            return UpperConfidenceBound(model, sqrt_beta=math.sqrt(0.2 * d * math.log(2.0 * (n + 1))))
        if name == "thompson":
            return Path(model, seed=_drawn_seed())
        if name == "ucb" or n == 0:
            return super().acquisition(model)
        if name == "logei":
            best = model.moments(X)[0].max()
            return LogExpectedImprovement(Standardized(model), best_f=best)
        sampler = SobolQMCNormalSampler(torch.Size([_SAMPLES]), seed=_drawn_seed())
        return qLogNoisyExpectedImprovement(
            Standardized(model), X_baseline=X, sampler=sampler, prune_baseline=False
        )


def _drawn_seed() -> int:
    return int(torch.randint(_SEEDS, ()))


class Standardized(MomentsModel):
    """A ScaML-GP in standardized units, because tolerances in BoTorch are absolute.

    Noisy expected improvement asks for the moments of X_t and further points together. The part of X_t
    alone is computed once, not again for every batch of points.

    Args:
        model: The model with units.
    """

    def __init__(self, model: ScaMLGP) -> None:
        one = torch.ones((), dtype=torch.float64)
        super().__init__(Units(0.0 * one, one), model.noise)
        self.model = model
        (self._X,) = model.train_inputs
        self._known = model.moments(self._X)

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        n = len(self._X)
        if X.shape[-2] < n or not (X[..., :n, :] == self._X).all():
            return self.model.moments(X)
        mean, covariance = (t.expand(*X.shape[:-2], *t.shape) for t in self._known)
        if X.shape[-2] > n:
            new = X[..., n:, :]
            new_mean, new_covariance = self.model.moments(new)
            cross = self.model.cross(new, self._X)
            mean = torch.cat([mean, new_mean], dim=-1)
            upper = torch.cat([covariance, cross.mT], dim=-1)
            covariance = torch.cat([upper, torch.cat([cross, new_covariance], dim=-1)], dim=-2)
        return mean, covariance + _JITTER * torch.eye(X.shape[-2], dtype=X.dtype)

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        return self.model.cross(X, Z)


class Path(AcquisitionFunction):
    """One path of the posterior, in the units of y; exact up to the random features of the prior.

    Args:
        model: The model, without a batch dimension.
        seed: Decides the path.
    """

    def __init__(self, model: ScaMLGP, *, seed: int) -> None:
        super().__init__(model)
        generator = torch.Generator().manual_seed(seed)

        def noise(variance: Tensor, *shape: int) -> Tensor:
            return variance.sqrt() * torch.randn(shape, generator=generator, dtype=torch.float64)

        active, theta = model.weights.nonzero().flatten(), model.hyperparameters
        w, tasks = model.weights[active], model.task_gps.subset(active.tolist())
        frequency, amplitude = _prior_paths(tasks, theta, generator)
        own = _waves(tasks.X @ frequency[:-1].mT, amplitude[:, :-1, None])  # g_m(X_m), M x N
        own = (own + noise(tasks.noise[:, None], *own.shape)) / tasks.outputscale[:, None]
        explained = (tasks.whitener @ own.unsqueeze(-1)).squeeze(-1)
        self._frequency = frequency[..., : tasks.d].flatten(0, 1)
        self._amplitude = (torch.cat([w, w.new_ones(1)])[:, None] * amplitude).flatten(1)
        self._level = noise(theta.level)
        (X,) = model.train_inputs
        z = (model.train_targets - model.y_offset) / model.y_scale
        one = torch.ones((), dtype=torch.float64)
        self._rest = ScaMLGP(
            replace(tasks, targets=tasks.targets - explained),
            Task(X, z - self._prior(X) - noise(theta.noise, len(X))),
            Units(0.0 * one, one),
            replace(theta, weights=w),
        )

    def _prior(self, X: Tensor) -> Tensor:
        """g, `batch`, at `batch x d`."""
        return self._level + _waves(X @ self._frequency.mT, self._amplitude)

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """The values of the path, `batch`, at `batch x 1 x d`."""
        rest, _ = self._rest.marginal(X)
        value: Tensor = self.model.y_offset + self.model.y_scale * (self._prior(X) + rest).squeeze(-1)
        return value


def _prior_paths(
    tasks: TaskGPs, theta: Hyperparameters, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Frequencies, `K x F x D`, and amplitudes, `2 x K x F`, of prior paths: tasks first, k_t last."""
    D = tasks.X.shape[-1]
    of_columns = torch.nn.functional.pad(theta.lengthscale.reciprocal(), (0, D - tasks.d))
    inverse = torch.cat([tasks.lengthscale.reciprocal(), of_columns[None]])
    variance = torch.cat([tasks.outputscale, theta.outputscale.reshape(1)])

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    shape = len(variance), _FREQUENCIES
    frequency = normal(*shape, D)
    if tasks.kernel == "matern52":
        frequency = frequency / normal(*shape, _MATERN_FREEDOM).square().mean(-1, keepdim=True).sqrt()
    amplitude = (variance / _FREQUENCIES).sqrt()[:, None] * normal(2, *shape)
    return frequency * inverse[:, None], amplitude


def _waves(phase: Tensor, amplitude: Tensor) -> Tensor:
    """Cosines and sines with the given amplitudes, summed over the last dimension."""
    return (phase.cos() * amplitude[0] + phase.sin() * amplitude[1]).sum(-1)
