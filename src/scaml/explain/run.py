"""`Run`: a subject with the model of its task, and the numbers that several figures need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from botorch.models.model import Model
from torch import Tensor

from scaml.explain.explanations import verdict_of
from scaml.explain.inapplicable import Inapplicable
from scaml.explain.leave_one_out import Comparison, compare
from scaml.explain.moments import moments, predicts_values
from scaml.explain.parameters import Parameter, parameters_of, sample
from scaml.explain.sensitivity import sensitivities
from scaml.explain.subject import Subject
from scaml.explain.suggestions import Suggestion, suggestions_at
from scaml.methods.base import MetaPrior
from scaml.model.protocols import LeaveOneOutModel
from scaml.model.verdict import Verdict
from scaml.tasks.task import Task

__all__ = ["Inapplicable", "Run"]

_POINTS = 256  # that stand for the space


@dataclass(frozen=True, eq=False)
class Run:
    """A subject with the model of its task. What is costly is computed once, when it is first needed.

    Args:
        subject: The prior, the new task so far and the suggested points.
        model: The prior conditioned on the task.
        seed: Decides the points that stand for the space.
    """

    subject: Subject
    model: Model
    seed: int = 0

    @classmethod
    def of(cls, subject: Subject, *, seed: int = 0) -> Run:
        """Condition the prior on the task, unless the subject brings its model."""
        model = subject.model
        if model is None:
            model = subject.prior.condition(subject.task, seed=seed)
        return cls(subject, model, seed)

    @property
    def prior(self) -> MetaPrior:
        """What was learned from the past."""
        return self.subject.prior

    @property
    def task(self) -> Task:
        """The new task so far."""
        return self.subject.task

    @property
    def sign(self) -> float:
        """The factor that turns the task's y into the user's objective: -1 if that is minimized."""
        return 1.0 if self.subject.maximize else -1.0

    @property
    def method(self) -> str:
        """The method's name."""
        return type(self.prior.method).__name__

    @property
    def past(self) -> tuple[str, ...]:
        """The names of the past tasks that the method uses."""
        return self.prior.names if self.prior.method.uses_past else ()

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that vary."""
        return parameters_of(self.subject.space, self.prior.d)

    @cached_property
    def points(self) -> Tensor:
        """Points, `n x d`, that stand for the whole space."""
        return sample(self.parameters, _POINTS, seed=self.seed)

    @cached_property
    def sensitivities(self) -> Tensor:
        """The sensitivity of every parameter that varies."""
        return sensitivities(self.model, self.parameters, self.points)

    def by_sensitivity(self) -> tuple[list[Parameter], list[float]]:
        """The parameters, the most sensitive first, and their sensitivities."""
        order = self.sensitivities.argsort(descending=True, stable=True)
        return [self.parameters[i] for i in order.tolist()], self.sensitivities[order].tolist()

    @cached_property
    def suggestions(self) -> list[Suggestion]:
        """The numbers of each suggested point; empty if no point was suggested."""
        X = self.subject.suggestions
        if X is None:
            return []
        return suggestions_at(
            X,
            self.model,
            space=self.subject.space,
            parameters=self.parameters,
            sign=self.sign,
            observed=self.observed_range,
        )

    @cached_property
    def observed_range(self) -> tuple[float, float] | None:
        """The smallest and the largest value of the objective in all tasks, past and new.

        None if there is no value. Tasks of one objective may have different levels, so that the range
        of all is wider than what is possible in the new one; it is no estimate.
        """
        tasks = [*(self.prior.meta if self.prior.names else ()), self.task]
        values = [self.sign * task.y for task in tasks if task.n]
        if not values:
            return None
        return float(min(y.min() for y in values)), float(max(y.max() for y in values))

    @cached_property
    def verdict(self) -> Verdict | None:
        """Which past tasks the new one is like; None if the model does not tell."""
        return verdict_of(self.model)

    @cached_property
    def comparison(self) -> Comparison:
        """Leave-one-out predictions with the past and without it.

        Raises:
            Inapplicable: If `leave_one_out.compare` does.
        """
        return compare(self)

    @cached_property
    def before_data(self) -> Model | None:
        """The model without the test data, at the learned weights; None if it has no such form."""
        return self.model.before_data() if isinstance(self.model, LeaveOneOutModel) else None

    def prediction(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the user's objective, n each, at `n x d`."""
        self.check_units()
        mean, deviation = moments(self.model, X)
        return self.sign * mean, deviation

    @cached_property
    def best(self) -> int | None:
        """The number of the best observation, from 0; None if there is none."""
        return int(self.task.y.argmax()) if self.task.n else None

    @cached_property
    def center(self) -> Tensor:
        """The point, d, through which slices run.

        It is the best observation; without observations the first suggestion; without either, the point
        with the largest mean.
        """
        if self.best is not None:
            return self.task.X[self.best]
        if self.subject.suggestions is not None:
            return self.subject.suggestions[0]
        mean, _ = moments(self.model, self.points)
        return self.points[int(mean.argmax())]

    def check_units(self) -> None:
        """Refuse models that do not predict y itself."""
        if not predicts_values(self.model):
            raise Inapplicable(
                f"{self.method} predicts the rank of a value, not the value itself, so there is no "
                "expected value to show."
            )

    def check_past(self) -> None:
        """Refuse methods that ignore the past tasks that they were given."""
        if self.prior.names and not self.past:
            raise Inapplicable(f"{self.method} does not use the past tasks.")

    def check_varies(self) -> None:
        """Refuse a prediction that is the same everywhere because nothing was observed yet."""
        self.check_units()
        if not self.task.n and not bool((self.sensitivities > 0).any()):
            raise Inapplicable("Nothing is known yet: the expected value is the same everywhere.")
