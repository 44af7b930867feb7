"""`Run`: a subject with its model, and what several figures ask of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from botorch.models.model import Model
from torch import Tensor

from scaml.errors import ScaMLError
from scaml.explain.moments import moments
from scaml.explain.parameters import Parameter, parameters_of, sample
from scaml.explain.sensitivity import sensitivities
from scaml.explain.shares import past_parts_of
from scaml.explain.subject import Subject
from scaml.methods.base import MetaPrior
from scaml.model.protocols import LeaveOneOutModel
from scaml.tasks.task import Task

__all__ = ["Inapplicable", "Run"]

_POINTS = 256  # that stand for the space


class Inapplicable(ScaMLError):  # noqa: N818 - not an error: the sentence takes the figure's place
    """Why there is no such figure of this run, in one sentence."""


@dataclass(frozen=True, eq=False)
class Run:
    """A subject, conditioned once.

    Args:
        subject: What the page is about.
        model: Its prior given its task.
        seed: Decides the points that stand for the space.
    """

    subject: Subject
    model: Model
    seed: int = 0

    @classmethod
    def of(cls, subject: Subject, *, seed: int = 0) -> Run:
        """Condition the prior on the task, unless that is done."""
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
        """What y is multiplied by before it is shown."""
        return 1.0 if self.subject.maximize else -1.0

    @property
    def method(self) -> str:
        """The method's name."""
        return type(self.prior.method).__name__

    @property
    def past(self) -> tuple[str, ...]:
        """Names of the past tasks that the method uses."""
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
    def effects(self) -> Tensor:
        """The sensitivity of every parameter that varies."""
        return sensitivities(self.model, self.parameters, self.points)

    def by_effect(self) -> tuple[list[Parameter], list[float]]:
        """The parameters, those that move the expected value most first, each with its sensitivity."""
        order = self.effects.argsort(descending=True, stable=True)
        return [self.parameters[i] for i in order.tolist()], self.effects[order].tolist()

    @cached_property
    def before(self) -> Model | None:
        """The model without the test data, at the learned weights; None if it has no such form."""
        return self.model.before_data() if isinstance(self.model, LeaveOneOutModel) else None

    def check_units(self) -> None:
        """Refuse models that do not predict y itself."""
        if not getattr(self.model, "predicts_y", True):
            raise Inapplicable(
                f"{self.method} predicts the rank of a value, not the value itself, so there is no "
                "expected value to show."
            )

    def check_past(self) -> None:
        """Refuse methods that have past tasks and do not look at them."""
        if self.prior.names and not self.past:
            raise Inapplicable(f"{self.method} does not use the past tasks.")

    def check_known(self) -> None:
        """Refuse to draw what is the same everywhere: there is nothing to expect anything from."""
        self.check_units()
        if not self.task.n and not bool((self.effects > 0).any()):
            raise Inapplicable("Nothing is known yet: the expected value is the same everywhere.")

    @property
    def prior_words(self) -> str:
        """What to call the prior beside the posterior; empty where there are not both."""
        if self.before is None or not self.task.n:
            return ""
        past = past_parts_of(self.model) is not None
        return "prior: the past tasks, as weighted now" if past else "prior: before any experiment"

    @property
    def posterior_words(self) -> str:
        """What to call the expectation that counts."""
        if not self.task.n:
            return "expected from the past tasks"
        return "posterior: with the new experiments"

    def shown(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Expected value and standard deviation, n each, at `n x d`, as they are shown."""
        self.check_units()
        mean, deviation = moments(self.model, X)
        return self.sign * mean, deviation

    @cached_property
    def best(self) -> int | None:
        """The number of the best observation, from 0; None if there is none."""
        return int(self.task.y.argmax()) if self.task.n else None

    @cached_property
    def center(self) -> tuple[Tensor, str]:
        """The point, d, through which slices run, and what it is."""
        if self.best is not None:
            return self.task.X[self.best], f"the best experiment so far (number {self.best + 1})"
        if self.subject.suggestions is not None:
            return self.subject.suggestions[0], "the first suggestion"
        mean, _ = moments(self.model, self.points)
        return self.points[int(mean.argmax())], "the point that is expected to be best"
