"""`Subject`: what to explain: a prior, the new task so far, and the points that were suggested."""

from __future__ import annotations

from dataclasses import dataclass

from botorch.models.model import Model
from torch import Tensor

from scaml.common.wording import counted
from scaml.errors import SettingError, SpaceError
from scaml.methods.base import MetaPrior
from scaml.spaces.matching import Matching
from scaml.spaces.space import Space
from scaml.tasks.arrays import check_points
from scaml.tasks.task import Task

__all__ = ["Subject"]


@dataclass(frozen=True, eq=False)
class Subject:
    """What to explain: a prior, the new task so far, and the points that were suggested.

    Args:
        prior: What was learned from the past.
        task: The new task so far; may be empty.
        space: What the columns of X mean; by default the prior's space.
        objective: The name of y.
        maximize: False if the task holds -y of a minimized objective. The objective is shown with its
            own sign.
        matching: How the parameters of the past tasks were matched to the new space, if that is known.
        suggestions: `k x d` points to evaluate next.
        title: The title of the page.
        model: The prior conditioned on the task, if that was done already.
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
                "give the space of the past tasks."
            )
        object.__setattr__(self, "space", space)
        if self.suggestions is not None:
            points = check_points(self.suggestions, "The suggestions", d=self.prior.d)
            object.__setattr__(self, "suggestions", points if len(points) else None)
