"""Groups of past tasks that are alike, found from the meta-data alone.

Two past tasks are alike if their posterior means correlate over the points where the past was observed,
with either sign: a study whose objective has the other sign belongs to the group, mirrored. Average
linkage joins tasks and groups while their mean |correlation| is at least `ALIKE`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from scaml.gp.task_gps import TaskGPs
from scaml.tasks.meta_data import MetaData

__all__ = ["ALIKE", "Group", "correlations", "groups_of"]

ALIKE = 0.6
"""The least mean |correlation| inside a group. Smooth unrelated functions of three parameters correlate
by 0.2 to 0.3."""
_POINTS = 256
_MOST = 8  # groups, the largest
_FEWEST = 3  # tasks of a group: two are close to one of them


class Group(NamedTuple):
    """Past tasks that are alike."""

    tasks: tuple[int, ...]
    signs: tuple[int, ...]  # -1 for a mirrored member; the majority has 1


def groups_of(meta: MetaData, gps: TaskGPs) -> list[Group]:
    """Groups of three or more tasks, the largest first.

    Args:
        meta: The past tasks, as their GPs see them.
        gps: The GPs.
    """
    if len(meta) < _FEWEST:
        return []
    from scipy.cluster.hierarchy import fcluster, linkage

    rho = correlations(meta, gps)
    far = 1.0 - rho.abs()
    i, j = torch.triu_indices(len(meta), len(meta), 1)
    label = torch.from_numpy(fcluster(linkage(far[i, j].numpy(), "average"), 1.0 - ALIKE, "distance"))
    found = []
    for g in label.unique():
        members = (label == g).nonzero().flatten()
        if len(members) >= _FEWEST:
            # The member that the others are most like decides which of them are mirrored.
            centre = members[rho[members][:, members].abs().sum(-1).argmax()]
            signs = torch.where(rho[centre, members] < 0, -1, 1)
            signs = signs if signs.sum() >= 0 else -signs
            found.append(Group(tuple(members.tolist()), tuple(signs.tolist())))
    return sorted(found, key=lambda group: (-len(group.tasks), group.tasks))[:_MOST]


def correlations(meta: MetaData, gps: TaskGPs) -> Tensor:
    """`M x M` correlations of the tasks' means over points of the past; 0 for a flat mean."""
    X = torch.cat([task.X for task in meta])
    rows = torch.linspace(0, len(X) - 1, min(_POINTS, len(X)), dtype=torch.float64).round().long()
    means = gps.mean(X[rows])
    apart = means - means.mean(-1, keepdim=True)
    unit = torch.nan_to_num(apart / apart.norm(dim=-1, keepdim=True))
    return (unit @ unit.mT).clamp(-1.0, 1.0)
