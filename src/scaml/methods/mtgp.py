r"""MTGP (Bonilla et al., NeurIPS 2007; Swersky et al., NeurIPS 2013): one GP for all tasks together.

BoTorch's `MultiTaskGP` is fitted to all data, with the test-task as the last of the M + 1 tasks:

$$\operatorname{cov}(f_s(x), f_t(x')) = B_{st} R(x, x'), \qquad
y_t = c_t + f_t(x) + \varepsilon_t, \quad \varepsilon_t \sim N(0, \sigma_t^2),$$

The priors (log-normal lengthscales that grow with d, log-normal noise, Beta(2.5, 1.5) on the tasks'
correlations), the positive B and the fit (L-BFGS-B on the marginal likelihood of all points) are
BoTorch's. Every evaluation costs the cube of the number of all points. ScaML-GP avoids this cost.

Choices:

- Every task is standardized by itself, as BoTorch asks, and as the paper's appendix C.1 says of all GPs
  except ScaML-GP's. The posterior of the test-task is mapped back by its own mean and deviation.
- The paper's lengthscale and outputscale priors are "BoTorch's default" of its time. Here they are the
  defaults of the installed version. B includes the outputscales.
- BoTorch's loss goes through lazy operators and costs several times its arithmetic. `Loss` computes the
  same value and gradient (tested against BoTorch's), and is given to `fit_gpytorch_mll` as its closure.
- The likelihood still rises after thousands of iterations. Predictions improve less (Branin, 4 × 32
  points: errors of 0.37 and 0.20 of the deviation with 5 and 12 observations after 200 iterations, 0.33
  and 0.16 after 1000). Fits therefore end after `max_iterations`.
- `warm_start`: the meta-fit fits the meta-data once, with a test-task without observations. Steps start
  there and end after `warm_iterations`, which halves their time. On Branin, this predicts as well from
  8 × 32 points (0.37 and 0.31, against 0.41 and 0.30) and a little worse from 4 × 32 (0.38 and 0.27);
  variances are less well calibrated. Without observations, the fit to the meta-data is the model.
- Without observations, BoTorch gives the test-task the mean of the other tasks' rows of B's factor.
- The data of the tasks decide their indices, so that the order of the tasks does not matter: the random
  starts of B's rows depend on the index, and the first task sets B's scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar
from warnings import WarningMessage

import torch
from botorch.exceptions import ModelFittingError
from botorch.exceptions.warnings import OptimizationWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import MultiTaskGP
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.optim.utils import get_parameters
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from scaml.common.checks import check_integer, check_seed
from scaml.common.parallel import effective_n_jobs, one_thread
from scaml.errors import FitError, SavedFileError, SettingError, TaskDataError
from scaml.gp.kernels import KernelName, check_kernel, correlation, squared_distance
from scaml.gp.linalg import cholesky, inverse_of_lower
from scaml.gp.moments_model import MomentsModel
from scaml.gp.units import Units, standardize
from scaml.methods.base import MetaPrior, Method, check_meta, check_sqrt_beta, check_whole
from scaml.methods.shared.networks import seeded
from scaml.search.cube import without_warnings
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["MTGP", "Loss", "MTGPPrior", "MultiTaskProcess"]

_WHOSE = "all tasks together"


@dataclass(frozen=True)
class MTGP(Method):
    """BoTorch's multi-task GP over all tasks.

    Args:
        kernel: "se", ARD squared-exponential, or "matern52".
        rank: Rank of B's factor; None for BoTorch's default, the number of tasks.
        max_points: Largest number of points of all tasks; more are refused, because the cost is cubic.
        warm_start: Whether steps start at a fit to the meta-data alone.
        max_iterations: Iterations of L-BFGS-B from a random start.
        warm_iterations: Iterations of L-BFGS-B in a step that starts at the fit to the meta-data.
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    publication: ClassVar[str] = "Bonilla et al., NeurIPS 2007; Swersky et al., NeurIPS 2013"
    cost: ClassVar[str] = "meta-fit and every step grow with the cube of all points"
    summary: ClassVar[str] = "One GP for all tasks, their covariance learned: BoTorch's MultiTaskGP."

    kernel: KernelName = "se"
    rank: int | None = None
    max_points: int = 1000
    warm_start: bool = True
    max_iterations: int = 200
    warm_iterations: int = 100
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        check_sqrt_beta(self.sqrt_beta)
        if not isinstance(self.warm_start, bool):
            raise SettingError(f"warm_start is {self.warm_start!r}; give True or False.")
        names = ["max_points", "max_iterations", "warm_iterations"]
        for name in names if self.rank is None else ["rank", *names]:
            object.__setattr__(self, name, check_integer(getattr(self, name), name, least=1))

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> MTGPPrior:
        """Check and keep the past; with `warm_start`, fit the multi-task GP to it.

        Args:
            meta: The past tasks.
            seed: Decides the start of the fit.
            n_jobs: Checked but not used, because there is one fit.
        """
        check_meta(meta)
        seed = check_seed(seed)
        effective_n_jobs(n_jobs)
        self._check(meta)
        if not self.warm_start:
            return MTGPPrior(self, meta, {})
        with one_thread(), _gradients():
            model = _model(self, meta, Task.empty(d=meta.d), seed)
            _fit(model, self.kernel, self.max_iterations, seed)
            return MTGPPrior(self, meta, _parameters(model))

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> MTGPPrior:
        self._check(meta)
        if self.warm_start:
            own = _parameters(_model(self, meta, Task.empty(d=meta.d), 0))
            for name, tensor in own.items():
                given = state.get(name)
                if given is None or given.shape != tensor.shape or given.dtype != tensor.dtype:
                    raise SavedFileError(f"its {name} is not of shape {tuple(tensor.shape)} in float64")
                if not given.isfinite().all():
                    raise SavedFileError(f"its {name} is not finite")
        return MTGPPrior(self, meta, state if self.warm_start else {})

    def _check(self, meta: MetaData) -> None:
        check_whole(meta, "MTGP")
        if self.rank is not None and self.rank > len(meta) + 1:
            raise SettingError(
                f"rank is {self.rank} but there are {len(meta) + 1} tasks, the new one included; give "
                "no more than that, or None."
            )
        self._check_size(sum(task.n for task in meta), "The past tasks have")

    def _check_size(self, points: int, who: str) -> None:
        if points > self.max_points:
            raise TaskDataError(
                f"{who} {points} points but MTGP takes {self.max_points} (max_points), because its "
                "cost grows with the cube of all points; leave out points, raise max_points, or choose "
                "a method that scales, such as ScaML."
            )


@dataclass(frozen=True, eq=False)
class MTGPPrior(MetaPrior):
    """The past and, with `warm_start`, the hyperparameters fitted to it."""

    method: MTGP
    meta: MetaData
    start: dict[str, Tensor]  # the MultiTaskGP's parameters by name; empty without warm start

    def state(self) -> dict[str, Tensor]:
        return dict(self.start)

    def condition(self, task: Task, *, seed: int = 0) -> MultiTaskProcess:
        """Fit the multi-task GP to all data and return its posterior of the test-task."""
        model = self.multi_task_gp(task, seed=seed)
        with one_thread(), _gradients(), torch.no_grad():  # no tensor of inference mode may be left
            return MultiTaskProcess(model, self.method.kernel, standardize(task.y))

    def multi_task_gp(self, task: Task, *, seed: int = 0) -> MultiTaskGP:
        """BoTorch's model, fitted to all data; its output is the standardized test-task."""
        self.check_task(task)
        seed = check_seed(seed)
        method = self.method
        method._check_size(sum(t.n for t in self.meta) + task.n, "All tasks together have")
        with one_thread(), _gradients():
            model = _model(method, self.meta, task, seed)
            if self.start:
                with torch.no_grad():
                    for name, parameter in model.named_parameters():
                        parameter.copy_(self.start[name])
            if task.n or not self.start:
                iterations = method.warm_iterations if self.start else method.max_iterations
                _fit(model, method.kernel, iterations, seed)
            model.eval()  # here BoTorch gives a task without observations its row of B's factor
            return model


class MultiTaskProcess(MomentsModel):
    """A fitted MultiTaskGP's posterior of its last task, in the units of that task.

    Args:
        model: A fitted model with task indices in the last column of its inputs.
        kernel: The name of its kernel R.
        units: Offset and scale of the test-task's y.
    """

    def __init__(self, model: MultiTaskGP, kernel: KernelName, units: Units) -> None:
        super().__init__(units, model.likelihood.noise[-1].detach())
        data, index = model.covar_module.kernels
        self._kernel: KernelName = kernel
        self._inverse = data.lengthscale.detach().squeeze(0).reciprocal()
        inputs, z = model.train_inputs[0], model.train_targets
        task = inputs[:, -1].long()
        B, means = index.covar_matrix.detach(), _means(model).detach()
        self.mean, self.variance = means[-1], B[-1, -1]
        self._X, self._rows = inputs[:, :-1], B[-1, task]
        K = B[task][:, task] * self._correlation(self._X, self._X)
        L = cholesky(K + torch.diag(model.likelihood.noise.detach()[task]), _WHOSE)
        self._root = inverse_of_lower(L)
        self._whitened = self._root @ (z - means[task])

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        features = self._features(X)
        mean = self.mean + features @ self._whitened
        if X.shape[-2] == 1:  # the most frequent case needs no q x q product
            return mean, (self.variance - features.square().sum(-1)).unsqueeze(-1)
        return mean, self.variance * self._correlation(X, X) - features @ features.mT

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        prior: Tensor = self.variance * self._correlation(X, Z)
        return prior - self._features(X) @ self._features(Z).mT

    def _correlation(self, X: Tensor, Z: Tensor) -> Tensor:
        return correlation(self._kernel, squared_distance(X * self._inverse, Z * self._inverse))

    def _features(self, X: Tensor) -> Tensor:
        """L^-1 k(x, X) of all N points, `batch x q x N`."""
        features: Tensor = (self._rows * self._correlation(X, self._X)) @ self._root.mT
        return features


class Loss:
    r"""BoTorch's loss of an exact MultiTaskGP, -(log p(y) + log p(θ)) / N, and its gradients.

    With $A = K^{-1} - \alpha \alpha^T$ and $\alpha = K^{-1} (y - c)$, the gradient of -log p(y) is A/2
    with respect to K and -α with respect to the means. From there, autograd goes through BoTorch's
    parameters and priors.

    Args:
        mll: The model's likelihood. The gradients of its parameters are given in BoTorch's order.
        kernel: The name of the model's kernel R.
    """

    def __init__(self, mll: ExactMarginalLogLikelihood, kernel: KernelName) -> None:
        self._model, self._kernel = mll.model, kernel
        self._parameters = list(get_parameters(mll, requires_grad=True).values())
        inputs = mll.model.train_inputs[0]
        self._X, self._z = inputs[:, :-1], mll.model.train_targets
        one_hot = torch.nn.functional.one_hot(inputs[:, -1].long(), mll.model.num_tasks)
        self._tasks = one_hot.double()  # N x (M + 1); products with it are faster than indexing

    def __call__(self) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        for parameter in self._parameters:
            parameter.grad = None
        n, S = len(self._z), self._tasks
        data, index = self._model.covar_module.kernels
        a = self._X / data.lengthscale
        R = correlation(self._kernel, squared_distance(a, a))
        B, noise = index.covar_matrix, self._model.likelihood.noise
        mean = S @ _means(self._model)
        with torch.no_grad():
            spread = S @ B @ S.mT
            try:
                L = cholesky(spread * R + torch.diag(S @ noise), _WHOSE)
            except FitError as error:  # BoTorch catches this error and starts elsewhere
                raise NotPSDError(str(error)) from error
            residual = self._z - mean
            inverse = torch.cholesky_inverse(L)
            alpha = inverse @ residual
            value = 0.5 * (residual @ alpha + n * math.log(2.0 * math.pi)) + L.diagonal().log().sum()
            half = (inverse - torch.outer(alpha, alpha)).mul_(0.5 / n)
            slopes = [half * spread, S.mT @ (half * R) @ S, S.mT @ half.diagonal(), -alpha / n]
        log_prior = torch.stack(
            [prior.log_prob(of(module)).sum() for _, module, prior, of, _ in self._model.named_priors()]
        ).sum()
        slopes.append(torch.full_like(log_prior, -1.0 / n))
        torch.autograd.backward([R, B, noise, mean, log_prior], slopes)
        return (value - log_prior.detach()) / n, tuple(p.grad for p in self._parameters)


def _model(method: MTGP, meta: MetaData, task: Task, seed: int) -> MultiTaskGP:
    """BoTorch's model of all data, at a random start that the seed decides."""
    tasks = [*sorted(meta, key=_place), task]
    inputs = [torch.cat([t.X, t.X.new_full((t.n, 1), i)], dim=-1) for i, t in enumerate(tasks)]
    with seeded(seed):
        return MultiTaskGP(
            torch.cat(inputs),
            torch.cat([_standardized(t) for t in tasks]).unsqueeze(-1),
            task_feature=-1,
            covar_module=get_covar_module_with_dim_scaled_prior(
                ard_num_dims=meta.d, use_rbf_kernel=method.kernel == "se"
            ),
            rank=method.rank,
            all_tasks=list(range(len(tasks))),
            output_tasks=[len(meta)],
            outcome_transform=None,
        )


def _place(task: Task) -> tuple[list[float], list[float]]:
    """The sort key of a task: number by number, because the rounding of y must not matter."""
    return task.X.flatten().tolist(), _standardized(task).tolist()


def _standardized(task: Task) -> Tensor:
    units = standardize(task.y)
    return (task.y - units.offset) / units.scale


def _fit(model: MultiTaskGP, kernel: KernelName, iterations: int, seed: int) -> None:
    mll = ExactMarginalLogLikelihood(model.likelihood, model)

    def settled(warning: WarningMessage) -> bool:
        # A search that ends early, for lack of iterations or precision, ends at its best point.
        return issubclass(warning.category, OptimizationWarning)

    with seeded(seed), without_warnings():
        try:
            fit_gpytorch_mll(
                mll,
                closure=Loss(mll, kernel),
                optimizer_kwargs={"options": {"maxiter": iterations}},
                warning_handler=settled,
            )
        except ModelFittingError as error:
            raise FitError(
                f"The multi-task GP could not be fitted ({error}); look for values of X or y that "
                "are far larger than the others."
            ) from error


@contextmanager
def _gradients() -> Iterator[None]:
    """Turn gradients on: a fit needs them even if the caller has turned them off."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def _parameters(model: MultiTaskGP) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def _means(model: MultiTaskGP) -> Tensor:
    """c_t of all tasks, M + 1."""
    return torch.stack([mean.constant for mean in model.mean_module.base_means])
