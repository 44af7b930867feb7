"""Leave-one-out predictions with the past, compared with those of a plain GP on the new data only.

The hyperparameters are fitted to all observations, so both errors are a little too small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from scaml.common.parallel import one_thread
from scaml.explain.inapplicable import Inapplicable
from scaml.explain.moments import BAND
from scaml.explain.shares import past_parts_of
from scaml.gp.kernels import KernelName
from scaml.gp.units import standardize
from scaml.methods.shared.plain_gp import fit_plain_gp
from scaml.model.protocols import LeaveOneOutModel

if TYPE_CHECKING:
    from scaml.explain.run import Run

__all__ = ["FEWEST", "Comparison", "LeftOut", "compare", "left_out"]

FEWEST = 3
"""Observations that a comparison needs."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Predictions of n observations, each made from all others, in the units of y.

    Args:
        mean: n.
        deviation: n, standard deviations of the observations, noise included.
        y: n, what was observed.
    """

    mean: Tensor
    deviation: Tensor
    y: Tensor

    @property
    def error(self) -> float:
        """The root mean squared error."""
        return float((self.mean - self.y).square().mean().sqrt())

    @property
    def covered(self) -> int:
        """The number of observations within two standard deviations of their predictions."""
        return int(((self.mean - self.y).abs() <= BAND * self.deviation).sum())


@dataclass(frozen=True, eq=False)
class Comparison:
    """Predictions of a model and of a plain GP on the new data only.

    Args:
        ours: The predictions of the model.
        plain: The predictions of the plain GP; None if the model itself is one.
    """

    ours: LeftOut
    plain: LeftOut | None

    @property
    def gain(self) -> float | None:
        """By how much the past lowers the error, in the units of y; None without a plain GP."""
        return None if self.plain is None else self.plain.error - self.ours.error

    @property
    def winner(self) -> int:
        """1 if the model predicts better, -1 if the plain GP does, 0 if the difference may be chance.

        It counts as chance if the mean difference of the squared errors is smaller than its standard
        error.
        """
        if self.plain is None:
            return 0
        errors = [(side.mean - side.y).square() for side in (self.plain, self.ours)]
        gain = errors[0] - errors[1]
        clear = gain.mean().abs() > gain.std() / len(gain) ** 0.5
        return int(gain.mean().sign()) if clear else 0


def left_out(model: LeaveOneOutModel, y: Tensor) -> LeftOut:
    """The model's leave-one-out predictions; y, n, is what was observed."""
    with torch.no_grad(), one_thread():
        mean, deviation = model.leave_one_out()
        return LeftOut(mean=mean, deviation=deviation, y=y)


def compare(run: Run) -> Comparison:
    """Leave-one-out predictions of the run's model, and of a plain GP on the new data only.

    Raises:
        Inapplicable: If there are too few observations, or if the model has no such predictions.
    """
    if run.task.n < FEWEST:
        raise Inapplicable(
            f"This comparison needs at least {FEWEST} experiments; there "
            f"{'is' if run.task.n == 1 else 'are'} {run.task.n or 'none'} so far."
        )
    run.check_units()
    if not isinstance(run.model, LeaveOneOutModel):
        raise Inapplicable(
            f"{run.method} cannot predict an experiment from the others without a new fit, so it is "
            "not compared with a plain GP here."
        )
    y, parts = run.task.y, past_parts_of(run.model)
    if parts is None:
        return Comparison(left_out(run.model, y), None)
    kernel: KernelName = parts.task_gps.kernel
    with one_thread():
        plain = fit_plain_gp(run.task, standardize(run.task.y), kernel=kernel, seed=run.seed)
    return Comparison(left_out(run.model, y), left_out(plain, y))
