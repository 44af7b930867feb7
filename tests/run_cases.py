"""Small runs that the tests of explain and report share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor

from scaml import MetaData, ScaML, ScaMLGP, Space, Task
from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.gp.units import Units
from scaml.methods.base import MetaPrior
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.verdict import ProbableExplanation, Verdict
from tests.cases import ONE_MODEL, meta_data, task_of

UGLY = "<script>alert(1)</script>"
NAMES = (UGLY, "=1+1", "<b>bold</b> & $x^2$ %{x}", "2024-01-01", "a\nb\u202e\ud800")
SPACE = Space(
    {
        "rate": FloatDistribution(1e-4, 1.0, log=True),
        "<img src=x onerror=alert(1)>": CategoricalDistribution(["<i>", "2020-01-01", "3"]),
        "once": FloatDistribution(3.0, 3.0),
        "depth": IntDistribution(2, 10, step=4),
    }
)


def bowl(X: Tensor, shift: float) -> Tensor:
    return -(X - 0.3 - 0.1 * shift).square().sum(-1)


def points(n: int, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed)
    kinds = ["<i>", "2020-01-01", "3"]
    rows = [
        {
            "rate": float(10 ** rng.uniform(-4, 0)),
            "<img src=x onerror=alert(1)>": kinds[int(rng.integers(3))],
            "once": 3.0,
            "depth": int(rng.choice([2, 6, 10])),
        }
        for _ in range(n)
    ]
    return SPACE.encode_all(rows)


@cache
def ugly_prior(method: ScaML | None = None) -> MetaPrior:
    tasks = [
        Task(X := points(8, seed), bowl(X, float(seed)), name=name) for seed, name in enumerate(NAMES)
    ]
    return (method or ONE_MODEL).meta_fit(MetaData(tasks)).in_space(SPACE)


def ugly(n: int = 5, method: ScaML | None = None, **settings: Any) -> Subject:
    """Names that look like markup, formulas, dates and templates, in a space of all kinds."""
    X = points(n, 9)
    task = Task(X, bowl(X, 0.5)) if n else Task.empty(SPACE.d)
    given: dict[str, Any] = {
        "objective": "<u>loss</u>",
        "maximize": False,
        "suggestions": points(2, 7),
        "title": UGLY,
    }
    return Subject(ugly_prior(method), task, **(given | settings))


@cache
def prior_of(sizes: tuple[int, ...], d: int) -> MetaPrior:
    return ONE_MODEL.meta_fit(meta_data(sizes, d))


def run_of(n: int = 5, d: int = 2, sizes: tuple[int, ...] = (8, 7, 9), **settings: Any) -> Run:
    """A plain run in the cube."""
    prior = prior_of(sizes, d)
    task = task_of(n, d) if n else Task.empty(d)
    return Run.of(Subject(prior, task, **settings))


EXPLAINED = ScaML(weights="explained")


@cache
def explained_prior() -> MetaPrior:
    return EXPLAINED.meta_fit(meta_data((8, 7, 9), 2))


def explained_run(n: int = 6, **settings: Any) -> Run:
    """A run whose model tells which past tasks the new one is like."""
    task = task_of(n, 2) if n else Task.empty(2)
    return Run.of(Subject(explained_prior(), task, **settings))


def verdict(p: dict[str, float], *, n: int = 6, mirrored: tuple[str, ...] = ()) -> Verdict:
    """One past task alone per name, "" for none of them; the most probable first."""
    told = sorted(p.items(), key=lambda pair: -pair[1])
    explanations = [
        ProbableExplanation("task" if name else "none", (name,) if name else (), name in mirrored, q)
        for name, q in told
    ]
    matters = {name: q for name, q in p.items() if name}
    against = {name: q * (name in mirrored) for name, q in matters.items()}
    return Verdict(tuple(explanations), matters, against, n)


def without_weights(run: Run) -> Run:
    """The same run with all weights 0."""
    assert isinstance(run.model, ScaMLGP)
    model = run.model
    zero = torch.zeros_like(model.weights)
    theta = Hyperparameters(zero, model.lengthscale, model.outputscale, model.noise)
    return Run(
        run.subject, ScaMLGP(model.task_gps, run.task, Units(model.y_offset, model.y_scale), theta)
    )


@dataclass(frozen=True)
class Moments:
    """What a figure asks of a posterior."""

    mean: Tensor
    variance: Tensor


class Known:
    """A model that is a known function, with a standard deviation of 0.1."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    def posterior(self, X: Tensor) -> Moments:
        mean = self.function(X).unsqueeze(-1)
        return Moments(mean, torch.full_like(mean, 0.01))
