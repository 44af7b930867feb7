r"""ABLR: adaptive Bayesian linear regression (Perrone, Jenatton, Seeger, Archambeau, NeurIPS 2018).

All tasks share the features $\phi: R^d \to R^D$ of a neural network. Each task has its own Bayesian
linear regression on these features, $y_t \sim N(\Phi_t w_t, \beta_t^{-1} I)$ and
$w_t \sim N(0, \alpha_t^{-1} I)$, with y standardized. With $r = \beta / \alpha$,
$K = I + r \Phi^T \Phi = L L^T$, $e = L^{-1} \Phi^T y$ and the weights integrated out,

$$-\log p(y) = -\tfrac n2 \log \beta + \tfrac \beta 2 (\lVert y \rVert^2 - r \lVert e \rVert^2)
  + \sum_i \log L_{ii} + \tfrac n2 \log 2 \pi,$$
$$\mu(x) = r e^T L^{-1} \phi(x), \qquad \Sigma(x, x') = \alpha^{-1} \phi(x)^T K^{-1} \phi(x').$$

The network and all $(\alpha_t, \beta_t)$ minimize the sum of the tasks' $-\log p(y_t)$ by L-BFGS.

Choices:

- The network has three hidden layers of 50 tanh units. The last of them is $\phi$, so D = 50. There is
  no further linear layer (it would only repeat the weights of the regression) and no bias feature (y
  has mean 0). Coordinates enter as $2x - 1$, centred for tanh.
- $\alpha$ and $\beta$ are confined to $[10^{-4}, 10^4]$ and $[10^{-2}, 10^6]$: the likelihood of a task
  with constant values, or of one without noise, has no maximum.
- Early stopping: a task with 5 or more points holds out a tenth of them, at least one. After every 5
  iterations of L-BFGS, the mean negative log predictive density of the held-out points is computed. The
  network with the lowest one is kept. Then every $(\alpha_t, \beta_t)$ is refitted to all points of its
  task. If no task has 5 points, L-BFGS runs to its end.
- At every step, $(\alpha, \beta)$ of a new task maximize the marginal likelihood of its data, and the
  network does not change. The original retrains the network on all data at every step, which costs one
  meta-fit per step. `retrain=True` does so, from scratch. The study uses `retrain=False`.
- If the values of the new task do not vary (there may be one value or none), its likelihood has no
  maximum. $\alpha$ and $\beta$ are then the geometric means over the past tasks. Without data $\mu = 0$
  and $\Sigma(x, x') = \alpha^{-1} \phi(x)^T \phi(x')$, so that UCB would prefer points with large
  features; the publication's EI needs an observation. Here the seed decides the first point, as for a
  plain GP.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from torch import Tensor, nn

from scaml.common.checks import check_integer, check_seed
from scaml.common.parallel import effective_n_jobs, one_thread
from scaml.common.progress import StepProgress
from scaml.errors import FitError, SavedFileError, SettingError
from scaml.gp.linalg import cholesky, inverse_of_lower
from scaml.gp.minimize import minimize
from scaml.gp.moments_model import MomentsModel
from scaml.gp.units import Units
from scaml.methods.base import MetaPrior, Method, check_meta, check_sqrt_beta, check_whole
from scaml.methods.shared.network_tasks import Standardized, check_widths, settled, standardized
from scaml.methods.shared.networks import perceptron, seeded, with_state
from scaml.search.ucb import UpperConfidenceBound
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["ABLR", "ABLRModel", "ABLRPrior", "negative_log_likelihood"]

_LOG_2PI = math.log(2.0 * math.pi)
# Logarithms of α and β: their bounds, and where the training starts.
_LEAST = torch.tensor([1e-4, 1e-2], dtype=torch.float64).log()
_MOST = torch.tensor([1e4, 1e6], dtype=torch.float64).log()
_START = torch.tensor([10.0, 100.0], dtype=torch.float64).log()
_NO_UNITS = Units(torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64))
_GRID = torch.tensor([0.03, 0.3, 3.0], dtype=torch.float64).log()  # starts of a refit, around _START
_TOLERANCE = 1e-10
_SAME_BASIN = 1e-3
_EVERY = 5  # iterations of L-BFGS between two evaluations of the held-out points
_PATIENCE = 10  # evaluations without improvement after which the training ends
_MEMORY = 20  # pairs that L-BFGS remembers
_LEAST_SPLIT, _SHARE = 5, 10  # a task with at least 5 points holds out one in 10


@dataclass(frozen=True)
class ABLR(Method):
    """Bayesian linear regression on the shared features of a network.

    Args:
        widths: Units of the tanh layers; the last layer gives the features.
        iterations: Largest number of iterations of L-BFGS.
        retrain: Whether every step trains the network anew, with the test data: one meta-fit per step.
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    publication: ClassVar[str] = "Perrone et al., NeurIPS 2018"
    cost: ClassVar[str] = "one network for all tasks; a step grows with n_t, retrained with all points"
    summary: ClassVar[str] = (
        "Bayesian linear regression on features that a network learned from all tasks."
    )

    widths: tuple[int, ...] = (50, 50, 50)
    iterations: int = 500
    retrain: bool = False
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", check_widths(self.widths))
        check_integer(self.iterations, "iterations", least=1)
        if not isinstance(self.retrain, bool):
            raise SettingError(f"retrain is {self.retrain!r}; give True or False.")
        check_sqrt_beta(self.sqrt_beta)

    def meta_fit(
        self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1, progress: StepProgress | None = None
    ) -> ABLRPrior:
        """Train the network and the tasks' regressions together.

        Args:
            meta: The past tasks.
            seed: Decides the network's start and the held-out points.
            n_jobs: Checked but not used, because the tasks are trained together.
            progress: Called with the number of iterations done and of all.
        """
        check_meta(meta)
        seed = check_seed(seed)
        effective_n_jobs(n_jobs)
        check_whole(meta, "ABLR")
        with one_thread():
            data, order = settled(meta)
            network = self._train(data, seed, progress)
            alpha, beta = _refit([network(task.X) for task in data], [task.z for task in data])
        back = torch.tensor(order).argsort()
        return ABLRPrior(self, meta, network, alpha[back], beta[back])

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> ABLRPrior:
        check_whole(meta, "ABLR")
        for name in ("alpha", "beta"):
            value, shape = state.get(name), (len(meta),)
            if value is None or value.shape != shape or value.dtype != torch.float64:
                raise SavedFileError(f"its {name} is not of shape {shape} in float64")
            if not ((value > 0) & value.isfinite()).all():
                raise SavedFileError(f"its {name} is not positive and finite")
        own = {name: value for name, value in state.items() if name not in ("alpha", "beta")}
        network = with_state(_network(meta.d, self.widths, 0), own).requires_grad_(False)
        return ABLRPrior(self, meta, network, state["alpha"], state["beta"])

    def _train(
        self, data: Sequence[Standardized], seed: int, progress: StepProgress | None
    ) -> nn.Module:
        """Train the network; the one that predicts the held-out points best is kept."""
        with torch.inference_mode(False), torch.enable_grad():
            network = _network(data[0].X.shape[-1], self.widths, seed)
            training = _Training(network, data, seed)
            training.run(self.iterations, progress)
        return training.network.requires_grad_(False)


@dataclass(frozen=True, eq=False)
class ABLRPrior(MetaPrior):
    """The trained network, and the precisions α and β of the past tasks."""

    method: ABLR
    meta: MetaData
    network: nn.Module
    alpha: Tensor  # M
    beta: Tensor  # M

    def state(self) -> dict[str, Tensor]:
        return {**self.network.state_dict(), "alpha": self.alpha, "beta": self.beta}

    def condition(self, task: Task, *, seed: int = 0) -> ABLRModel:
        """Refit α and β to the task's data; with `retrain`, train the network first."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            new, units = standardized(task)
            network = self.network
            if self.method.retrain and task.n:
                past, _ = settled(self.meta)
                network = self.method._train([*past, new], seed, None)
            Phi = network(task.X)
            if new.varies:
                alpha, beta = (value[0] for value in _refit([Phi], [new.z]))
            else:
                alpha, beta = self._typical
            return ABLRModel(network, Phi, new.z, units, alpha, beta)

    def acquisition(self, model: Model) -> AcquisitionFunction:
        """UCB; without an observation, a constant function."""
        blind = isinstance(model, ABLRModel) and not model.observed
        return UpperConfidenceBound(model, sqrt_beta=0.0 if blind else self.method.sqrt_beta)

    @property
    def _typical(self) -> tuple[Tensor, Tensor]:
        """Geometric means of the precisions of tasks whose values vary."""
        data, order = settled(self.meta)
        varies = torch.tensor([task.varies for task in data])[torch.tensor(order).argsort()]
        chosen = varies if varies.any() else ~varies
        alpha, beta = (value[chosen].log().mean().exp() for value in (self.alpha, self.beta))
        return alpha, beta


class ABLRModel(MomentsModel):
    """Bayesian linear regression of the test data on the network's features.

    Args:
        network: φ, frozen.
        Phi: φ at the test data, `n x D`.
        z: The test data, standardized.
        units: Offset and scale of y.
        alpha: Precision of the weights.
        beta: Precision of the noise.
    """

    def __init__(
        self, network: nn.Module, Phi: Tensor, z: Tensor, units: Units, alpha: Tensor, beta: Tensor
    ) -> None:
        super().__init__(units, beta.reciprocal())
        self.network = network
        self.observed = len(z)
        self.alpha = alpha
        self.beta = beta
        r = beta / alpha
        identity = torch.eye(Phi.shape[-1], dtype=torch.float64)
        L = cholesky(identity + r * Phi.mT @ Phi, "the test-task")
        self._root = inverse_of_lower(L)
        e = self._root @ (Phi.mT @ z)
        self._weights = r * (self._root.mT @ e)

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        phi = self.network(X)
        u = phi @ self._root.mT
        return (phi * self._weights).sum(-1), u @ u.mT / self.alpha

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        covariance: Tensor = self._whitened(X) @ self._whitened(Z).mT / self.alpha
        return covariance

    def _whitened(self, X: Tensor) -> Tensor:
        whitened: Tensor = self.network(X) @ self._root.mT
        return whitened


def negative_log_likelihood(
    Phi: Tensor, z: Tensor, alpha: Tensor, beta: Tensor, count: Tensor
) -> Tensor:
    """-log p(y_t), one per task, by a factor of the smaller of n x n and D x D; differentiable.

    Args:
        Phi: Features, `batch x n x D`, zero in padded rows.
        z: Values, `batch x n`, zero in padded rows.
        alpha: Precisions of the weights, `batch`.
        beta: Precisions of the noise, `batch`.
        count: Numbers of rows that are not padding, `batch`.
    """
    r = (beta / alpha)[:, None, None]
    n, D = Phi.shape[-2:]
    wide = n <= D
    gram = Phi @ Phi.mT if wide else Phi.mT @ Phi
    L, info = torch.linalg.cholesky_ex(torch.eye(min(n, D), dtype=Phi.dtype) + r * gram)
    right = z.unsqueeze(-1) if wide else Phi.mT @ z.unsqueeze(-1)
    half = torch.linalg.solve_triangular(L, right, upper=False)
    quadratic = half.square().sum((-2, -1))
    if not wide:
        quadratic = z.square().sum(-1) - r[:, 0, 0] * quadratic
    half_log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    value = 0.5 * (beta * quadratic - count * beta.log() + count * _LOG_2PI) + half_log_det
    return torch.where(info == 0, value, math.nan)


class _Training:
    """L-BFGS on a network and the precisions of all tasks."""

    def __init__(self, network: nn.Module, data: Sequence[Standardized], seed: int) -> None:
        self.network = network
        self._names = [task.name for task in data]
        self._splits = [_split(task, seed) for task in data]
        self._X = _stack([seen.X for seen, _ in self._splits])
        self._z = _stack([seen.z for seen, _ in self._splits])
        self._mask = _stack([torch.ones_like(seen.z) for seen, _ in self._splits])
        start = torch.logit((_START - _LEAST) / (_MOST - _LEAST))
        self._free = nn.Parameter(start[:, None].repeat(1, len(data)))
        self._step = 0

    def run(self, iterations: int, progress: StepProgress | None) -> None:
        """Take at most so many iterations, and keep the network with the lowest held-out loss."""
        optimizer = torch.optim.LBFGS(
            [*self.network.parameters(), self._free],
            max_iter=_EVERY,
            max_eval=10 * _EVERY,
            history_size=_MEMORY,
            tolerance_grad=1e-9,
            tolerance_change=1e-12,
            line_search_fn="strong_wolfe",
        )
        lowest, kept, waited = math.inf, copy.deepcopy(self.network.state_dict()), 0
        while self._step < iterations and waited < _PATIENCE:
            optimizer.param_groups[0]["max_iter"] = min(_EVERY, iterations - self._step)
            optimizer.step(lambda: self._loss(optimizer))
            self._step += _EVERY
            loss = self._held_out_loss()  # NaN if nothing is held out
            if not loss >= lowest:
                lowest, kept, waited = loss, copy.deepcopy(self.network.state_dict()), 0
            else:
                waited += 1
            if progress:
                progress(min(self._step, iterations), iterations)
        if progress and self._step < iterations:
            progress(iterations, iterations)
        self.network.load_state_dict(kept)
        self.network.eval()

    def _precisions(self) -> tuple[Tensor, Tensor]:
        inside = self._free.sigmoid()
        alpha, beta = torch.exp(_LEAST[:, None] + (_MOST - _LEAST)[:, None] * inside)
        return alpha, beta

    def _loss(self, optimizer: torch.optim.Optimizer) -> Tensor:
        """Σ_t -log p(y_t), divided by the number of points."""
        optimizer.zero_grad()
        Phi = self.network(self._X) * self._mask.unsqueeze(-1)
        losses = negative_log_likelihood(Phi, self._z, *self._precisions(), self._mask.sum(-1))
        bad = ~losses.isfinite()
        if bad.any():
            t = int(bad.nonzero()[0])
            raise FitError(
                f"The loss of ABLR became {losses[t].item()} on task {self._names[t]!r} at step "
                f"{self._step}; look for values of y that are far larger than the others."
            )
        loss: Tensor = losses.sum() / self._mask.sum()
        loss.backward()
        return loss

    @torch.no_grad()
    def _held_out_loss(self) -> float:
        """Mean negative log density of the held-out points given the others."""
        losses = []
        for (seen, held_out), alpha, beta in zip(self._splits, *self._precisions(), strict=True):
            model = ABLRModel(self.network, self.network(seen.X), seen.z, _NO_UNITS, alpha, beta)
            mean, variance = (moment.flatten() for moment in model.moments(held_out.X.unsqueeze(-2)))
            variance = variance + model.noise
            losses.append((held_out.z - mean).square() / variance + variance.log() + _LOG_2PI)
        return 0.5 * float(torch.cat(losses).mean())


def _refit(features: Sequence[Tensor], values: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The α and β of every task that maximize its likelihood, given the network.

    Let s_i be the squared singular values of Φ, p_i the squared projections of y on the left singular
    vectors, and g_i = r s_i / (1 + r s_i). Twice the negative log likelihood is then
    -n log β + Σ log(1 + r s_i) + β (|y|² - Σ p_i g_i) + const, a problem of two variables per task.
    """
    U, S, _ = zip(*(torch.linalg.svd(Phi, full_matrices=False) for Phi in features), strict=True)
    s = _stack([part.square() for part in S])
    p = _stack([(u.mT @ z).square() for u, z in zip(U, values, strict=True)])
    count = torch.tensor([float(len(z)) for z in values], dtype=torch.float64)
    total = torch.stack([z.square().sum() for z in values])
    starts = torch.cartesian_prod(_GRID, _GRID) + _START

    def objective(x: Tensor, problem: Tensor) -> tuple[Tensor, Tensor]:
        t = problem // len(starts)
        beta, rs = x[:, 1].exp(), (x[:, 1] - x[:, 0]).exp()[:, None] * s[t]
        g = rs / (1.0 + rs)
        left = beta * (total[t] - (p[t] * g).sum(-1))
        by_ratio = (g - beta[:, None] * p[t] * g * (1.0 - g)).sum(-1)
        value = -count[t] * x[:, 1] + rs.log1p().sum(-1) + left
        return 0.5 * value, 0.5 * torch.stack([-by_ratio, by_ratio - count[t] + left], dim=-1)

    found = minimize(
        objective,
        starts.repeat(len(count), 1),
        _LEAST,
        _MOST,
        torch.arange(len(count)).repeat_interleave(len(starts)),
        same_basin=_SAME_BASIN,
        tolerance=_TOLERANCE,
    )
    alpha, beta = found.x.exp().unbind(-1)
    return alpha, beta


def _split(task: Standardized, seed: int) -> tuple[Standardized, Standardized]:
    """Seen and held-out points, which do not depend on the other tasks."""
    n = len(task.z)
    count = max(1, n // _SHARE) if n >= _LEAST_SPLIT else 0
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return task.rows(order[count:].sort().values), task.rows(order[:count])


class _Centred(nn.Module):
    """Maps the unit cube to [-1, 1]^d."""

    def forward(self, X: Tensor) -> Tensor:
        return 2.0 * X - 1.0


def _network(d: int, widths: Sequence[int], seed: int) -> nn.Sequential:
    with seeded(seed):
        return nn.Sequential(_Centred(), *perceptron(d, widths, nn.Tanh))


def _stack(parts: list[Tensor]) -> Tensor:
    """One batch of tensors of unequal length, padded with zeros at the end."""
    return nn.utils.rnn.pad_sequence(parts, batch_first=True)
