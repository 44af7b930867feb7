"""Past studies, objectives and runs that the tests of `ScaMLSampler` share."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler

from scaml import MetaData, ScaML, Space, Task
from scaml.methods.base import MetaPrior

UNIT = FloatDistribution(0.0, 1.0)
BOX = {"x": UNIT, "y": UNIT}
Objective = Callable[[optuna.Trial], float]
Past = list[optuna.Study]


class Ear(logging.Handler):
    """Keeps what is said; caplog hears it twice or never, as Optuna's loggers propagate or not."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def said(self, level: int = logging.INFO) -> list[str]:
        return [record.getMessage() for record in self.records if record.levelno >= level]

    def warned(self) -> list[str]:
        return self.said(logging.WARNING)


def bowl(shift: float, sign: float = 1.0) -> Objective:
    """Lowest at x = 0.4 + shift, y = 0.6."""

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        return sign * ((x - 0.4 - shift) ** 2 + (y - 0.6) ** 2)

    return objective


def valley(trial: optuna.Trial) -> float:
    return (trial.suggest_float("x", 0.0, 1.0) - 0.7) ** 2


def study_of(
    objective: Objective, n: int = 12, *, seed: int = 0, name: str = "past", **settings: Any
) -> optuna.Study:
    study = optuna.create_study(study_name=name, sampler=RandomSampler(seed=seed), **settings)
    study.optimize(objective, n_trials=n)
    return study


def bowls(sign: float = 1.0, direction: str = "minimize") -> Past:
    return [
        study_of(bowl(shift, sign), 15, seed=i, name=f"past-{i}", direction=direction)
        for i, shift in enumerate((-0.1, 0.0, 0.1))
    ]


def valleys(n: int = 8) -> Past:
    return [study_of(valley, n, name="valley")]


def run(sampler: optuna.samplers.BaseSampler, objective: Objective, n: int, **settings: Any) -> Any:
    """The study after n trials."""
    study = optuna.create_study(sampler=sampler, **settings)
    study.optimize(objective, n_trials=n)
    return study


def params(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]


def distinct(points: Sequence[dict[str, Any]]) -> int:
    """How many points differ by more than rounding."""
    rounded = [
        {k: round(v, 4) if isinstance(v, float) else v for k, v in point.items()} for point in points
    ]
    return len({json.dumps(point, sort_keys=True) for point in rounded})


def prior_of(space: Space | None, best: Sequence[float]) -> MetaPrior:
    X = np.random.default_rng(0).random((20, len(best)))
    meta = MetaData([Task(X, -((X - best) ** 2).sum(axis=1), name="saved")])
    prior = ScaML.paper().meta_fit(meta, seed=0)
    return prior if space is None else prior.in_space(space)
