r"""Explanations: which past tasks is the new one like?

An explanation e says that the new task is, up to a scale, a level and a residual of its own, c times a
fixed combination of the past tasks:

$$f_t = c \sum_m v_{em} f_m + f_{res}, \qquad w_m = c\, v_{em}.$$

There are four kinds: "all", the average of the past; "group", the average of past tasks that are alike;
"task", one past task alone; and "none", v = 0. All but the last may be mirrored (v changes its sign).
Each has the same hyperparameters ξ = (c, s, log ℓ, log o, log σ²) with normal priors, so that their
evidences can be compared. Within the paper's model, this is a prior of the weights: a mixture over
directions instead of one density of M independent weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from scaml.gp.hyperpriors import LogScale
from scaml.gp.task_gps import TaskGPs
from scaml.model.mutual_evidence import Kind, MutualEvidence, Structure
from scaml.model.past_similarity import PastSimilarity, pooled
from scaml.model.task_groups import Group, groups_of
from scaml.tasks.meta_data import MetaData

__all__ = ["MIRRORED", "Explanation", "Explanations"]

MIRRORED = 0.05
"""The prior probability that an explanation holds with the opposite sign."""
# c of a task or a group that is like the new one.
_SHARE, _SHARE_SPREAD = 0.9, 0.3
_LENGTHSCALE, _LENGTHSCALE_SPREAD = -0.7, 0.5
# Mean and deviation of log σ², as in the paper. The past tasks' own noise is no guide: few points do
# not determine it, and its most probable value is that of its prior.
_NOISE = (-8.0, 2.0)
_OUTPUTSCALE, _OUTPUTSCALE_SPREAD = 0.0, 0.7


@dataclass(frozen=True)
class Explanation:
    """One explanation.

    Args:
        kind: Its kind.
        tasks: The past tasks that it uses, by their numbers.
        mirrored: Whether it has the opposite sign.
    """

    kind: Kind
    tasks: tuple[int, ...] = ()
    mirrored: bool = False


@dataclass(frozen=True, eq=False)
class Explanations:
    """All explanations of a new task by M past ones, and what is believed of each beforehand.

    Args:
        items: E explanations.
        directions: `E x M`, v.
        log_prior: E, log prior probabilities.
        share: E, mean of c.
        share_spread: E, its standard deviation.
        residual: E, mean of log o.
        residual_spread: E, its standard deviation.
        lengthscale: Prior of the residual's d lengthscales.
        noise: Prior of the noise variance.
        structure: Whether the past is a whole, or its tasks are strangers or fall into groups.
    """

    items: tuple[Explanation, ...]
    directions: Tensor
    log_prior: Tensor
    share: Tensor
    share_spread: Tensor
    residual: Tensor
    residual_spread: Tensor
    lengthscale: LogScale
    noise: LogScale
    structure: Structure

    def __len__(self) -> int:
        return len(self.items)

    @classmethod
    def of(cls, meta: MetaData, gps: TaskGPs, alike: PastSimilarity | None = None) -> Explanations:
        """Learn from past tasks, as their GPs see them, and from how similar they are, if known."""
        groups = _apart_from_all(groups_of(meta, gps), len(meta))
        alike = alike or PastSimilarity.of(meta, gps)
        mutual = MutualEvidence.of(meta, gps, groups, alike)
        items, directions = _enumerated(len(meta), groups)
        own = pooled(gps.outputscale.log(), _OUTPUTSCALE, _OUTPUTSCALE_SPREAD)
        residual = mutual.residual | {"none": (float(own[0]), float(own[1]))}
        residual["all"] = (float(alike.residual.mu), float(alike.residual.sigma))
        usual = (_SHARE, _SHARE_SPREAD)
        share: dict[Kind, tuple[float, float]] = {"group": usual, "task": usual, "none": (0.0, 1.0)}
        share["all"] = (float(alike.share), float(alike.share_spread))

        def by_kind(values: Mapping[Kind, tuple[float, float]]) -> tuple[Tensor, Tensor]:
            """Means and deviations of every explanation."""
            pairs = [values[item.kind] for item in items]
            mean, deviation = torch.tensor(pairs, dtype=torch.float64).T
            return mean, deviation

        log_ell = gps.lengthscale[:, : gps.d].log()
        return cls(
            items,
            directions,
            _log_prior(items, mutual.probability),
            *by_kind(share),
            *by_kind(residual),
            LogScale(*pooled(log_ell, _LENGTHSCALE, _LENGTHSCALE_SPREAD)),
            LogScale(*torch.tensor(_NOISE, dtype=torch.float64)),
            mutual.structure,
        )


def _apart_from_all(groups: Sequence[Group], tasks: int) -> list[Group]:
    """Without a group that is the whole past, none of it mirrored: that is "all"."""
    return [g for g in groups if len(g.tasks) < tasks or min(g.signs) < 0]


def _enumerated(tasks: int, groups: Sequence[Group]) -> tuple[tuple[Explanation, ...], Tensor]:
    items = [Explanation("none")]
    directions = [torch.zeros(tasks, dtype=torch.float64)]

    def add(kind: Kind, members: Sequence[int], signs: Sequence[int]) -> None:
        v = torch.zeros(tasks, dtype=torch.float64)
        v[list(members)] = torch.tensor(signs, dtype=torch.float64) / len(members)
        for mirrored in (False, True):
            items.append(Explanation(kind, tuple(members), mirrored))
            directions.append(-v if mirrored else v)

    add("all", range(tasks), [1] * tasks)
    for group in groups:
        add("group", group.tasks, group.signs)
    for m in range(tasks if tasks > 1 else 0):  # one past task alone is the past as a whole
        add("task", [m], [1])
    return tuple(items), torch.stack(directions)


def _log_prior(items: Sequence[Explanation], probability: Mapping[Kind, float]) -> Tensor:
    counts = Counter(item.kind for item in items if not item.mirrored)
    total = sum(probability[kind] for kind in counts)
    shares = []
    for item in items:
        share = probability[item.kind] / total / counts[item.kind]
        if item.kind != "none":
            share *= MIRRORED if item.mirrored else 1.0 - MIRRORED
        shares.append(share)
    return torch.tensor(shares, dtype=torch.float64).log()
