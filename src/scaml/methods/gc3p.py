r"""GC3P (Salinas, Shen and Perrone, ICML 2020): a Gaussian copula process with a parametric prior.

The y of every task is replaced by $z = \Phi^{-1}(F(y))$ (`scaml.gp.gaussian_copula`), so that tasks
with different levels and units share one scale. On this scale,

1. a network learns $(\mu(x), \sigma(x))$ from all past (x, z) by minimizing the mean of
   $\tfrac12 ((z - \mu)/\sigma)^2 + \log \sigma + \tfrac12 \log 2\pi$: three hidden layers of 50 ReLU
   units with dropout of 0.1, Adam at 0.01 in batches of 64, 3 × 1000 updates with the rate divided by
   5 after each 1000, a tenth of the points held out;
2. a Matérn-5/2 ARD GP learns $r = (z - \mu(x)) / \sigma(x)$ on the new task's data, whose F is computed
   anew at every step;
3. if r has the posterior mean $m_r$ and covariance $k_r$, the posterior of z has the mean
   $\mu(x) + \sigma(x) m_r(x)$ and the covariance $\sigma(x) \sigma(x') k_r(x, x')$.

**The model's posterior is that of z, not of y.** z grows with y, so that the best point is the same.
But means, deviations, and the observations given to `condition_on_observations` are on the scale of the
copula (about -2 to 2), whose relation to y changes with every observation.

Choices:

- The publication minimizes, scaml maximizes: z keeps the order of y.
- The deviation is the softplus of the network's second output, plus 0.01. The floor is ours: without
  it, residuals become arbitrarily large where the network has overfitted a few points.
- r is not standardized again. μ and σ have already given it mean 0 and variance 1. To standardize its
  few values would discard what the network predicts about their level.
- Without observations r has variance 1, so that the prior of z is N(μ, σ²), as the network was trained.
  The default outputscale of the priors would make it several times as wide. With observations, the
  outputscale is fitted under the priors of all GPs of the paper (appendix C).
- "10 % for validation" means early stopping: the held-out loss is computed every 50 updates, the
  parameters with the lowest one are kept, and 1000 updates without improvement, one whole stage, end
  the training. With fewer than 10 points, none is held out.
- The publication draws its first 5 points by Thompson sampling from the prior. The paper compares all
  methods without initial samples, and so does this implementation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.posteriors import Posterior
from torch import Tensor, nn

from scaml.common.checks import check_integer, check_seed
from scaml.common.parallel import effective_n_jobs, one_thread
from scaml.common.progress import StepProgress
from scaml.errors import SettingError
from scaml.gp.gaussian_copula import gaussian_copula
from scaml.gp.hyperpriors import META_TASK
from scaml.gp.kernels import KernelName, check_kernel
from scaml.gp.moments_model import MomentsModel
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.methods.base import MetaPrior, Method, check_meta, check_sqrt_beta, check_whole
from scaml.methods.shared.network_tasks import check_widths
from scaml.methods.shared.networks import (
    EarlyStopping,
    descend,
    perceptron,
    seeded,
    settled_order,
    with_state,
)
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.scaml_gp import ScaMLGP
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["GC3P", "CopulaProcess", "GC3PPrior", "PriorNetwork", "gaussian_loss"]

_STAGES, _SLOWER = 3, 5.0  # the rate is divided by this after every stage
_LEAST_DEVIATION = 0.01
_LOOK = 50  # updates between two evaluations of the held-out loss
_UNITS = Units(torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64))


@dataclass(frozen=True)
class GC3P(Method):
    """A Gaussian copula process with a parametric prior; its posterior is that of z, not of y.

    Args:
        kernel: Kernel of the GP of the residuals: "matern52", as in the publication, or "se".
        widths: Hidden layers of the prior network.
        dropout: Share of hidden units dropped in training.
        rate: Learning rate of the first of the three stages.
        batch: Points per update.
        updates: Updates per stage.
        validation: Share of the points held out for early stopping; 0 for none.
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    publication: ClassVar[str] = "Salinas, Shen and Perrone, ICML 2020"
    cost: ClassVar[str] = "one small network on all past points; a step grows with n_t³"
    summary: ClassVar[str] = "A network's mean and deviation of the ranks plus a GP of the residuals."

    kernel: KernelName = "matern52"
    widths: Sequence[int] = (50, 50, 50)
    dropout: float = 0.1
    rate: float = 0.01
    batch: int = 64
    updates: int = 1000
    validation: float = 0.1
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        check_sqrt_beta(self.sqrt_beta)
        object.__setattr__(self, "widths", check_widths(self.widths))  # a file gives a list
        for name in ("dropout", "validation"):
            share = getattr(self, name)
            if not (isinstance(share, int | float) and 0 <= share < 1):
                raise SettingError(f"{name} is {share!r}; give a number from 0 to less than 1.")
        if not (isinstance(self.rate, int | float) and 0 < self.rate < math.inf):
            raise SettingError(f"rate is {self.rate!r}; give a number above 0.")
        object.__setattr__(self, "batch", check_integer(self.batch, "batch", least=1))
        object.__setattr__(self, "updates", check_integer(self.updates, "updates", least=1))

    def meta_fit(
        self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1, progress: StepProgress | None = None
    ) -> GC3PPrior:
        """Train the prior network on all past points.

        Args:
            meta: The past tasks.
            seed: Decides the network's start, the held-out points, the batches and the dropout.
            n_jobs: Checked but not used, because there is one network.
            progress: Called with the number of updates done and of all.
        """
        check_meta(meta)
        seed = check_seed(seed)
        effective_n_jobs(n_jobs)
        check_whole(meta, "GC3P")
        with one_thread(), torch.inference_mode(False), torch.enable_grad():
            return GC3PPrior(self, meta, _train(self, meta, seed, progress))

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> GC3PPrior:
        check_whole(meta, "GC3P")
        with seeded(0):  # the start is overwritten
            network = PriorNetwork(meta.d, tuple(self.widths), self.dropout)
        with_state(network, state)
        return GC3PPrior(self, meta, network.requires_grad_(False))


class PriorNetwork(nn.Module):
    """x ↦ (μ(x), σ(x)) on the scale of the copula.

    Args:
        d: Number of parameters.
        widths: Hidden layers.
        dropout: Share of hidden units dropped in training.
    """

    def __init__(self, d: int, widths: tuple[int, ...], dropout: float) -> None:
        super().__init__()
        self.body = perceptron(d, widths, nn.ReLU, dropout=dropout)
        self.head = nn.Linear(widths[-1], 2, dtype=torch.float64)

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """μ and σ, each `batch x q`, at `batch x q x d`."""
        mean, raw = self.head(self.body(X)).unbind(-1)
        return mean, nn.functional.softplus(raw) + _LEAST_DEVIATION


def gaussian_loss(network: PriorNetwork, X: Tensor, z: Tensor) -> Tensor:
    """Mean of -log N(z; μ(x), σ(x)²) over n points, `n x d` and n."""
    mean, deviation = network(X)
    loss: Tensor = (0.5 * ((z - mean) / deviation).square() + deviation.log()).mean()
    return loss + 0.5 * math.log(2.0 * math.pi)


def _train(method: GC3P, meta: MetaData, seed: int, progress: StepProgress | None) -> PriorNetwork:
    """Train the prior network."""
    by_rank = MetaData(
        [Task(t.X, gaussian_copula(t.y), name=name) for t, name in zip(meta, meta.names, strict=True)]
    )
    order = settled_order(by_rank)  # of the ranks: the units of y must not decide the order
    X = torch.cat([by_rank[m].X for m in order])
    z = torch.cat([by_rank[m].y for m in order])
    generator = torch.Generator().manual_seed(seed)
    points = torch.randperm(len(z), generator=generator)
    held, kept = points.tensor_split([int(method.validation * len(z))])

    def loss(step: int) -> tuple[Tensor, str]:
        chosen = kept[torch.randperm(len(kept), generator=generator)[: method.batch]]
        return gaussian_loss(network, X[chosen], z[chosen]), "all tasks together"

    with seeded(seed):
        network = PriorNetwork(meta.d, tuple(method.widths), method.dropout)
        stopping = EarlyStopping(
            lambda: float(gaussian_loss(network, X[held], z[held])),
            every=_LOOK,
            patience=max(1, method.updates // _LOOK),
        )
        descend(
            loss,
            network,
            steps=_STAGES * method.updates,
            rate=lambda step: method.rate / _SLOWER ** (step // method.updates),
            what="the prior network of GC3P",
            stopping=stopping if len(held) else None,
            progress=progress,
        )
    return network.requires_grad_(False)


@dataclass(frozen=True, eq=False)
class GC3PPrior(MetaPrior):
    """The trained prior network. Every new task adds a GP of its residuals."""

    method: GC3P
    meta: MetaData
    network: PriorNetwork

    def state(self) -> dict[str, Tensor]:
        return {name: tensor.clone() for name, tensor in self.network.state_dict().items()}

    def condition(self, task: Task, *, seed: int = 0) -> CopulaProcess:
        """Fit the GP of the residuals to the task's ranks; without observations, use the network alone.

        Returns:
            A model of z, the task's Gaussian copula, not of y.
        """
        self.check_task(task)
        seed = check_seed(seed)
        kernel = self.method.kernel
        with one_thread():
            if not task.n:
                return CopulaProcess(self.network, _unit_gp(self.d, kernel))
            with torch.no_grad():
                mean, deviation = self.network(task.X)
            r = (gaussian_copula(task.y) - mean) / deviation
            residuals = Task(task.X, r, name=task.name)
            return CopulaProcess(
                self.network, fit_plain_gp(residuals, _UNITS, kernel=kernel, seed=seed)
            )


class CopulaProcess(MomentsModel):
    """z = μ(x) + σ(x) r(x), where r is a GP. All values that go in or out are values of z, not of y.

    Noise of variance ν in r is noise of variance ν σ(x)² in z. Posteriors with observation noise, and
    further observations, have this noise. `likelihood` does not know x and has the noise of σ = 1.

    Args:
        network: μ and σ.
        residual: r given the data, in its own units.
    """

    predicts_y = False  # but its normal score

    def __init__(self, network: PriorNetwork, residual: ScaMLGP) -> None:
        super().__init__(_UNITS, residual.noise)
        self.network = network
        self.residual = residual

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        mean, deviation = self.network(X)
        m, k = self.residual.moments(X)
        return mean + deviation * m, deviation.unsqueeze(-1) * k * deviation.unsqueeze(-2)

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        (_, s), (_, t) = self.network(X), self.network(Z)
        covariance: Tensor = s.unsqueeze(-1) * self.residual.cross(X, Z) * t.unsqueeze(-2)
        return covariance

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The joint posterior of z at X, `batch x q x d`; see `MomentsModel.posterior`."""
        if observation_noise is True:
            observation_noise = self._noise_at(X.double()).unsqueeze(-1)
        return super().posterior(X, output_indices, observation_noise, posterior_transform)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any
    ) -> CopulaProcess:
        """This model after further values of z (not of y); μ, σ and r's hyperparameters do not change.

        Args:
            X: `batch x n x d`.
            Y: z, `batch' x n x 1`, where batch' ends in batch.
            noise: Noise variances of z; None for the model's own noise.
            **kwargs: Ignored; BoTorch's signature has them.
        """
        X = X.double()
        mean, deviation = (part.unsqueeze(-1) for part in self.network(X))
        r_noise = None if noise is None else noise / deviation.square()
        residual = self.residual.condition_on_observations(X, (Y - mean) / deviation, noise=r_noise)
        return CopulaProcess(self.network, residual)

    @property
    def batch_shape(self) -> torch.Size:
        """The batch of fantasies; empty for a fitted model."""
        return self.residual.batch_shape

    def _noise_at(self, X: Tensor) -> Tensor:
        _, deviation = self.network(X)
        noise: Tensor = self.noise * deviation.square()
        return noise


def _unit_gp(d: int, kernel: KernelName) -> ScaMLGP:
    """r without observations: lengthscales and noise of the default start of a fit, and variance 1."""
    one = torch.ones((), dtype=torch.float64)
    theta = Hyperparameters(
        weights=one.new_empty(0),
        lengthscale=META_TASK.lengthscale.center * one.expand(d),
        outputscale=one,
        noise=META_TASK.noise.center * one,
    )
    return ScaMLGP(TaskGPs.none(d, kernel=kernel), Task.empty(d=d), _UNITS, theta)
