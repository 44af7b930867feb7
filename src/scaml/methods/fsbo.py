r"""FSBO: few-shot Bayesian optimization with deep kernel surrogates (Wistuba, Grabocka, ICLR 2021).

All tasks share one deep-kernel GP,

$$k(x, x') = o \exp(-\lVert \phi(x) - \phi(x') \rVert^2 / (2 \ell^2)) + \sigma^2 [x = x'],$$

where $\phi$ is a network with two layers of 128 ReLU units. Adam (rate 1e-3) trains the network,
$\ell$, o and $\sigma^2$ on the marginal likelihood of the past tasks: draw a task, draw $l < u$ from
the range of all y, take a few steps on batches of 50 of its points with
$y \leftarrow (y - l) / (u - l)$, draw the next task. At every step on a new task, a copy of all
parameters is trained on its data for a few epochs.

Choices:

- The second ReLU layer is $\phi$ itself. One lengthscale serves all its units, because the layer can
  scale its units itself.
- The y of every task, also of the new one, is standardized by itself (the paper's appendix C.1) before
  l and u are drawn, so that the units of a task do not matter. l and u are at least a tenth of the
  range apart: a narrower pair makes the values so large that they only ask for large $\sigma^2$ and o.
- "A few" means 5 steps on a task, and 50 epochs on the new task (in batches of 50 if it has more
  points).
- The number of tasks drawn is not published. Here a tenth of the tasks, at least one, is held out.
  Every 100 steps, their negative log likelihood is computed with the best scale of y (l and u make the
  scale arbitrary). The parameters with the lowest one are kept. A single past task holds out a fifth of
  its points instead, if it has 10 or more.
- $\sigma^2$ is at least 1e-5. Training starts at $\ell = o = 1$, $\sigma^2 = 0.01$.
- The original starts with 5 points that minimize $\sum_t \min_{x \in X} \tilde f_t(x)$, found by
  evolution. The paper compares without initial points, so that `initial=0` is the default. Otherwise
  the meta-fit finds the points, with the posterior mean of task t as $\tilde f_t$, and they are
  suggested first.
- Without data, the model of the new task is the GP's prior: mean 0 and variance o everywhere.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.model import Model
from torch import Tensor, nn

from scaml.common.checks import check_integer, check_seed
from scaml.common.parallel import effective_n_jobs, one_thread
from scaml.common.progress import StepProgress
from scaml.errors import SavedFileError, SettingError
from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.linalg import cholesky, inverse_of_lower
from scaml.gp.moments_model import MomentsModel
from scaml.gp.units import Units
from scaml.methods.base import MetaPrior, Method, check_meta, check_sqrt_beta, check_whole
from scaml.methods.shared.initial_points import Nearest, Started, evolve
from scaml.methods.shared.network_tasks import Standardized, check_widths, settled, standardized
from scaml.methods.shared.networks import EarlyStopping, descend, perceptron, seeded, with_state
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["FSBO", "DeepKernel", "FSBOModel", "FSBOPrior"]

_LOG_2PI = math.log(2.0 * math.pi)
_NO_UNITS = Units(torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64))
_LEAST_NOISE = 1e-5
_FIRST_NOISE = 1e-2
_NARROWEST = 0.1  # smallest u - l, as a share of the range
_EVERY = 100  # steps between two evaluations of the held-out tasks
_PATIENCE = 20  # evaluations without improvement after which the training ends
_SHARE_OF_TASKS = 10  # one task in 10 is held out
_SHARE_OF_POINTS = 5  # of a single task, one point in 5 is held out
_LEAST_SPLIT = 10  # fewest points of a single task of which some are held out


@dataclass(frozen=True)
class FSBO(Method):
    """A deep-kernel GP, trained on all past tasks and fine-tuned to the new one.

    Args:
        widths: Units of the ReLU layers; the last layer gives the features.
        iterations: Largest number of tasks drawn in the meta-training.
        steps: Steps of Adam per task drawn.
        batch: Points per step.
        rate: Learning rate of Adam.
        epochs: Passes over the test data at every step of the optimization.
        initial: Number of initial points, which are good on the past tasks and suggested first.
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    publication: ClassVar[str] = "Wistuba and Grabocka, ICLR 2021"
    cost: ClassVar[str] = "one network for all tasks; a step fine-tunes it on the n_t test data"
    summary: ClassVar[str] = "A deep-kernel GP trained on all past tasks, fine-tuned to the new one."

    widths: tuple[int, ...] = (128, 128)
    iterations: int = 1000
    steps: int = 5
    batch: int = 50
    rate: float = 1e-3
    epochs: int = 50
    initial: int = 0
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", check_widths(self.widths))
        for name, least in {"iterations": 1, "steps": 1, "batch": 2, "epochs": 0, "initial": 0}.items():
            check_integer(getattr(self, name), name, least=least)
        if isinstance(self.rate, bool) or not (
            isinstance(self.rate, int | float) and 0 < self.rate < math.inf
        ):
            raise SettingError(f"rate is {self.rate!r}; give a positive number.")
        check_sqrt_beta(self.sqrt_beta)

    def meta_fit(
        self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1, progress: StepProgress | None = None
    ) -> FSBOPrior:
        """Train the deep kernel on all past tasks.

        Args:
            meta: The past tasks.
            seed: Decides the network's start and every draw.
            n_jobs: Checked but not used, because the tasks are trained together.
            progress: Called with the number of steps done and of all.
        """
        check_meta(meta)
        seed = check_seed(seed)
        effective_n_jobs(n_jobs)
        check_whole(meta, "FSBO")
        with one_thread(), torch.inference_mode(False), torch.enable_grad():
            kernel = _train(self, settled(meta)[0], seed, progress)
        prior = FSBOPrior(self, meta, kernel, torch.empty(0, meta.d, dtype=torch.float64))
        return replace(prior, initial=prior.initial_points(self.initial, seed=seed))

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> FSBOPrior:
        check_whole(meta, "FSBO")
        initial, shape = state.get("initial"), (self.initial, meta.d)
        if initial is None or initial.shape != shape or initial.dtype != torch.float64:
            raise SavedFileError(f"its initial is not of shape {shape} in float64")
        if not ((initial >= 0) & (initial <= 1)).all():
            raise SavedFileError("its initial lies outside the unit cube")
        own = {name: tensor for name, tensor in state.items() if name != "initial"}
        kernel = DeepKernel(meta.d, self.widths, 0)
        with_state(kernel, own)
        return FSBOPrior(self, meta, kernel.requires_grad_(False), initial)


@dataclass(frozen=True, eq=False)
class FSBOPrior(MetaPrior):
    """The trained deep kernel, and the initial points."""

    method: FSBO
    meta: MetaData
    kernel: DeepKernel
    initial: Tensor  # initial x d

    def state(self) -> dict[str, Tensor]:
        return {**self.kernel.state_dict(), "initial": self.initial}

    def condition(self, task: Task, *, seed: int = 0) -> MomentsModel:
        """Fine-tune a copy of the deep kernel to the task's data, and condition the GP on the data."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread(), torch.inference_mode(False):
            new, units = standardized(task)
            kernel = self.kernel
            if task.n and self.method.epochs:
                with torch.enable_grad():
                    kernel = _fine_tune(self.method, kernel, new, seed)
            model = FSBOModel(kernel, new.X, new.z, units)
            left = self.initial[task.n :]
            return Started(model, left) if len(left) else model

    def acquisition(self, model: Model) -> AcquisitionFunction:
        """UCB with the method's √β, after the initial points are used up."""
        return Nearest(model) if hasattr(model, "points_left") else super().acquisition(model)

    def initial_points(self, n: int, *, seed: int = 0) -> Tensor:
        """n points, `n x d`, with a large Σ_t max_x μ_t(x): on every past task, one of them is good.

        Args:
            n: Number of points.
            seed: Decides every draw of the evolution.
        """
        n, seed = check_integer(n, "n", least=0), check_seed(seed)
        if not n:
            return torch.empty(0, self.d, dtype=torch.float64)
        with one_thread(), torch.no_grad():
            models = [
                FSBOModel(self.kernel, task.X, task.z, _NO_UNITS) for task in settled(self.meta)[0]
            ]

            def fitness(sets: Tensor) -> Tensor:
                return torch.stack([model.mean(sets).amax(-1) for model in models]).sum(0)

            return evolve(fitness, n, self.d, seed=seed)


class DeepKernel(nn.Module):
    """Network, lengthscale, outputscale and noise.

    Args:
        d: Number of parameters.
        widths: Units of the ReLU layers.
        seed: Decides the network's start.
    """

    def __init__(self, d: int, widths: Sequence[int], seed: int) -> None:
        super().__init__()
        with seeded(seed):
            self.network = perceptron(d, widths, nn.ReLU)
        self.log_lengthscale = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.log_outputscale = nn.Parameter(torch.zeros((), dtype=torch.float64))
        first = torch.tensor(math.log(_FIRST_NOISE - _LEAST_NOISE), dtype=torch.float64)
        self.log_noise = nn.Parameter(first)

    @property
    def noise(self) -> Tensor:
        """σ²."""
        return _LEAST_NOISE + self.log_noise.exp()

    def features(self, X: Tensor) -> Tensor:
        """φ(x) / ℓ, `batch x n x D`, at `batch x n x d`."""
        features: Tensor = self.network(X) * torch.exp(-self.log_lengthscale)
        return features

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Covariances without noise, `batch x n x k`, between scaled features."""
        return self.log_outputscale.exp() * correlation("se", squared_distance(a, b))

    def factor(self, X: Tensor, whose: str) -> Tensor:
        """Lower factor of K + σ² I at X, `n x d`."""
        a = self.features(X)
        return cholesky(self(a, a) + self.noise * torch.eye(len(X), dtype=torch.float64), whose)

    def loss(self, X: Tensor, z: Tensor, whose: str) -> Tensor:
        """Negative log marginal likelihood per point."""
        quadratic, half_log_det = self._parts(X, z, whose)
        return 0.5 * (quadratic + _LOG_2PI) + half_log_det

    def loss_of_any_scale(self, X: Tensor, z: Tensor, whose: str) -> Tensor:
        """The loss with s² (K + σ² I), minimized over s: s² = z^T (K + σ² I)^-1 z / n."""
        quadratic, half_log_det = self._parts(X, z, whose)
        return 0.5 * (quadratic.clamp_min(_LEAST_NOISE).log() + 1.0 + _LOG_2PI) + half_log_det

    def _parts(self, X: Tensor, z: Tensor, whose: str) -> tuple[Tensor, Tensor]:
        """z^T (K + σ² I)^-1 z and half the log determinant, per point."""
        L = self.factor(X, whose)
        half = torch.linalg.solve_triangular(L, z.unsqueeze(-1), upper=False)
        return half.square().mean(), L.diagonal().log().mean()


class FSBOModel(MomentsModel):
    """The deep-kernel GP given the test data.

    Args:
        kernel: The deep kernel, frozen.
        X: The test inputs, `n x d`.
        z: The test values, standardized.
        units: Offset and scale of y.
    """

    def __init__(self, kernel: DeepKernel, X: Tensor, z: Tensor, units: Units) -> None:
        super().__init__(units, kernel.noise)
        self.kernel = kernel
        self._a = kernel.features(X)
        L = kernel.factor(X, "the test-task")
        self._root = inverse_of_lower(L)
        self._whitened = self._root @ z

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        a, further = self._features(X)
        mean = further @ self._whitened
        if X.shape[-2] == 1:  # exactly o without data, so that rounding makes no maximum
            variance = self.kernel.log_outputscale.exp() - further.square().sum(-1)
            return mean, variance.unsqueeze(-1)
        return mean, self.kernel(a, a) - further @ further.mT

    def mean(self, X: Tensor) -> Tensor:
        """The posterior mean alone, `batch x q`, standardized."""
        mean: Tensor = self._features(X)[1] @ self._whitened
        return mean

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        (a, further), (b, other) = self._features(X), self._features(Z)
        covariance: Tensor = self.kernel(a, b) - further @ other.mT
        return covariance

    def _features(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """φ(x) / ℓ, and L^-1 k(X_t, x)."""
        a = self.kernel.features(X)
        return a, self.kernel(a, self._a) @ self._root.mT


def _train(
    method: FSBO, data: Sequence[Standardized], seed: int, progress: StepProgress | None
) -> DeepKernel:
    """Train the deep kernel; the parameters with the likeliest held-out tasks are kept."""
    kernel = DeepKernel(data[0].X.shape[-1], method.widths, seed)
    generator = torch.Generator().manual_seed(seed)
    seen, held_out = _split(data, generator)
    every = torch.cat([task.z for task in data])
    low, high = float(every.min()), float(every.max())
    drawn: tuple[Standardized, float, float] = (seen[0], 0.0, 1.0)

    def loss(step: int) -> tuple[Tensor, str]:
        nonlocal drawn
        if step % method.steps == 0:
            place = int(torch.randint(len(seen), (), generator=generator))
            drawn = (seen[place], *_pair(low, high, generator))
        task, lower, upper = drawn
        rows = torch.randperm(len(task.z), generator=generator)[: method.batch]
        whose = f"task {task.name!r} at step {step}"
        return kernel.loss(task.X[rows], (task.z[rows] - lower) / (upper - lower), whose), task.name

    def look() -> float:
        losses = [kernel.loss_of_any_scale(task.X, task.z, f"task {task.name!r}") for task in held_out]
        return float(torch.stack(losses).mean())

    descend(
        loss,
        kernel,
        steps=method.iterations * method.steps,
        rate=method.rate,
        what="FSBO",
        stopping=EarlyStopping(look, _EVERY, _PATIENCE) if held_out else None,
        progress=progress,
    )
    return kernel.requires_grad_(False)


def _fine_tune(method: FSBO, kernel: DeepKernel, new: Standardized, seed: int) -> DeepKernel:
    """A copy of the kernel after some epochs on the test data."""
    copied = copy.deepcopy(kernel).requires_grad_(True)
    generator = torch.Generator().manual_seed(seed)
    parts = math.ceil(len(new.z) / method.batch)
    order: Sequence[Tensor] = ()

    def loss(step: int) -> tuple[Tensor, str]:
        nonlocal order
        if step % parts == 0:
            order = torch.randperm(len(new.z), generator=generator).chunk(parts)
        rows = order[step % parts].sort().values
        return copied.loss(new.X[rows], new.z[rows], f"{new.name!r} at step {step}"), new.name

    descend(loss, copied, steps=method.epochs * parts, rate=method.rate, what="FSBO")
    return copied.requires_grad_(False)


def _split(
    data: Sequence[Standardized], generator: torch.Generator
) -> tuple[list[Standardized], list[Standardized]]:
    """Tasks to train on and held-out tasks; of a single task, its points are split."""
    # A task with constant values says nothing about the kernel.
    tasks = [task for task in data if task.varies] or list(data)
    if len(tasks) > 1:
        order = torch.randperm(len(tasks), generator=generator).tolist()
        count = max(1, len(tasks) // _SHARE_OF_TASKS)
        return [tasks[m] for m in order[count:]], [tasks[m] for m in order[:count]]
    (task,) = tasks[:1]
    n = len(task.z)
    if n < _LEAST_SPLIT:
        return [task], []
    rows, count = torch.randperm(n, generator=generator), n // _SHARE_OF_POINTS
    return [task.rows(rows[count:])], [task.rows(rows[:count])]


def _pair(low: float, high: float, generator: torch.Generator) -> tuple[float, float]:
    """l < u, uniform among the pairs that are far enough apart."""
    if high <= low:
        return low, low + 1.0
    while True:
        lower, upper = torch.rand(2, generator=generator, dtype=torch.float64).sort().values.tolist()
        if upper - lower >= _NARROWEST:
            return low + (high - low) * lower, low + (high - low) * upper
