"""Past tasks in the coordinates of a new space, which they need not share.

The modular model does this exactly. A past task's kernel lives on the parameters that it has: the new
ones that it lacks get the inverse lengthscale 0. A parameter, or a choice, that only the past task has
stays in its GP and is held at one value when it predicts. Shared numbers are mapped by the new space's
range and scale, so another range is only another part of the same axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution
from torch import Tensor

from scaml.common.wording import counted
from scaml.errors import SpaceError
from scaml.spaces.space import CHOSEN, Space, encode_value, width_of
from scaml.tasks.arrays import COORDINATES
from scaml.tasks.past_task import PastTask
from scaml.tasks.task import Task

__all__ = ["Match", "Matching", "match"]


@dataclass(frozen=True)
class Match:
    """What became of one past task."""

    name: str
    matched: tuple[str, ...] = ()  # parameters that both have
    lacking: tuple[str, ...] = ()  # parameters of the new space that it does not have
    held: Mapping[str, Any] = field(default_factory=dict)  # its own parameters and the values they keep
    left_out: int = 0  # rows that lie too far outside the new ranges
    ignored: str = ""  # why the whole task is not used; empty if it is

    def __str__(self) -> str:
        if self.ignored:
            return f"{self.name!r} ignored: {self.ignored}"
        parts = [f"matched {', '.join(self.matched)}"]
        if self.lacking:
            parts.append(f"lacks {', '.join(self.lacking)}")
        if self.held:
            parts.append("held " + ", ".join(f"{name}={value!r}" for name, value in self.held.items()))
        if self.left_out:
            parts.append(f"left out {counted(self.left_out, 'row')} far outside the new ranges")
        return f"{self.name!r} {'; '.join(parts)}"


@dataclass(frozen=True)
class Matching:
    """What was matched, held and ignored between the past tasks and a new space."""

    space: Space
    matches: tuple[Match, ...]

    @property
    def identical(self) -> bool:
        """Whether every past task is used whole and has exactly the new parameters."""
        return not any(m.lacking or m.held or m.left_out or m.ignored for m in self.matches)

    def __str__(self) -> str:
        if self.identical:
            return f"all {counted(len(self.matches), 'past task')} have the parameters of the new space"
        return "; ".join(map(str, self.matches))


def match(
    past: Iterable[PastTask], space: Space, *, fixed: Mapping[str, Any] | None = None
) -> tuple[list[Task], Matching]:
    """Past tasks as tasks of the new space.

    Args:
        past: The past tasks, each in its own parameters.
        space: The new space.
        fixed: Values at which parameters that only past tasks have are held; by default each is held
            at its value in that task's best row.

    Returns:
        The tasks that can be used, and what became of every one.
    """
    fixed = dict(fixed or {})
    results = [_match(task, space, fixed) for task in past]
    unknown = set(fixed) - {name for _, m in results for name in m.held}
    if unknown:
        raise SpaceError(
            f"fixed names {', '.join(map(repr, sorted(unknown)))}, which no past task has beyond the "
            "new space; name parameters that only past tasks have."
        )
    tasks = [task for task, _ in results if task is not None]
    return tasks, Matching(space, tuple(m for _, m in results))


def _match(past: PastTask, space: Space, fixed: Mapping[str, Any]) -> tuple[Task | None, Match]:
    shared = [name for name in space.names if space.columns[name] and _alike(past, space, name)]
    lacking = tuple(name for name in space.names if space.columns[name] and name not in shared)
    if not shared:
        return None, Match(past.name, ignored="it shares no parameter with the new space")
    rows = [_encode(params, shared, space) for params in past.params]
    near = [i for i, row in enumerate(rows) if row is not None]
    if len(near) < 2:
        return None, Match(past.name, ignored=f"it has {counted(len(near), 'row')} in the new ranges")
    X = torch.tensor([rows[i] for i in near], dtype=torch.float64)
    y = torch.tensor([past.y[i] for i in near], dtype=torch.float64)
    params = [past.params[i] for i in near]
    extra, held = _extra(past, params, params[int(y.argmax())], shared, space, fixed)
    known = [name in shared for name in space.names for _ in space.columns[name]]
    task = Task(X, y, name=past.name, known=known, extra=extra)
    return task, Match(past.name, tuple(shared), lacking, held, len(rows) - len(near))


def _alike(past: PastTask, space: Space, name: str) -> bool:
    """Both have the parameter, and it is a number in both or a choice in both."""
    mine = past.distributions.get(name)
    return mine is not None and isinstance(mine, CategoricalDistribution) == isinstance(
        space.distributions[name], CategoricalDistribution
    )


def _encode(params: Mapping[str, Any], shared: Sequence[str], space: Space) -> list[float] | None:
    """A row of X, 0 where the task lacks the parameter; None if it lies too far outside."""
    row = [0.0] * space.d
    for name in shared:
        distribution = space.distributions[name]
        if (
            isinstance(distribution, CategoricalDistribution)
            and params[name] not in distribution.choices
        ):
            continue  # a choice of the past alone has a column of its own
        try:
            columns = encode_value(name, distribution, params[name])
        except SpaceError:  # not positive where the new scale is logarithmic
            return None
        for column, value in zip(space.columns[name], columns, strict=True):
            row[column] = value
    low, high = COORDINATES
    return row if all(low <= value <= high for value in row) else None


def _extra(
    past: PastTask,
    params: Sequence[Mapping[str, Any]],
    best: Mapping[str, Any],
    shared: Sequence[str],
    space: Space,
    fixed: Mapping[str, Any],
) -> tuple[Tensor | None, dict[str, Any]]:
    """The columns that only the past task has, measured from the values they are held at."""
    columns: list[Tensor] = []
    held: dict[str, Any] = {}
    for name, mine in past.distributions.items():
        if name in shared:
            columns += _own_choices(name, params, space)
        elif width_of(mine):
            # A parameter that the new space has but does not vary is held where the new space keeps it.
            held[name] = fixed[name] if name in fixed else _kept(name, mine, best[name], space)
            encoded = [encode_value(name, mine, row[name]) for row in params]
            at = encode_value(name, mine, held[name])
            held_at = torch.tensor(at, dtype=torch.float64)
            columns.append(torch.tensor(encoded, dtype=torch.float64) - held_at)
    return (torch.cat(columns, dim=-1) if columns else None), held


def _kept(name: str, mine: BaseDistribution, best: Any, space: Space) -> Any:
    """Where the new space keeps the parameter, if the past task could go there; else its best value."""
    if name in space.names and not space.columns[name]:
        kept = space.decode([0.0] * space.d)[name]
        try:
            at = encode_value(name, mine, kept)
        except SpaceError:
            return best
        if all(COORDINATES[0] <= value <= COORDINATES[1] for value in at):
            return kept
    return best


def _own_choices(name: str, params: Sequence[Mapping[str, Any]], space: Space) -> list[Tensor]:
    """One column for each choice of a shared parameter that the new space does not offer."""
    distribution = space.distributions[name]
    if not isinstance(distribution, CategoricalDistribution):
        return []
    own: list[Any] = []  # not a set: storages give back lists where tuples went in
    for row in params:
        if row[name] not in distribution.choices and row[name] not in own:
            own.append(row[name])
    own.sort(key=repr)
    return [
        torch.tensor([[CHOSEN * (row[name] == choice)] for row in params], dtype=torch.float64)
        for choice in own
    ]
