r"""SGPT, the scalable GP transfer surrogate in two stages, weighted by ranks (TST-R).

Wistuba, Schilling and Schmidt-Thieme, Machine Learning 107, 2018. Stage 1: one GP per task, with the y
of each task standardized by itself. Stage 2: a weighted mean of the GPs. The weight of a past task
depends on its share of discordant pairs,

$$t_m = \frac{2}{\rho n (n-1)} \#\{j < k : (\mu_m(x_j) - \mu_m(x_k)) (y_j - y_k) < 0\},$$

$$b_m = \tfrac34 (1 - t_m^2) \text{ if } t_m < 1 \text{ else } 0, \qquad b_t = \tfrac34,$$

$$\mu(x) = \frac{\sum_m b_m \mu_m(x) + b_t \mu_t(x)}{\sum_m b_m + b_t}, \qquad s^2(x) = s_t^2(x).$$

Choices:

- A pair that is tied in y or in the mean is not discordant, as in Kendall's τ. The count then does not
  depend on the order of the rows, and a constant y contradicts no task. Ties still count as pairs.
- ρ = 0.1 is the authors' example. They recommend 0.1 to 0.5.
- With fewer than 2 observations there is no pair, and all b_m are 3/4.
- The test-task's GP has the kernel and hyperpriors of a meta-task, and its y is standardized by itself,
  as appendix C of our paper says of every GP except ScaML-GP's. Without observations, it is the prior
  at the default start of a fit, and its variance is the prior variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from scaml.common.checks import check_seed
from scaml.common.parallel import one_thread
from scaml.errors import SettingError
from scaml.gp.kernels import KernelName, check_kernel
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import standardize
from scaml.methods.base import check_sqrt_beta
from scaml.methods.shared.ensemble import Ensemble
from scaml.methods.shared.modular import ModularMethod, ModularPrior
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.normalization import SeenPast
from scaml.tasks.task import Task

__all__ = ["SGPT", "SGPTPrior", "discordance", "epanechnikov"]


@dataclass(frozen=True)
class SGPT(ModularMethod["SGPTPrior"]):
    """SGPT (TST-R).

    Args:
        kernel: "se" or "matern52".
        rho: ρ, the share of discordant pairs at which the weight of a meta-task becomes 0.
        sqrt_beta: √β of the default acquisition function, UCB.
    """

    publication: ClassVar[str] = "Wistuba et al., Machine Learning 107, 2018"
    cost: ClassVar[str] = "one exact GP per task; a step grows with M n_t² + n_t³"
    summary: ClassVar[str] = "A mean of task means, weighted by how well they rank the new data."

    kernel: KernelName = "se"
    rho: float = 0.1
    sqrt_beta: float = 3.0

    def __post_init__(self) -> None:
        check_kernel(self.kernel)
        real = isinstance(self.rho, int | float) and not isinstance(self.rho, bool)
        if not (real and math.isfinite(self.rho) and self.rho > 0):
            raise SettingError(f"rho is {self.rho!r}; give a positive number.")
        check_sqrt_beta(self.sqrt_beta)

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> SGPTPrior:
        return SGPTPrior(self, past.meta, task_gps)


@dataclass(frozen=True, eq=False)
class SGPTPrior(ModularPrior):
    """The meta-tasks' posteriors. Every new task weighs them anew."""

    method: SGPT

    def condition(self, task: Task, *, seed: int = 0) -> Ensemble:
        """Fit a GP to the task's data and weigh the meta-tasks by how well they rank the data."""
        self.check_task(task)
        seed = check_seed(seed)
        with one_thread():
            own = fit_plain_gp(task, standardize(task.y), kernel=self.method.kernel, seed=seed)
            t = discordance(self.task_gps.mean(task.X), task.y) / self.method.rho
            b = epanechnikov(torch.cat([t, t.new_zeros(1)]))  # the test-task agrees with itself
            w = b / b.sum()
            return Ensemble(self.task_gps, own, w[:-1], float(w[-1]), own_spread=1.0, means_alone=True)


def discordance(mean: Tensor, y: Tensor) -> Tensor:
    """M shares of discordant pairs between the means, `M x n`, and y; 0 if there is no pair."""
    n = len(y)
    # Signs, not products of differences, which can underflow to 0.
    ours = (mean.unsqueeze(-1) - mean.unsqueeze(-2)).sign()
    twice = ours * (y.unsqueeze(-1) - y).sign() < 0  # (j, k) and (k, j)
    return twice.sum((-2, -1)).double() / max(n * (n - 1), 1)


def epanechnikov(t: Tensor) -> Tensor:
    """¾ (1 - t²) where t < 1, else 0."""
    return 0.75 * (1.0 - t.square()) * (t < 1.0)
