"""Maps past tasks to the coordinates of a new space. Their parameters may differ from the new ones.

A modular model, with one GP per past task, allows this exactly:

- A parameter of the new space that a past task lacks gets inverse lengthscale 0 in its GP.
- A parameter, or a choice, that only the past task has stays in its GP. When the GP predicts, this
  parameter is held at one value.
- A number that both have is scaled by the range and scale of the new space. Another range is then only
  another part of the same axis.
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
    """How one past task was mapped to the new space."""

    name: str
    matched: tuple[str, ...] = ()  # parameters that both have
    lacking: tuple[str, ...] = ()  # parameters of the new space that it does not have
    held: Mapping[str, Any] = field(default_factory=dict)  # parameters of the past task alone: values
    left_out: int = 0  # number of rows that lie too far outside the new ranges
    ignored: str = ""  # why the task is not used at all; empty if it is used

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
    """How all past tasks were mapped to a new space: what was matched, held and ignored."""

    space: Space
    matches: tuple[Match, ...]

    @property
    def identical(self) -> bool:
        """Whether all rows of all past tasks are used, and all have exactly the new parameters."""
        return not any(m.lacking or m.held or m.left_out or m.ignored for m in self.matches)

    def __str__(self) -> str:
        if self.identical:
            n = len(self.matches)
            who = "the past task has" if n == 1 else f"all {n} past tasks have"
            return f"{who} the parameters of the new space"
        return "; ".join(map(str, self.matches))


def match(
    past: Iterable[PastTask], space: Space, *, fixed: Mapping[str, Any] | None = None
) -> tuple[list[Task], Matching]:
    """Past tasks as tasks of the new space.

    Args:
        past: The past tasks, each in its own parameters.
        space: The new space.
        fixed: Name to value: where to hold parameters that only past tasks have. By default each is
            held at its value in that task's best row.

    Returns:
        The tasks that can be used, and how every past task was mapped.
    """
    fixed = dict(fixed or {})
    results = [_match(task, space, fixed) for task in past]
    unknown = set(fixed) - {name for _, m in results for name in m.held}
    if unknown:
        raise SpaceError(
            f"fixed names {', '.join(map(repr, sorted(unknown)))}, which no past task has beyond the "
            "new space; give only parameters that past tasks have and the new space has not."
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
    """Whether both have the parameter, and it is a number in both or a choice in both."""
    mine = past.distributions.get(name)
    return mine is not None and isinstance(mine, CategoricalDistribution) == isinstance(
        space.distributions[name], CategoricalDistribution
    )


def _encode(params: Mapping[str, Any], shared: Sequence[str], space: Space) -> list[float] | None:
    """A row of X, 0 where the task lacks the parameter; None if the row lies too far outside."""
    row = [0.0] * space.d
    for name in shared:
        distribution = space.distributions[name]
        if (
            isinstance(distribution, CategoricalDistribution)
            and params[name] not in distribution.choices
        ):
            continue  # `_own_choices` adds a column for a choice that only the past task has
        try:
            columns = encode_value(name, distribution, params[name])
        except SpaceError:  # the value is not positive, but the new scale is logarithmic
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
    """The columns that only the past task has, minus the values they are held at, and these values."""
    columns: list[Tensor] = []
    held: dict[str, Any] = {}
    for name, mine in past.distributions.items():
        if name in shared:
            columns += _own_choices(name, params, space)
        elif width_of(mine):
            # If the parameter is constant in the new space, it is held at that constant.
            held[name] = fixed[name] if name in fixed else _kept(name, mine, best[name], space)
            encoded = [encode_value(name, mine, row[name]) for row in params]
            at = encode_value(name, mine, held[name])
            held_at = torch.tensor(at, dtype=torch.float64)
            columns.append(torch.tensor(encoded, dtype=torch.float64) - held_at)
    return (torch.cat(columns, dim=-1) if columns else None), held


def _kept(name: str, mine: BaseDistribution, best: Any, space: Space) -> Any:
    """The value of a parameter that is constant in the new space; `best` if the past cannot take it."""
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
    """One column per choice of a shared parameter that the new space does not have."""
    distribution = space.distributions[name]
    if not isinstance(distribution, CategoricalDistribution):
        return []
    own: list[Any] = []  # not a set: storages return tuples as lists, which have no hash
    for row in params:
        if row[name] not in distribution.choices and row[name] not in own:
            own.append(row[name])
    own.sort(key=repr)
    return [
        torch.tensor([[CHOSEN * (row[name] == choice)] for row in params], dtype=torch.float64)
        for choice in own
    ]
