r"""How well past tasks explain each other, from which the prior of explanations is learned.

Each past task m is explained by the average of the others, by the rest of its group, by each other
task, and by nothing. With $a(x)$ the mean that explains it, centered over X_m, and $\bar\Sigma$ its
mean variance there, its standardized values are taken for n_m independent ones,

$$z_m \sim N\big(c\, a(X_m),\; v + c^2 \bar\Sigma\big),$$

where n_m is the number of independent values that the correlations of its GP leave of N_m. The evidence
is averaged over a grid of c and v of tasks that are alike. EM gives the probability of each kind of
explanation, and the tasks that a kind explains give its residual variance v.

The past is grouped if almost all of its tasks fall into groups, none of which is most of it: the
average of unlike groups explains nothing. Otherwise it is a whole if the average of the others makes
its tasks more probable than nothing does, taken together; if not, its tasks are strangers. The new task
may have a twin among strangers, of which past tasks cannot know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs
from scaml.model.past_similarity import PastSimilarity
from scaml.model.task_groups import Group
from scaml.tasks.meta_data import MetaData

__all__ = ["KINDS", "Kind", "MutualEvidence", "Structure"]

Kind = Literal["all", "group", "task", "none"]
KINDS: tuple[Kind, ...] = ("all", "group", "task", "none")
Structure = Literal["whole", "grouped", "strangers", "unknown"]

# How often each kind explains a task, before any past task is looked at; it counts for one task.
_USUAL: dict[Kind, float] = {"all": 0.4, "group": 0.2, "task": 0.2, "none": 0.2}
# How many times the probability of the average past counts. It is the safest bet where the past is a
# whole, because a wrong single task or group costs more evaluations than a wrong average. Chosen while
# looking at a few runs of four tables (svm, lr, rf, xgb) and of the families shifted, unrelated,
# one-good and two-groups.
_SAFEST: dict[Structure, float] = {"whole": 4.0, "unknown": 4.0, "strangers": 1.0, "grouped": 0.01}
# The probability that one past task is the twin of a new one that nothing else explains; chosen while
# looking at 24 runs of one-good and unrelated.
_TWIN = 0.02
# The past falls into groups if they hold at least the first share of its tasks, and the largest of them
# at most the second.
_IN_GROUPS, _LARGEST = 0.9, 2 / 3
_USUAL_RESIDUAL = -1.5  # log v of a kind that explains no past task
_WORTH = 1.0  # tasks that this counts for
_SPREAD = 0.7  # of log v, at least
_TASKS, _ROWS = 32, 64  # that are explained: evenly spaced ones
_FEWEST_ROWS = 6  # fewer values are explained by almost anything
_RIDGE = 0.05  # added to the variance of a(x): a flat one explains nothing
_LEAST_RESIDUAL = 1e-3
_ROUNDS = 50  # of EM
# c and log v of a task that explains another one.
_SHARES = torch.tensor([0.6, 0.75, 0.9, 1.05, 1.2], dtype=torch.float64)
_RESIDUALS = torch.tensor([-3.0, -2.0, -1.0], dtype=torch.float64)
_AROUND = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class MutualEvidence:
    """What the past says about explanations.

    Args:
        probability: Of each kind; 0 where there is none of it.
        residual: Mean and standard deviation of log v of groups and of tasks.
        structure: Whether the past is a whole, grouped, or its tasks are strangers; unknown if no task
            can be compared with others.
    """

    probability: dict[Kind, float]
    residual: dict[Kind, tuple[float, float]]
    structure: Structure

    @classmethod
    def of(
        cls, meta: MetaData, gps: TaskGPs, groups: Sequence[Group], alike: PastSimilarity
    ) -> MutualEvidence:
        """From past tasks, as their GPs see them, their groups, and what they have in common."""
        # One past task alone is the past as a whole.
        absent = {kind for kind, found in (("group", groups), ("task", len(meta) > 1)) if not found}
        there = [kind for kind in KINDS if kind not in absent]
        asked = [m for m, task in enumerate(meta) if task.known.all() and task.n >= _FEWEST_ROWS]
        if len(meta) < 2:
            asked = []
        picked = torch.linspace(0, len(asked) - 1, min(_TASKS, len(asked))).round().long().tolist()
        rows = [_explained(asked[i], meta, gps, groups, alike) for i in picked]
        evidence = torch.tensor(
            [[row[kind][0] for kind in there] for row in rows], dtype=torch.float64
        ).view(-1, len(there))
        usual = torch.tensor([_USUAL[kind] for kind in there], dtype=torch.float64)
        responsibility, share = _em(evidence, usual / usual.sum())
        probability = dict.fromkeys(KINDS, 0.0)
        residual: dict[Kind, tuple[float, float]] = {}
        for i, kind in enumerate(there):
            probability[kind] = float(share[i])
            if kind in ("group", "task"):
                log_v = torch.tensor([row[kind][1] for row in rows], dtype=torch.float64)
                residual[kind] = _weighted(log_v, responsibility[:, i])
        in_common = float((evidence[:, 0] - evidence[:, -1]).sum()) if rows else None
        structure = _structure(in_common, groups, len(meta))
        twin = 1.0 - (1.0 - _TWIN) ** len(meta) if "task" in there else 0.0
        probability["task"] += twin * probability["none"]
        probability["none"] -= twin * probability["none"]
        probability["all"] *= _SAFEST[structure]
        total = sum(probability.values())
        return cls({kind: p / total for kind, p in probability.items()}, residual, structure)


def _structure(in_common: float | None, groups: Sequence[Group], tasks: int) -> Structure:
    """What the past is like.

    Args:
        in_common: By how many nats the average of the others makes past tasks more probable; None
            if no task could be compared with others.
        groups: Of past tasks that are alike.
        tasks: M.
    """
    sizes = [len(group.tasks) for group in groups]
    if sum(sizes) >= _IN_GROUPS * tasks and max(sizes, default=tasks) <= _LARGEST * tasks:
        return "grouped"
    if in_common is None:
        return "unknown"
    return "whole" if in_common > 0.0 else "strangers"


def _em(evidence: Tensor, usual: Tensor) -> tuple[Tensor, Tensor]:
    """Responsibilities, `tasks x kinds`, and the probabilities of the kinds, from log evidences."""
    share = usual
    responsibility = torch.softmax(evidence + share.log(), -1)
    for _ in range(_ROUNDS):
        share = (responsibility.sum(0) + usual) / (len(evidence) + 1.0)
        responsibility = torch.softmax(evidence + share.log(), -1)
    return responsibility, share


def _weighted(log_v: Tensor, weight: Tensor) -> tuple[float, float]:
    """Weighted mean and deviation, shrunk towards what is usual."""
    total = float(weight.sum()) + _WORTH
    mean = (float((weight * log_v).sum()) + _WORTH * _USUAL_RESIDUAL) / total
    squares = float((weight * (log_v - mean).square()).sum())
    squares += _WORTH * (_USUAL_RESIDUAL - mean) ** 2
    return mean, math.sqrt(squares / total + _SPREAD**2)


def _explained(
    m: int, meta: MetaData, gps: TaskGPs, groups: Sequence[Group], alike: PastSimilarity
) -> dict[Kind, tuple[float, float]]:
    """log evidence and log v of each kind for task m; of single tasks, the mean log v."""
    task = meta[m]
    chosen = torch.linspace(0, task.n - 1, min(_ROWS, task.n), dtype=torch.float64).round().long()
    z = (task.y[chosen] - gps.y_mean[m]) / gps.y_std[m]
    z, X, n = z - z.mean(), task.X[chosen], _independent(gps, m, chosen)
    means = gps.mean(X)
    means, variances = means - means.mean(-1, keepdim=True), gps.variance(X).mean(-1)
    V, mates = _directions(m, len(meta), groups)
    a, variance = V @ means, V.square() @ variances
    log_v = _residual(z, a, variance).log()
    first = 1 + mates  # of the single tasks
    evidence = _evidence(z, a[1:], variance[1:], n, _SHARES, _RESIDUALS)
    shares = (alike.share + alike.share_spread * _AROUND).clamp_min(0.0)
    residuals = alike.residual.mu + alike.residual.sigma * _AROUND
    every = _evidence(z, a[:1], variance[:1], n, shares, residuals)
    tasks = evidence[first - 1 :]
    best = torch.softmax(tasks, 0)  # which of them it is, is not known
    return {
        "all": (float(every[0]), float(log_v[0])),
        "group": (float(evidence[0]), float(log_v[1])) if mates else (-math.inf, 0.0),
        "task": (float(tasks.logsumexp(0)) - math.log(len(tasks)), float(best @ log_v[first:])),
        "none": (-0.5 * n * float(z.square().mean()), 0.0),
    }


def _directions(m: int, tasks: int, groups: Sequence[Group]) -> tuple[Tensor, bool]:
    """v of all others, of the rest of the group of m, if it has one, and of each other task."""
    others = (torch.arange(tasks) != m).double()
    directions = [others / others.sum()]
    pairs = [zip(*group, strict=True) for group in groups if m in group.tasks]
    mates = {k: sign for pair in pairs for k, sign in pair if k != m}
    if mates:
        v = torch.zeros(tasks, dtype=torch.float64)
        v[list(mates)] = torch.tensor(list(mates.values()), dtype=torch.float64) / len(mates)
        directions.append(v)
    return torch.cat([torch.stack(directions), torch.diag(others)[others > 0]]), bool(mates)


def _evidence(
    z: Tensor, a: Tensor, variance: Tensor, n: float, shares: Tensor, residuals: Tensor
) -> Tensor:
    """Log evidences, e, of means `e x n` with their variances, averaged over a grid of c and log v."""
    c = shares[:, None, None]
    left = z.square().mean() - 2.0 * c * (a @ z / len(z)) + c.square() * a.square().mean(-1)
    total = residuals.exp()[:, None] + c.square() * variance
    density = -0.5 * n * (total.log() + left / total)  # shares x residuals x e
    return density.logsumexp((0, 1)) - math.log(len(shares) * len(residuals))


def _residual(z: Tensor, a: Tensor, variance: Tensor) -> Tensor:
    """v, e, by least squares."""
    share = (a @ z) / (a.square().sum(-1) + _RIDGE * len(z))
    left = (z - share.unsqueeze(-1) * a).square().mean(-1) - share.square() * variance
    return left.clamp_min(_LEAST_RESIDUAL)


def _independent(gps: TaskGPs, m: int, rows: Tensor) -> float:
    """How many independent values say as much as the correlated ones: (tr K)² / tr K²."""
    a = gps.X[m, rows] / gps.lengthscale[m]
    K = gps.outputscale[m] * correlation(gps.kernel, squared_distance(a, a))
    K.diagonal().add_(gps.noise[m])
    K = K - K.mean(0) - K.mean(1, keepdim=True) + K.mean()
    return float(K.diagonal().sum().square() / K.square().sum())
