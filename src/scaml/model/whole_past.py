"""`WholePastGP`: one model of the whole past that can still tell which past tasks the new one is like.

Where the past tasks have something in common, one model with M weights predicts better than an average
over explanations. Their probabilities are computed when somebody asks, from the same data; the model
does not act on them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from scaml.errors import SettingError
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.scaml_gp import ScaMLGP
from scaml.model.verdict import Verdict
from scaml.tasks.task import Task

__all__ = ["WholePastGP"]


class WholePastGP(ScaMLGP):
    """A `ScaMLGP` that explains itself.

    Args:
        ask: Returns the verdict on the test data.
        task_gps: The meta-tasks' posteriors.
        task: The test data.
        units: Offset and scale of y.
        hyperparameters: θ_t.
    """

    def __init__(
        self,
        ask: Callable[[], Verdict],
        task_gps: TaskGPs,
        task: Task,
        units: Units,
        hyperparameters: Hyperparameters,
    ) -> None:
        super().__init__(task_gps, task, units, hyperparameters)
        self._ask = ask
        self._asked_about = task.y

    @cached_property
    def _verdict(self) -> Verdict:
        return self._ask()

    def explain(self) -> Verdict:
        """Which past tasks the new one is like, with probabilities.

        Raises:
            SettingError: If the model was conditioned on further observations since.
        """
        if self._y is not self._asked_about:
            raise SettingError(
                "This model has further observations at fixed hyperparameters; explain the model that "
                "`condition` returned."
            )
        return self._verdict
