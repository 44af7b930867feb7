r"""How well past tasks explain each other, from which the prior of explanations is learned.

Each past task m is explained by the average of the others, by the rest of its group, by each other task,
and by nothing. With $a(x)$ the explaining mean, centered over X_m, least squares gives a share c and a
residual variance v (`past_similarity`). With n_m the number of independent values that its GP's
correlations leave of N_m, the evidence of an explanation is about (BIC)

$$\log p(y_m \mid e) \approx -\tfrac12 n_m \log v - \tfrac12 \log (1 + n_m).$$

EM then gives the probabilities of the kinds, and each kind's residual variance is the mean over the
tasks that it explains. The past cannot know that the new task has a twin among strangers: each kind
keeps a least probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.task_gps import TaskGPs
from scaml.model.past_similarity import PastSimilarity
from scaml.model.task_groups import Group
from scaml.tasks.meta_data import MetaData

__all__ = ["KINDS", "LEAST", "Kind", "MutualEvidence"]

Kind = str
KINDS = ("all", "group", "task", "none")
LEAST: dict[str, float] = {"all": 0.02, "group": 0.03, "task": 0.2, "none": 0.1}
_LEAST_OF_A_TASK = 0.005
LEAST_SHARE = 0.15
"""The least prior probability of each kind."""
_USUAL = {"all": -1.0, "group": -1.5, "task": -1.5}  # log v of a kind that explains no past task
_WORTH = 1.0  # tasks that this counts for
_SPREAD = 0.7  # of log v, at least
_FEWEST_ROWS = 6
_TASKS, _ROWS = 32, 64  # that are explained: evenly spaced ones
_RIDGE = 0.05
# The grid of c and log v that the evidence is averaged over: a task that explains another one.
_SHARES = torch.tensor([0.6, 0.75, 0.9, 1.05, 1.2], dtype=torch.float64)
_RESIDUALS = torch.tensor([-3.0, -2.0, -1.0], dtype=torch.float64)
_LEAST_RESIDUAL = 1e-3
_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class MutualEvidence:
    """What the past says about explanations.

    Args:
        probability: Of each kind; 0 where there is none of it.
        residual: Mean and standard deviation of log v of each kind but "none".
    """

    probability: dict[str, float]
    residual: dict[str, tuple[float, float]]

    @classmethod
    def of(
        cls, meta: MetaData, gps: TaskGPs, groups: Sequence[Group], alike: PastSimilarity
    ) -> MutualEvidence:
        """From past tasks, as their GPs see them, their groups, and what they have in common."""
        there = ["task", "none"]
        if groups:
            there.append("group")
        if len(meta) > 1 and alike.share > LEAST_SHARE:
            there.append("all")
        rows = []
        if len(meta) > 1:
            asked = [m for m, task in enumerate(meta) if task.known.all() and task.n >= _FEWEST_ROWS]
            picked = torch.linspace(0, len(asked) - 1, min(_TASKS, len(asked))).round().long()
            rows = [_explained(asked[i], meta, gps, groups, alike) for i in picked.tolist()]
        evidence = torch.tensor([[row[kind][0] for kind in there] for row in rows], dtype=torch.float64)
        responsibility, share = _em(evidence.view(-1, len(there)), len(there))
        least = LEAST | {"task": min(LEAST["task"], _LEAST_OF_A_TASK * len(meta))}
        spare = 1.0 - sum(least[kind] for kind in there)
        probability = {kind: least[kind] + spare * float(share[i]) for i, kind in enumerate(there)}
        residual = {}
        for i, kind in enumerate(there):
            if kind in ("task", "group"):
                log_v = torch.tensor([row[kind][1] for row in rows], dtype=torch.float64)
                residual[kind] = _weighted(log_v, responsibility[:, i], _USUAL[kind])
        return cls({kind: probability.get(kind, 0.0) for kind in KINDS}, residual)


def _em(evidence: Tensor, kinds: int) -> tuple[Tensor, Tensor]:
    """Responsibilities, `tasks x kinds`, and the probabilities of the kinds."""
    share = torch.full((kinds,), 1.0 / kinds, dtype=torch.float64)
    responsibility = torch.empty(0, kinds, dtype=torch.float64)
    for _ in range(_ROUNDS if len(evidence) else 0):
        responsibility = torch.softmax(evidence + share.log(), -1)
        share = (responsibility.sum(0) + 1.0 / kinds) / (len(evidence) + 1.0)
    return responsibility, share


def _weighted(values: Tensor, weight: Tensor, usual: float) -> tuple[float, float]:
    """Weighted mean and deviation, shrunk towards what is usual."""
    total = float(weight.sum()) + _WORTH
    mean = (float((weight * values).sum()) + _WORTH * usual) / total
    square = float((weight * (values - mean).square()).sum()) + _WORTH * (usual - mean) ** 2
    return mean, math.sqrt(square / total + _SPREAD**2)


def _explained(
    m: int, meta: MetaData, gps: TaskGPs, groups: Sequence[Group], alike: PastSimilarity
) -> dict[str, tuple[float, float]]:
    """log evidence and log v of each kind."""
    task = meta[m]
    chosen = torch.linspace(0, task.n - 1, min(_ROWS, task.n), dtype=torch.float64).round().long()
    z = (task.y[chosen] - gps.y_mean[m]) / gps.y_std[m]
    z = z - z.mean()
    X = task.X[chosen]
    means, variances = gps.mean(X), gps.variance(X).mean(-1)
    means = means - means.mean(-1, keepdim=True)
    others = torch.arange(len(meta)) != m
    directions = [others / others.sum()]
    mates = [(k, sign) for g in groups if m in g.tasks for k, sign in zip(*g, strict=True) if k != m]
    if mates:
        v = torch.zeros(len(meta), dtype=torch.float64)
        v[[k for k, _ in mates]] = torch.tensor([sign for _, sign in mates], dtype=torch.float64)
        directions.append(v / len(mates))
    V = torch.cat([torch.stack(directions), torch.eye(len(meta), dtype=torch.float64)[others]])
    n = _independent(gps, m, chosen)
    a, variance = V @ means, V.square() @ variances
    evidence, log_v = _evidence(z, a, variance, n, _SHARES, _RESIDUALS)
    around = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    evidence[0] = _evidence(
        z,
        a[:1],
        variance[:1],
        n,
        (alike.share + alike.share_spread * around).clamp_min(0.0),
        alike.residual.mu + alike.residual.sigma * around,
    )[0][0]
    tasks = evidence[len(directions) :]
    best = len(directions) + int(tasks.argmax())
    nothing = -0.5 * n * float(z.square().mean())
    return {
        "all": (float(evidence[0]), float(log_v[0])),
        "group": (float(evidence[1]), float(log_v[1])) if mates else (-math.inf, 0.0),
        "task": (float(tasks.logsumexp(0)) - math.log(len(tasks)), float(log_v[best])),
        "none": (nothing, 0.0),
    }


def _evidence(
    z: Tensor, a: Tensor, variance: Tensor, n: float, shares: Tensor, residuals: Tensor
) -> tuple[Tensor, Tensor]:
    """Log evidences of explaining means, `e x n`, averaged over c and v, and log v by least squares."""
    c = shares[:, None, None]
    left = z.square().mean() - 2.0 * c * (a @ z / len(z)) + c.square() * a.square().mean(-1)
    total = residuals.exp()[:, None] + c.square() * variance
    density = -0.5 * n * (total.log() + left / total)  # shares x residuals x e
    share = (a @ z) / (a.square().sum(-1) + _RIDGE * len(z))
    v = (z - share.unsqueeze(-1) * a).square().mean(-1) - share.square() * variance
    return density.flatten(0, 1).logsumexp(0) - math.log(density[..., 0].numel()), v.clamp_min(
        _LEAST_RESIDUAL
    ).log()


def _independent(gps: TaskGPs, m: int, rows: Tensor) -> float:
    """How many independent values have the information of correlated ones: (tr K)² / tr K²."""
    a = gps.X[m, rows] / gps.lengthscale[m]
    K = gps.outputscale[m] * correlation(gps.kernel, squared_distance(a, a))
    K.diagonal().add_(gps.noise[m])
    K = K - K.mean(0) - K.mean(1, keepdim=True) + K.mean()
    return float(K.diagonal().sum().square() / K.square().sum())
