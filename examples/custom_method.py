"""A meta-learning method of your own, compared with those of scaml on equal terms.

`Mine` weighs each past task by how well it ranks the new observations (Kendall's τ). With every
observation, the GP of the new task alone counts more.

`python examples/custom_method.py` compares it with two methods of scaml. `scaml bench run branin
--methods scaml ./examples/custom_method.py:Mine` does the same and saves every run. `pytest
examples/custom_method.py` runs the suite that every method must pass.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from scaml import Task
from scaml.bench.contestants import contestant
from scaml.bench.settings import Setting
from scaml.bench.single_run import SingleRun, evaluate
from scaml.common.checks import check_seed
from scaml.common.wording import counted
from scaml.gp.kernels import KernelName
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import standardize
from scaml.methods.shared.ensemble import Ensemble
from scaml.methods.shared.modular import ModularMethod, ModularPrior
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.normalization import SeenPast
from scaml.testing import MetaLearnerTestCase


@dataclass(frozen=True)
class Mine(ModularMethod["MyPrior"]):
    """Past tasks weighted by rank correlation.

    Args:
        kernel: Kernel of all GPs.
        sharpness: How much a better rank correlation counts.
        patience: About how many observations it takes until the new task counts as much as the past.
        sqrt_beta: √β of the acquisition function, UCB.
    """

    kernel: KernelName = "se"
    sharpness: float = 5.0
    patience: float = 10.0
    sqrt_beta: float = 3.0

    def prior(self, past: SeenPast, task_gps: TaskGPs) -> MyPrior:
        """Make the prior from the fitted GPs; here there is nothing more to learn from the past."""
        return MyPrior(self, past.meta, task_gps)


@dataclass(frozen=True, eq=False)
class MyPrior(ModularPrior):
    """The GPs of the past tasks, ready for any number of new ones."""

    method: Mine

    def condition(self, task: Task, *, seed: int = 0) -> Ensemble:
        """Make the model of a new task from its observations, of which there may be none."""
        self.check_task(task)
        mine = self.method
        own = fit_plain_gp(task, standardize(task.y), kernel=mine.kernel, seed=check_seed(seed))
        tau = rank_correlation(self.task_gps.mean(task.X), task.y)
        own_weight = (task.n + 1) / (task.n + 1 + mine.patience)
        weights = (1.0 - own_weight) * torch.softmax(mine.sharpness * tau, dim=0)
        return Ensemble(self.task_gps, own, weights, own_weight)


def rank_correlation(means: Tensor, y: Tensor) -> Tensor:
    """Kendall's τ between each row of the means, `M x n`, and y; 0 if there is no pair."""
    agree = (means[:, :, None] - means[:, None, :]).sign() * (y[:, None] - y).sign()
    return agree.sum((-2, -1)) / max(len(y) * (len(y) - 1), 1)


class TestMine(MetaLearnerTestCase):
    """The suite that every method must pass, run by pytest."""

    method = Mine()


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="branin", help="one of scaml bench list")
    parser.add_argument("--evaluations", type=int, default=20, help="of each run")
    parser.add_argument("--runs", type=int, default=4, help="of each method")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)  # small matrices: more threads are slower
    setting = Setting.of(options.problem, evaluations=options.evaluations)
    shown = [n for n in (1, 2, 5, 10, 20, 40) if n <= setting.evaluations]
    mean = f"mean of {counted(options.runs, 'run')} with {setting.meta_tasks} past tasks"
    print(f"Simple regret on {setting.problem}, {mean}, after")
    print(f"  {'evaluations:':12}{''.join(f'{n:8}' for n in shown)}")
    for method in ("scaml", "gpbo", f"{__file__}:Mine"):
        runs = [evaluate(SingleRun(setting, contestant(method), run)) for run in range(options.runs)]
        regrets = np.mean([[rows[n - 1]["regret"] for n in shown] for rows in runs], axis=0)
        print(f"  {method.split(':')[-1]:12}{''.join(f'{r:8.2f}' for r in regrets)}", flush=True)


if __name__ == "__main__":
    main()
