r"""From D_t to the posterior probabilities of explanations, and θ_t of those that matter.

All explanations are screened at a few fixed hyperparameters. The best tasks and groups, the past as a
whole and none are then fitted in one lock-step batch, and their evidences (`evidence`) give posterior
probabilities. The cost of a fit does not depend on M.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from scaml.errors import FitError
from scaml.gp.minimize import Flags, Floats, Places, minimize
from scaml.gp.packed_likelihood import product, unpacked
from scaml.gp.task_gps import TaskGPs
from scaml.model.evidence import Problem, log_evidence
from scaml.model.explanations import Explanations
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.normalization import Scaling
from scaml.model.past_at_rows import PastAtRows
from scaml.model.screening import data_scale, screen
from scaml.model.verdict import ProbableExplanation, Verdict
from scaml.tasks.task import Task

__all__ = ["LEAST_PROBABLE", "Explained", "explain_task"]

_FITTED_TASKS, _FITTED_GROUPS = 4, 3
LEAST_PROBABLE = 0.01
"""Less probable explanations are no members of the average."""
_MOST_NOISE = 0.1  # variance at which explanations are screened, in units of the data's
_SAME_BASIN = 0.1  # in prior standard deviations
_ROUGH, _EXACT = 1e-3, 1e-6  # nats per observation


@dataclass(frozen=True, eq=False)
class Explained:
    """Posterior probabilities of all explanations, and θ_t of those that matter.

    Args:
        log_probability: E, of all explanations; those that were only screened are estimates.
        log_member: Log probabilities of the members, which add up to 1.
        theta: θ_t of each member.
        factor: e^s of each member.
    """

    log_probability: Tensor
    log_member: Tensor
    theta: list[Hyperparameters]
    factor: list[Tensor]

    def verdict(
        self, explanations: Explanations, names: Sequence[str], observations: int, *, acted_on: bool
    ) -> Verdict:
        """In the names of the past tasks."""
        matters, mirrored = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        told = []
        directions, probabilities = (
            explanations.directions.tolist(),
            self.log_probability.exp().tolist(),
        )
        for item, v, p in zip(explanations.items, directions, probabilities, strict=True):
            used = tuple(names[m] for m in item.tasks)
            told.append(ProbableExplanation(item.kind, used, item.mirrored, p))
            for m in item.tasks:
                matters[names[m]] += p
                # The direction of a mirrored explanation has the opposite sign already.
                mirrored[names[m]] += p * (v[m] < 0)
        told.sort(key=lambda one: -one.probability)
        return Verdict(tuple(told), matters, mirrored, observations, acted_on)


def explain_task(
    tasks: TaskGPs,
    explanations: Explanations,
    task: Task,
    scaling: Scaling,
    past: PastAtRows | None = None,
) -> Explained:
    """Fit the explanations that matter to the task's data.

    Without data, no single task stands out, and the members are the past as a whole, the groups and
    none.
    """
    prior = explanations.log_prior
    every = _problem(tasks, explanations, task, scaling, past or PastAtRows())
    if not task.n:
        chosen = _first(explanations)
        found, xi = prior, torch.zeros(len(explanations), every.center.shape[-1], dtype=torch.float64)
        xi = xi[chosen]
    else:
        screened = _screened(every, explanations)
        chosen = _chosen(explanations, screened + prior)
        problem = _only(every, torch.tensor(chosen))
        xi = _minima(problem, _EXACT)
        evidence = log_evidence(problem, xi)
        # What was only screened gets the least correction that a fitted one had.
        evidences = screened + (evidence - screened[chosen])[1:].min() if len(chosen) > 1 else screened
        evidences[chosen] = evidence
        found = torch.log_softmax(evidences + prior, 0)
    member = _with_the_rest(found, chosen, explanations)
    kept = [i for i, p in enumerate(member.tolist()) if p >= math.log(LEAST_PROBABLE)]
    rows = [chosen[i] for i in kept]
    theta, factor = _at(_only(every, torch.tensor(rows)), xi[kept], explanations, rows)
    return Explained(found, torch.log_softmax(member[kept], 0), theta, factor)


def _with_the_rest(found: Tensor, chosen: list[int], explanations: Explanations) -> Tensor:
    """Log probabilities of the chosen explanations; "all" stands in for those that are not fitted.

    Those are single tasks and groups that the data do not tell apart: their average is the past as a
    whole.
    """
    member = found[chosen].clone()
    left = torch.ones(len(found), dtype=torch.bool)
    left[chosen] = False
    every = [i for i, e in enumerate(chosen) if explanations.items[e].kind == "all"]
    if every and left.any():
        member[every[0]] = torch.logaddexp(member[every[0]], found[left].logsumexp(0))
    return torch.log_softmax(member, 0)


def _first(explanations: Explanations) -> list[int]:
    """The members before any data: all but single tasks, of which none stands out yet."""
    items = enumerate(explanations.items)
    return [i for i, item in items if item.kind != "task" and not item.mirrored]


def _chosen(explanations: Explanations, score: Tensor) -> list[int]:
    """None and all (both signs), the best groups and the best tasks."""
    order = score.argsort(descending=True, stable=True).tolist()
    room = {"none": 1, "all": 2, "group": _FITTED_GROUPS, "task": _FITTED_TASKS}
    chosen = []
    for i in order:
        kind = explanations.items[i].kind
        if room[kind]:
            room[kind] -= 1
            chosen.append(i)
    return sorted(chosen)


def _problem(
    tasks: TaskGPs, explanations: Explanations, task: Task, scaling: Scaling, past: PastAtRows
) -> Problem:
    """All explanations of the task."""
    mean, covariance = past.at(tasks, task.X)
    v = explanations.directions.numpy()
    E, n, d = len(explanations), task.n, task.d
    one = torch.ones(E, 1, dtype=torch.float64)
    lengthscale, noise = explanations.lengthscale, explanations.noise
    center = [
        explanations.share.unsqueeze(-1),
        0.0 * one,
        lengthscale.mu.expand(E, d),
        explanations.residual.unsqueeze(-1),
        noise.mu * one,
    ]
    spread = [
        explanations.share_spread.unsqueeze(-1),
        scaling.spread * one,
        lengthscale.sigma.expand(E, d),
        explanations.residual_spread.unsqueeze(-1),
        noise.sigma * one,
    ]
    return Problem(
        tasks.kernel,
        task.X,
        (task.y - scaling.offset) / scaling.scale,
        torch.from_numpy(product(v, mean.T)),
        torch.from_numpy(unpacked(product(np.square(v), covariance.T), n)),
        torch.cat(center, -1),
        torch.cat(spread, -1),
        float(scaling.level),
    )


def _only(problem: Problem, chosen: Tensor) -> Problem:
    """The problem of some of the explanations."""
    return replace(
        problem,
        mean=problem.mean[chosen],
        covariance=problem.covariance[chosen],
        center=problem.center[chosen],
        spread=problem.spread[chosen],
    )


def _screened(problem: Problem, explanations: Explanations) -> Tensor:
    """A rough log evidence of every explanation, E; each stands beside its mirrored self."""
    none = _only(problem, torch.zeros(1, dtype=torch.long))
    xi = _minima(none, _ROUGH, starts=1)
    x = none.natural(xi, torch.zeros(1, dtype=torch.long))[0]
    # The noise keeps its size in units of y where the scale is another one.
    noise = x[-1] + 2.0 * (x[1] - data_scale(problem))
    kernel = torch.cat([x[2:-2], noise.clamp_max(math.log(_MOST_NOISE)).unsqueeze(0)])
    with torch.inference_mode():
        plain, mirrored = screen(_only(problem, torch.arange(1, len(explanations), 2)), kernel)
    found = torch.empty(len(explanations), dtype=torch.float64)
    found[1::2], found[2::2] = plain, mirrored
    found[0] = log_evidence(none, xi)[0]
    return found


def _minima(problem: Problem, tolerance: float, *, starts: int = 2) -> Tensor:
    """ξ* of every explanation, to `tolerance` nats per observation: the best start, in lock step."""
    lower, upper = problem.bounds()
    first = _starts(problem)[:starts]
    which = torch.arange(len(problem.center)).repeat(starts)
    x0 = torch.cat(list(first))
    low, high = lower[which], upper[which]

    n, curvature = len(problem.z), problem.curvature()

    def objective(x: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = problem(x, which[rows])
        return value / n, slope / n

    def metric(x: Floats, free: Flags, rows: Places) -> Callable[[Floats], Floats]:
        bends = curvature[which.numpy()[rows]] / n
        return lambda v: v / bends

    with torch.inference_mode():
        best = minimize(
            objective,
            x0,
            low,
            high,
            which,
            same_basin=_SAME_BASIN,
            tolerance=tolerance,
            metric=metric,
        )
    if not best.value.isfinite().all():
        raise FitError(
            "No start gave a positive definite kernel matrix for the test-task; look for values of "
            "its X or y that are far larger than the others."
        )
    return best.x.clone()


def _starts(problem: Problem) -> Tensor:
    """`starts x E x (d + 4)`: the prior's center at the scale of the data; a rougher function."""
    E, p = problem.center.shape
    xi = torch.zeros(2, E, p, dtype=torch.float64)
    if problem.spread[0, 1]:
        xi[:, :, 1] = data_scale(problem) / problem.spread[0, 1]
    xi[1, :, 2:-2] = -1.0
    xi[1, :, -2] = 1.0
    return xi


def _at(
    problem: Problem, xi: Tensor, explanations: Explanations, chosen: list[int]
) -> tuple[list[Hyperparameters], list[Tensor]]:
    """θ_t and e^s of the fitted explanations."""
    x = problem.natural(xi, torch.arange(len(xi)))
    theta, factor = [], []
    for row, i in zip(x, chosen, strict=True):
        scale, kernel = row[1].exp(), row[2:].exp()
        weights = row[0] * explanations.directions[i]
        level = problem.level / scale.square()
        theta.append(Hyperparameters(weights, kernel[:-2], kernel[-2], kernel[-1], level))
        factor.append(scale)
    return theta, factor
