r"""Hyperparameters that are integrated instead of maximized, and fits with more or fewer starts.

Laplace's approximation takes the posterior of $x = (w, c, s, \log \ell, \log o, \log \sigma^2)$ for a
normal distribution around its maximum $x^*$, with the inverse of the Hessian H of $-\log p$ as
covariance. The equal mixture of the processes of S draws has the moments

$$\mu = \frac1S \sum_i \mu_i, \qquad
k = \frac1S \sum_i k_i + \frac1S \sum_i (\mu_i - \mu)(\mu_i - \mu)^T.$$
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.common.checks import check_integer, check_seed
from scaml.common.parallel import one_thread
from scaml.errors import FitError
from scaml.gp.kernels import KernelName
from scaml.gp.map_fit import STARTS
from scaml.gp.moments_model import MomentsModel
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.methods.scaml import ScaMLPrior
from scaml.model.algorithm1 import cached
from scaml.model.fit_theta import (
    Cache,
    MapEstimate,
    hyperparameters_at,
    most_probable,
    negative_log_posterior,
)
from scaml.model.hyperparameters import ThetaPriors
from scaml.model.normalization import SeenPast
from scaml.model.scaml_gp import ScaMLGP
from scaml.model.table_cache import TableCache
from scaml.tasks.task import Task
from study.choices.former_default import FormerDefault

__all__ = ["Integrated", "IntegratedPrior", "Mixture", "Searching", "draws", "hessian"]

_STEP = 1e-4
_AT_BOUND = 1e-6
# The smallest curvature of a direction. Where neither the data nor a prior have curvature, the draws
# are no wider than the prior of a weight, or a factor of e in a scale.
_LEAST_CURVATURE = 1.0


@dataclass(frozen=True)
class Searching(FormerDefault):
    """ScaML-GP with more or fewer starts of the search for the test-task's hyperparameters.

    Args:
        starts: The number of starts.
    """

    starts: int = STARTS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self.starts, "starts", least=1)

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> ScaMLPrior:
        """A prior with this number of starts."""
        return replace(super().prior(past, task_gps), starts=self.starts)


@dataclass(frozen=True)
class Integrated(FormerDefault):
    """ScaML-GP whose test-task hyperparameters are integrated.

    Args:
        samples: The number of draws.
    """

    samples: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self.samples, "samples", least=1)

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> IntegratedPrior:
        """A prior whose models are mixtures."""
        return IntegratedPrior(**vars(super().prior(past, task_gps)))


@dataclass(frozen=True, eq=False)
class IntegratedPrior(ScaMLPrior):
    """The prior of `Integrated`."""

    method: Integrated

    def condition(self, task: Task, *, seed: int = 0) -> Mixture:
        """Mix the models of drawn hyperparameters; without data, take the most probable ones."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            scaling, priors = self.prepare(task)
            cache = cached(self.task_gps, task, scaling)
            kernel, tasks = self.task_gps.kernel, len(self.task_gps)
            found = most_probable(kernel, cache, priors, seed=seed, n_starts=self.starts)
            xs = found.x[None]
            if task.n:
                slope = _slope(kernel, cache, priors, found.sign)
                width = _widths(found.x, tasks, priors)
                xs = draws(
                    slope, found, width, self.method.samples, torch.Generator().manual_seed(seed)
                )

            def units(factor: Tensor) -> Units:
                return Units(scaling.offset, factor * scaling.scale)

            drawn = [hyperparameters_at(x, found.sign, tasks, priors) for x in xs]
            models = [ScaMLGP(self.task_gps, task, units(factor), theta) for theta, factor in drawn]
            return Mixture(models, units(hyperparameters_at(found.x, found.sign, tasks, priors)[1]))

    def on_table(self, model: Model, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """Mean and variance from the meta-tasks' posteriors at the rows, which all models share."""
        return model.on_table(self.tables, table) if isinstance(model, Mixture) else None


class Mixture(MomentsModel):
    """The process with the moments of an equal mixture of ScaML-GPs.

    Args:
        models: The mixed models.
        units: The offset and scale of y of the mixture.
    """

    def __init__(self, models: Sequence[ScaMLGP], units: Units) -> None:
        scale = torch.stack([model.y_scale for model in models]) / units.scale
        super().__init__(units, (scale.square() * torch.stack([m.noise for m in models])).mean())
        self.models = tuple(models)
        self.weights = torch.stack([model.weights for model in models]).mean(0)
        self._scale = scale
        self._shift = (torch.stack([m.y_offset for m in models]) - units.offset) / units.scale

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        found = [model.moments(X) for model in self.models]
        means = self._means([mean for mean, _ in found])
        apart = means - means.mean(0)
        covariance = self._mixed([covariance for _, covariance in found], apart, apart)
        return means.mean(0), covariance

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        here, there = (self._means([model.moments(P)[0] for model in self.models]) for P in (X, Z))
        covariances = [model.cross(X, Z) for model in self.models]
        return self._mixed(covariances, here - here.mean(0), there - there.mean(0))

    def _means(self, means: list[Tensor]) -> Tensor:
        return torch.stack(
            [b + a * mean for a, b, mean in zip(self._scale, self._shift, means, strict=True)]
        )

    def _mixed(self, covariances: list[Tensor], here: Tensor, there: Tensor) -> Tensor:
        """The mean of the covariances plus the covariance of the means."""
        pairs = zip(self._scale, covariances, strict=True)
        inside = torch.stack([a.square() * covariance for a, covariance in pairs]).mean(0)
        return inside + (here.unsqueeze(-1) * there.unsqueeze(-2)).mean(0)

    def on_table(self, cache: TableCache, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """Mean and variance, n each, at the n rows of a table, in the units of y; None if not kept."""
        found = [model.on_table(cache, table) for model in self.models]
        kept = [moments for moments in found if moments is not None]
        if len(kept) < len(found):
            return None
        means, variances = (torch.stack(part) for part in zip(*kept, strict=True))
        return means.mean(0), variances.mean(0) + means.var(0, correction=0)


def draws(
    slope: Callable[[Tensor], Tensor],
    found: MapEstimate,
    width: Tensor,
    samples: int,
    generator: torch.Generator,
) -> Tensor:
    """`samples x p` draws from Laplace's approximation inside the bounds, in pairs around its center.

    Args:
        slope: The gradient of the negative log posterior.
        found: The minimum of the negative log posterior, and the bounds. Coordinates at a bound stay
            there.
        width: p, the standard deviation of a direction without curvature.
        samples: The number of draws.
        generator: Decides the draws.
    """
    x, _, lower, upper = found
    room = torch.minimum(x - lower, upper - x)
    free = (room > _AT_BOUND).nonzero().flatten()
    # Steps stay inside the bounds, because some priors have no density outside.
    H = hessian(slope, x, free, (0.5 * room[free]).clamp_max(_STEP))
    if not H.isfinite().all():
        raise FitError(
            "The posterior of the test-task's hyperparameters has no finite curvature; look for values "
            "of X or y that are far larger than the others."
        )
    unit = width[free]
    curvature, axes = torch.linalg.eigh(unit * H * unit[:, None])
    half = torch.randn(-(-samples // 2), len(free), generator=generator, dtype=torch.float64)
    normal = torch.cat([half, -half])[:samples]
    drawn = x.repeat(samples, 1)
    drawn[:, free] += unit * ((normal * curvature.clamp_min(_LEAST_CURVATURE).rsqrt()) @ axes.mT)
    return drawn.clamp(lower, upper)


def hessian(slope: Callable[[Tensor], Tensor], x: Tensor, free: Tensor, step: Tensor) -> Tensor:
    """`k x k` second derivatives in the k free coordinates, by central differences of the gradient.

    Args:
        slope: The gradient, `batch x p` at `batch x p`.
        x: The point, p.
        free: The k free ones of the p coordinates.
        step: The k steps.
    """
    shift = torch.zeros(len(free), len(x), dtype=torch.float64)
    shift[torch.arange(len(free)), free] = step
    up, down = slope(torch.cat([x + shift, x - shift])).chunk(2)
    H = (up - down)[:, free] / (2.0 * step.unsqueeze(-1))
    return 0.5 * (H + H.mT)


def _slope(
    kernel: KernelName, cache: Cache, priors: ThetaPriors, sign: float
) -> Callable[[Tensor], Tensor]:
    def slope(x: Tensor) -> Tensor:
        signs = None if sign > 0 else torch.full((len(x),), sign, dtype=torch.float64)
        with torch.no_grad():
            return negative_log_posterior(kernel, cache, priors, x, signs)[1]

    return slope


def _widths(x: Tensor, tasks: int, priors: ThetaPriors) -> Tensor:
    """1, but 1/M for weights around a common value, the scale of their prior."""
    width = torch.ones_like(x)
    if priors.weights.learns_common:
        width[:tasks] /= tasks
    return width
