r"""RM-GP-UCB (Dai et al., "On Provably Robust Meta-Bayesian Optimization", UAI 2022).

There is one GP per past task and one of the new task. The GPs are separate; the acquisition function
is a weighted sum of their upper confidence bounds,

$$\nu_t \sum_m \omega_{t,m} [\mu_m(x) + \tau s_m(x)] + (1 - \nu_t) [\mu(x) + \sqrt\beta s(x)].$$

A past task counts less, the further it can be from the new one. With the new task's GP after s
observations and the points (x, y) of past task m, the function gap is at most about

$$\bar d_{s,m} = \operatorname{mean}_{(x, y) \in D_m} \max(|\mu_s(x) + \sqrt\beta s_s(x) - y|,
|\mu_s(x) - \sqrt\beta s_s(x) - y|),$$
$$\omega_{s,m} \propto \exp(-\eta \sum_{s' \le s} \bar d_{s',m}), \qquad
\nu_s = \nu_{s-1} \min(r, (\sum_m \omega_{s,m} \bar d_{s,m})^{-\epsilon}), \qquad \nu_0 = 1.$$

Choices:

- The paper's appendix: √β = τ = 3 at every step; gaps are "divided by the mean of the standard
  deviations across all meta-tasks". Gaps are therefore computed in the units of y, to which the new
  task's predictions are mapped back, so that a task with another level or scale is far away. After the
  division, they have no unit. The bounds in the acquisition function are those of standardized y, each
  GP's own (appendix C.1).
- η = 1 and ε = r = 0.7 are the values of the published runs, which also take the mean over a task's
  points. The theory takes the maximum, plus the largest noise of N_m values with probability 1 - δ,
  `gap="maximum"`: $\sigma_m \sqrt{2 \log(2 N_m / \delta)}$, where σ_m² is the noise of task m's GP and
  δ = 0.05.
- If the observations are all equal (there may be only one), their deviation is 0. The mean deviation of
  the past tasks is then the scale, so that a shift of all y changes nothing.
- ω and ν are computed anew from the GPs after 1, 2, ..., n observations; the prior keeps the fitted
  ones. A fixed seed draws the starts of the fits, so that one fit serves every later step.
- If a past task lacks parameters of the space, it is compared at the centre of these parameters.
- No data: ν = 1, ω uniform. Pending points change s alone, neither ω nor ν.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from scaml.common.checks import check_seed
from scaml.common.parallel import one_thread
from scaml.errors import SettingError
from scaml.gp.kernels import KernelName, check_kernel, correlation, left_factor, squared_distance
from scaml.gp.linalg import cholesky
from scaml.gp.map_fit import FitInput, fit_gps
from scaml.gp.moments_model import MomentsModel
from scaml.gp.posterior import LEAST_VARIANCE
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units, standardize
from scaml.methods.base import check_sqrt_beta
from scaml.methods.shared.modular import ModularMethod, ModularPrior
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.normalization import Levels, SeenPast
from scaml.model.scaml_gp import ScaMLGP
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["RMGP", "RMGPUCB", "RMGPUCBPrior", "RobustUpperConfidenceBound"]

GapName = Literal["mean", "maximum"]

_CENTRE = 0.5
_SEED = 0  # for every fit to the new task's data
_MOST_STEPS = 4096  # how many a prior keeps
_POINTS_AT_ONCE = 4096
# Entries of the tensors from which the past's bounds are computed; larger ones exceed the cache.
_CACHED_ENTRIES = 2**18
# Bounds are below 100: with a smaller factor, a bound does not change the last bit of the sum.
_NEGLIGIBLE = 1e-20
_SMALLEST, _LARGEST = sys.float_info.min, sys.float_info.max


@dataclass(frozen=True)
class RMGPUCB(ModularMethod["RMGPUCBPrior"]):
    """RM-GP-UCB.

    Args:
        kernel: "se" or "matern52".
        eta: η, how fast ω moves to the tasks with small gaps.
        epsilon: ε, how fast ν falls with the gaps.
        r: The largest factor by which ν is multiplied at a step.
        tau: τ of the past tasks' upper confidence bounds.
        gap: "mean" over a task's points, or "maximum", as in the theory.
        delta: δ, the probability that the noise exceeds its part of the "maximum".
        sqrt_beta: √β of the new task's upper confidence bound.
    """

    publication: ClassVar[str] = "Dai et al., UAI 2022"
    cost: ClassVar[str] = "one exact GP per task; a step grows with M N² + n_t³"
    summary: ClassVar[str] = "A weighted sum of all tasks' upper confidence bounds; the past fades."

    kernel: KernelName = "se"
    eta: float = 1.0
    epsilon: float = 0.7
    r: float = 0.7
    tau: float = 3.0
    gap: GapName = "mean"
    delta: float = 0.05
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        for name in ("eta", "epsilon", "tau"):
            _check_between(name, getattr(self, name), low=0.0, high=_LARGEST, give="of at least 0")
        _check_between("r", self.r, low=0.0, high=1.0, give="from 0 to 1")
        _check_between("delta", self.delta, low=_SMALLEST, high=1.0, give="above 0 and at most 1")
        if self.gap not in get_args(GapName):
            raise SettingError(f"gap is {self.gap!r}; choose 'mean' or 'maximum'.")
        check_sqrt_beta(self.sqrt_beta)

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> RMGPUCBPrior:
        return RMGPUCBPrior(self, past.meta, task_gps, _Past.of(past.meta, task_gps))


class _Past(NamedTuple):
    """What the gaps need to know of the past."""

    X: Tensor  # (Σ N_m) x d
    y: Tensor  # Σ N_m
    sizes: list[int]
    spread: Tensor  # mean deviation of the tasks
    noise: Tensor  # M, deviations of the noise, in the units of y

    @classmethod
    def of(cls, meta: MetaData, task_gps: TaskGPs) -> _Past:
        spread = Levels.of([task.y for task in meta]).deviation.mean()
        return cls(
            X=torch.cat([torch.where(task.known, task.X, _CENTRE) for task in meta]),
            y=torch.cat([task.y for task in meta]),
            sizes=[task.n for task in meta],
            # If all tasks are constant, use the scale by which they were standardized.
            spread=spread if spread > 0 else task_gps.y_std.mean(),
            noise=task_gps.noise.sqrt() * task_gps.y_std,
        )


class _Step(NamedTuple):
    """The results of the fit after some observations."""

    theta: Tensor  # d + 2, the new task's GP
    gaps: Tensor  # M


@dataclass(frozen=True, eq=False)
class RMGPUCBPrior(ModularPrior):
    """The posteriors and the points of the meta-tasks."""

    method: RMGPUCB
    past: _Past = field(repr=False)
    _steps: dict[bytes, _Step] = field(default_factory=dict, init=False, repr=False)

    def condition(self, task: Task, *, seed: int = 0) -> RMGP:
        """Fit a GP to the task's data alone, and compute the weights of the past beside it."""
        self.check_task(task)
        check_seed(seed)
        with one_thread():
            if not task.n:
                own = fit_plain_gp(task, standardize(task.y), kernel=self.method.kernel, seed=_SEED)
                one = torch.ones((), dtype=torch.float64)
                tasks = len(self.task_gps)
                return RMGP(own, self.task_gps, (one / tasks).expand(tasks), one)
            steps = self._history(task)
            hyperparameters = Hyperparameters.from_vector(steps[-1].theta, task.d)
            no_tasks = TaskGPs.none(task.d, kernel=self.method.kernel)
            own = ScaMLGP(no_tasks, task, self._units(task.y), hyperparameters)
            return RMGP(own, self.task_gps, *self._weights(torch.stack([s.gaps for s in steps])))

    def acquisition(self, model: Model) -> RobustUpperConfidenceBound:
        """The weighted sum of upper confidence bounds."""
        return RobustUpperConfidenceBound(model, tau=self.method.tau, sqrt_beta=self.method.sqrt_beta)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the steps, which can be computed again, bit for bit."""
        return {**vars(self), "_steps": {}}

    def _weights(self, gaps: Tensor) -> tuple[Tensor, Tensor]:
        """ω_t, M, and ν_t from d̄_1 to d̄_t, `t x M`."""
        omega = torch.softmax(-self.method.eta * gaps.cumsum(0), dim=-1)
        falls = (omega * gaps).sum(-1).pow(-self.method.epsilon).clamp_max(self.method.r)
        return omega[-1], falls.prod()

    def _history(self, task: Task) -> list[_Step]:
        """The steps after 1, 2, ..., n observations. Unknown ones are fitted together and kept."""
        keys = _keys(task)
        known = {key: self._steps[key] for key in keys if key in self._steps}
        missing = [n for n, key in enumerate(keys, 1) if key not in known]
        if missing:
            units = [self._units(task.y[:n]) for n in missing]
            inputs = [
                FitInput(task.name or "the test-task", task.X[:n], (task.y[:n] - u.offset) / u.scale)
                for n, u in zip(missing, units, strict=True)
            ]
            thetas = fit_gps(inputs, kernel=self.method.kernel, seed=_SEED).theta
            for n, data, unit, theta in zip(missing, inputs, units, thetas, strict=True):
                known[keys[n - 1]] = _Step(theta.clone(), self._gaps(data, unit, theta))
            self._steps.update(known)
            for key in list(self._steps)[:-_MOST_STEPS]:
                self._steps.pop(key, None)
        return [known[key] for key in keys]

    def _units(self, y: Tensor) -> Units:
        varies = Levels.of([y]).deviation[0] > 0
        return standardize(y) if varies else Units(y.mean(), self.past.spread)

    def _gaps(self, data: FitInput, units: Units, theta: Tensor) -> Tensor:
        """d̄_m, M, divided by the mean deviation of the past tasks, from the GP with θ of some data."""
        past, method = self.past, self.method
        parts = [_predict(method.kernel, data, theta, X) for X in past.X.split(_POINTS_AT_ONCE)]
        mean, deviation = (torch.cat(part) for part in zip(*parts, strict=True))
        # The larger of |e + b| and |e - b| is |e| + b.
        error = (units.offset + units.scale * mean - past.y).abs()
        gaps = (error + method.sqrt_beta * units.scale * deviation).split(past.sizes)
        if method.gap == "mean":
            return torch.stack([values.mean() for values in gaps]) / past.spread
        sizes = torch.tensor(past.sizes, dtype=torch.float64)
        most_noise = past.noise * (2.0 * (2.0 * sizes / method.delta).log()).sqrt()
        return (torch.stack([values.max() for values in gaps]) + most_noise) / past.spread


def _predict(kernel: KernelName, data: FitInput, theta: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation, n each, of one GP at `n x d`; `ScaMLGP` without setup that pays off later."""
    inverse, o = torch.exp(-theta[:-2]), theta[-2].exp()
    a = data.X * inverse
    K = o * correlation(kernel, squared_distance(a, a))
    K.diagonal().copy_((o + theta[-1].exp()).expand(len(a)))
    L = cholesky(K, "the test-task")
    root = torch.linalg.solve_triangular(L, torch.eye(len(a), dtype=torch.float64), upper=False)
    u = correlation(kernel, squared_distance(X * inverse, a)) @ (o * root.mT)
    variance = o - u.square().sum(-1)
    return u @ (root @ data.z), variance.clamp_min(LEAST_VARIANCE * o).sqrt()


class RMGP(MomentsModel):
    """The GP of the new task alone, together with the GPs and weights of the past.

    Args:
        own: The GP of the new task's data.
        task_gps: The meta-tasks' posteriors.
        weights: ω, M.
        nu: ν, the weight of all past tasks together.
    """

    def __init__(self, own: ScaMLGP, task_gps: TaskGPs, weights: Tensor, nu: Tensor) -> None:
        super().__init__(Units(own.y_offset, own.y_scale), own.noise)
        self.own = own
        self.task_gps = task_gps
        self.weights = weights
        self.nu = nu

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self.own.moments(X)

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        return self.own.cross(X, Z)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any
    ) -> RMGP:
        """This model with further observations of the new task; ω, ν and the past do not change."""
        own = self.own.condition_on_observations(X, Y, noise=noise)
        return RMGP(own, self.task_gps, self.weights, self.nu)

    @property
    def batch_shape(self) -> torch.Size:
        return self.own.batch_shape


class RobustUpperConfidenceBound(AnalyticAcquisitionFunction):
    """ν Σ ω_m (μ_m + τ s_m) + (1 - ν) (μ + √β s), every GP standardized.

    Args:
        model: What `RMGPUCBPrior.condition` returns.
        tau: τ.
        sqrt_beta: √β.
    """

    def __init__(self, model: Model, *, tau: float = 3.0, sqrt_beta: float = 3.0) -> None:
        if not isinstance(model, RMGP):
            raise SettingError(
                f"The model is a {type(model).__name__}; RM-GP-UCB needs what its prior's condition "
                "returns."
            )
        super().__init__(model)
        self.tau = tau
        self.sqrt_beta = sqrt_beta
        factors = model.nu * model.weights
        felt = (factors > _NEGLIGIBLE).nonzero().flatten()
        self._past = _Bounds(model.task_gps.subset(felt.tolist()), factors[felt], tau)

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Values, `batch`, at `batch x 1 x d`."""
        X = X.double()
        mean, covariance = self.model.moments(X)
        own = mean[..., 0] + self.sqrt_beta * covariance[..., 0, 0].sqrt()
        past = self._past(X.flatten(0, -2)).view(X.shape[:-2])
        value: Tensor = past + (1.0 - self.model.nu) * own
        return value


class _Bounds:
    """Σ a_m (μ_m + τ s_m) at single points, laid out for the thousands of calls of a search."""

    def __init__(self, gps: TaskGPs, factors: Tensor, tau: float) -> None:
        self._gps, self._factors, self._tau = gps, factors.unsqueeze(-1), tau
        self._inverse, self._right = gps.squared_distances()
        self._mean = gps.whitener.mT @ gps.targets.unsqueeze(-1)
        # Whiteners are triangular: two blocks skip half of the zeros.
        self._half = gps.whitener.shape[-1] // 2
        self._upper = gps.whitener[:, : self._half, : self._half].mT.contiguous()
        self._lower = gps.whitener[:, self._half :].mT.contiguous()
        self._at_once = max(1, _CACHED_ENTRIES // max(1, gps.targets.numel()))

    def __call__(self, X: Tensor) -> Tensor:
        """n values at `n x d`; differentiable."""
        if not len(self._gps):
            return X.new_zeros(len(X))
        return torch.cat([self._values(part) for part in X.split(self._at_once)])

    def _values(self, X: Tensor) -> Tensor:
        squared = torch.matmul(left_factor(X * self._inverse), self._right).clamp_min_(0.0)
        R = correlation(self._gps.kernel, squared)  # M x n x N
        gained = torch.matmul(R[..., : self._half], self._upper).square().sum(-1)
        gained = gained + torch.matmul(R, self._lower).square().sum(-1)
        o = self._gps.outputscale.unsqueeze(-1)
        deviation = (o - gained).clamp_min(LEAST_VARIANCE * o).sqrt()
        mean = torch.matmul(R, self._mean).squeeze(-1)
        return (self._factors * (mean + self._tau * deviation)).sum(0)


def _keys(task: Task) -> list[bytes]:
    """Keys for the first 1, 2, ..., n observations of the task."""
    digest, keys = hashlib.sha256(), []
    for row in torch.cat([task.X, task.y.unsqueeze(-1)], dim=-1):
        digest.update(row.numpy().tobytes())
        keys.append(digest.digest())
    return keys


def _check_between(name: str, value: Any, *, low: float, high: float, give: str) -> None:
    """Refuse a value that is not a number within its bounds."""
    if not (isinstance(value, int | float) and low <= value <= high):
        raise SettingError(f"{name} is {value!r}; give a number {give}.")
