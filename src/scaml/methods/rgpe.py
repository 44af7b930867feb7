r"""RGPE, the ranking-weighted Gaussian process ensemble.

Feurer, Letham and Bakshy, 2018, arXiv 1802.02219. There is one GP per task, with the y of each task
standardized by itself. The model of the new task is the weighted sum of all GPs,

$$\mu(x) = \sum_i w_i \mu_i(x), \qquad s^2(x) = \sum_i w_i^2 s_i^2(x), \qquad i = 1, \dots, M, t,$$

in the standardized units of the test-task. The weights come from the ranking loss of joint posterior
samples f at the test inputs,

$$L(f) = \sum_{j} \sum_{k} 1[(f(x_j) < f(x_k)) \oplus (y_j < y_k)].$$

The test-task's own GP has seen all y_j. Its loss therefore uses the GPs that leave out one
observation each: $f_{-j}(x_j)$ is compared with $f_{-j}(x_k)$. $w_i$ is the share of S samples in which
model i has the smallest loss.

**The left-out GPs** keep the units and hyperparameters of the full data. With
$K = k(X, X) + \sigma^2 I$, $P = K^{-1}$, $\alpha = P z$ and
$c_j = (I - \sigma^2 P) e_j = k(X, X) P e_j$, the posterior of f at X is $N(\mu, \Sigma)$ with
$\mu = z - \sigma^2 \alpha$ and $\Sigma = \sigma^2 (I - \sigma^2 P)$. The inverse without row j is
$P - P e_j e_j^T P / P_{jj}$. Without $y_j$, the posterior therefore has

$$\mu_{-j} = \mu - c_j \alpha_j / P_{jj}, \qquad \Sigma_{-j} = \Sigma + c_j c_j^T / P_{jj}.$$

The change has rank one, so that one factorization serves all n models.

Choices:

- Samples are samples of f, without observation noise, as in the publication.
- Every meta-task has its own draws, as in the publication. Seed and rows of the task's X, sorted by y,
  decide them, so that they depend neither on the order of the tasks nor on the unit of y.
- The n left-out GPs are different models. They are sampled independently of each other and of the
  meta-tasks.
- Ties: the test-task's GP wins if it is among the best models. Otherwise the publication splits ties at
  random. Here each of k tied meta-tasks gets 1/k of the sample, which is the expectation of a random
  split and depends neither on further random numbers nor on the order of the tasks.
- Guard against dilution (`guard`): a meta-task is dropped if the median of its loss exceeds the 95th
  percentile of the test-task's loss (both interpolate linearly between samples). The shares are then
  counted among the models that are left.
- With fewer than 3 observations, all M + 1 models have the same weight.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from scaml.common.checks import check_integer, check_seed
from scaml.common.parallel import one_thread
from scaml.errors import SettingError
from scaml.gp.kernels import KernelName, check_kernel, correlation, squared_distance
from scaml.gp.linalg import cholesky
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import standardize
from scaml.methods.base import check_sqrt_beta
from scaml.methods.shared.ensemble import Ensemble
from scaml.methods.shared.modular import ModularMethod, ModularPrior
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.normalization import SeenPast
from scaml.model.scaml_gp import ScaMLGP
from scaml.tasks.task import Task

__all__ = ["RGPE", "LeftOut", "RGPEPrior", "own_loss", "rank_weights", "ranking_loss"]

_FEWEST = 3  # observations from which on models are ranked
_GUARD = 0.95  # quantile of the test-task's loss that a meta-task's median must not exceed
# This share of the signal variance is added before a factorization: the matrices are differences, whose
# rounding errors were below 4e-12 for 1 to 6 parameters, 32 to 256 points and noise down to its bound.
_ROUNDING = 1e-10
_ENTRIES = 2**18  # comparisons held at once; more no longer fit into the cache (measured)


@dataclass(frozen=True)
class RGPE(ModularMethod["RGPEPrior"]):
    """RGPE.

    Args:
        kernel: "se" or "matern52".
        samples: S, the number of posterior samples that are ranked.
        guard: Whether to drop meta-tasks that rank clearly worse than the test-task's own GP.
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    publication: ClassVar[str] = "Feurer et al., arXiv 1802.02219, 2018"
    cost: ClassVar[str] = "one exact GP per task; a step grows with M (n_t³ + S n_t²)"
    summary: ClassVar[str] = "A sum of task GPs, weighted by how often each ranks the new data best."

    kernel: KernelName = "se"
    samples: int = 256
    guard: bool = True
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        object.__setattr__(self, "samples", check_integer(self.samples, "samples", least=1))
        if not isinstance(self.guard, bool):
            raise SettingError(f"guard is {self.guard!r}; give True or False.")
        check_sqrt_beta(self.sqrt_beta)

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> RGPEPrior:
        return RGPEPrior(self, past.meta, task_gps)


@dataclass(frozen=True, eq=False)
class RGPEPrior(ModularPrior):
    """The meta-tasks' posteriors. Every new task weighs them anew."""

    method: RGPE

    def condition(self, task: Task, *, seed: int = 0) -> Ensemble:
        """Fit a GP to the task's data and weigh all GPs by how well they rank the data."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            own = fit_plain_gp(task, standardize(task.y), kernel=self.method.kernel, seed=seed)
            if task.n < _FEWEST:
                share = 1.0 / (len(self.task_gps) + 1)
                weights = torch.full((len(self.task_gps),), share, dtype=torch.float64)
                return Ensemble(self.task_gps, own, weights, share)
            losses, own_losses = self.losses(own, task, seed=seed)
            weights, own_weight = rank_weights(losses, own_losses, guard=self.method.guard)
            return Ensemble(self.task_gps, own, weights, own_weight)

    def losses(self, own: ScaMLGP, task: Task, *, seed: int) -> tuple[Tensor, Tensor]:
        """Ranking losses of S samples: `M x S` of the meta-tasks, and S of the left-out GPs."""
        generator = torch.Generator().manual_seed(seed)
        S = self.method.samples
        normal = torch.stack([_draws(past, S, task.n, seed) for past in self.meta])
        mean, covariance = self.task_gps.posterior(task.X)
        L = _factor(covariance, self.task_gps.outputscale, [f"task {name!r}" for name in self.names])
        losses = ranking_loss(mean.unsqueeze(1) + normal @ L.mT, task.y)
        left_out = LeftOut.of(own, task)
        parts = torch.empty(S).split(_rows(task.n))
        own_losses = [own_loss(left_out.sample(len(part), generator), task.y) for part in parts]
        return losses, torch.cat(own_losses)


class LeftOut(NamedTuple):
    """The n GPs that leave out one observation each: N(μ_-j, Σ + g_j g_jᵀ) at X."""

    mean: Tensor  # n x n, μ_-j in row j
    factor: Tensor  # n x n, of Σ
    gain: Tensor  # n x n, g_j = c_j / √P_jj in row j

    @classmethod
    def of(cls, own: ScaMLGP, task: Task) -> LeftOut:
        """The left-out GPs with the hyperparameters of the GP that has seen all observations."""
        a = task.X / own.lengthscale
        K = own.outputscale * correlation(own.task_gps.kernel, squared_distance(a, a))
        K.diagonal().copy_((own.outputscale + own.noise).expand(task.n))
        P = torch.cholesky_inverse(cholesky(K, "the test-task"))
        z = (task.y - own.y_offset) / own.y_scale
        alpha = P @ z
        smoother = torch.eye(task.n, dtype=torch.float64) - own.noise * P  # I - σ² P, symmetric
        gain = smoother / P.diagonal().sqrt().unsqueeze(-1)
        mean = z - own.noise * alpha - gain * (alpha / P.diagonal().sqrt()).unsqueeze(-1)
        return cls(mean, _factor(own.noise * smoother, own.outputscale, "the test-task"), gain)

    def sample(self, S: int, generator: torch.Generator) -> Tensor:
        """`S x n x n`: row j is a joint sample at X of the GP without observation j."""
        n = len(self.mean)
        normal = torch.randn(S, n, n + 1, generator=generator, dtype=torch.float64)
        return self.mean + normal[..., :n] @ self.factor.mT + normal[..., n:] * self.gain


def ranking_loss(f: Tensor, y: Tensor) -> Tensor:
    """Σ_j Σ_k 1[(f_j < f_k) xor (y_j < y_k)], `batch` integers, of samples, `batch x n`."""
    below = y.unsqueeze(-1) < y
    parts = [
        ((part.unsqueeze(-1) < part.unsqueeze(-2)) ^ below).sum((-2, -1))
        for part in f.reshape(-1, len(y)).split(_rows(len(y)))
    ]
    return torch.cat(parts).view(f.shape[:-1])


def own_loss(f: Tensor, y: Tensor) -> Tensor:
    """Σ_j Σ_k 1[(f_-j(x_j) < f_-j(x_k)) xor (y_j < y_k)], S integers, of samples, `S x n x n`."""
    left_out = f.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    return ((left_out < f) ^ (y.unsqueeze(-1) < y)).sum((-2, -1))


def rank_weights(losses: Tensor, own: Tensor, *, guard: bool) -> tuple[Tensor, float]:
    """The weights: shares of samples in which each meta-task (M), and the test-task, ranks best.

    Args:
        losses: Losses of the meta-tasks, `M x S`.
        own: Losses of the test-task's left-out GPs, S.
        guard: Whether to drop meta-tasks that rank clearly worse than the test-task's GP.
    """
    losses, own = losses.double(), own.double()
    if guard:
        dropped = losses.quantile(0.5, dim=-1) > own.quantile(_GUARD)
        losses = losses.masked_fill(dropped.unsqueeze(-1), torch.inf)
    best = losses.amin(0)
    wins = (losses == best) & (best < own)  # M x S
    share = wins.double() / wins.sum(0).clamp_min(1)
    return share.mean(-1), float((own <= best).double().mean())


def _draws(past: Task, S: int, n: int, seed: int) -> Tensor:
    """`S x n` standard normal draws of this meta-task, which do not depend on its place."""
    rows = past.inputs[past.y.argsort(stable=True)].contiguous().numpy().tobytes()
    digest = hashlib.sha256(seed.to_bytes(8, "little") + rows).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
    return torch.randn(S, n, generator=generator, dtype=torch.float64)


def _rows(n: int) -> int:
    """How many samples are compared at once; each needs n² comparisons."""
    return max(_ENTRIES // n**2, 1)


def _factor(covariance: Tensor, outputscale: Tensor, whose: str | list[str]) -> Tensor:
    """Cholesky factors of `batch x n x n` covariances that are differences, of signal variance o."""
    identity = torch.eye(covariance.shape[-1], dtype=torch.float64)
    return cholesky(covariance + _ROUNDING * outputscale[..., None, None] * identity, whose)
