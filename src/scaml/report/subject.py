"""`Subject`: all that a page is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botorch.models.model import Model
from optuna.study import Study, StudyDirection
from torch import Tensor

from scaml.data import Task, check_integer, check_points, counted
from scaml.errors import SettingError, SpaceError
from scaml.loop import choose_new
from scaml.matching import Matching
from scaml.methods.base import MetaPrior, check_seed
from scaml.sampler import ScaMLSampler
from scaml.space import Space

__all__ = ["Subject", "of_study"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A run to explain.

    Args:
        prior: What was learned from the past.
        task: The new task so far; may be empty.
        space: What the columns of X mean; by default what the prior knows of it.
        objective: What to call y.
        maximize: False if the task holds -y of a minimized objective; y is then shown as it was.
        matching: What was matched between the past tasks' spaces and the new one, where that is known.
        suggestions: `k x d` points to evaluate next.
        title: Of the page.
        model: The prior given the task, where somebody has it already.
    """

    prior: MetaPrior
    task: Task
    space: Space | None = None
    objective: str = "y"
    maximize: bool = True
    matching: Matching | None = None
    suggestions: Tensor | None = None
    title: str = ""
    model: Model | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.prior, MetaPrior):
            raise SettingError(
                f"The prior is a {type(self.prior).__name__}; give what meta_fit or scaml.load returns."
            )
        self.prior.check_task(self.task)
        space = self.prior.space if self.space is None else self.space
        if space is not None and space.d != self.prior.d:
            raise SpaceError(
                f"The space has {counted(space.d, 'column')} but the past tasks have {self.prior.d}; "
                "give the space that they live in."
            )
        object.__setattr__(self, "space", space)
        if self.suggestions is not None:
            points = check_points(self.suggestions, "The suggestions", d=self.prior.d)
            object.__setattr__(self, "suggestions", points if len(points) else None)


def of_study(study: Study, *, q: int = 1, seed: int = 0) -> Subject:
    """What to say of an Optuna study whose sampler is a `ScaMLSampler`.

    Args:
        study: A study of one objective.
        q: Number of suggestions to make.
        seed: Of the suggestions. The study draws seeds of its own, so its next trial may be elsewhere.
    """
    q = check_integer(q, "q", least=1)
    if not isinstance(study.sampler, ScaMLSampler):
        raise SettingError(
            f"The study's sampler is a {type(study.sampler).__name__}, which knows no past; give a "
            "study with a ScaMLSampler."
        )
    known = study.sampler.prior_of(study)
    seed = check_seed(seed)
    model = known.prior.condition(known.task, seed=seed)
    return Subject(
        prior=known.prior,
        task=known.task,
        space=known.space,
        objective=_objective(study),
        maximize=study.direction == StudyDirection.MAXIMIZE,
        matching=known.matching,
        suggestions=choose_new(known.prior, model, known.task, q, known.pending, seed),
        title=study.study_name,
        model=model,
    )


def _objective(study: Study) -> str:
    """The name that the user gave the value, or Optuna's own word for it."""
    names: Any = study.metric_names
    return str(names[0]) if names else "value"
