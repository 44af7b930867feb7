"""The objectives of the sampler's benchmark, and studies of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import optuna

__all__ = ["PAST", "PAST_TRIALS", "SPACES", "Space", "objective", "past_studies", "random_study"]

PAST, PAST_TRIALS = 20, 100

Space = Callable[[optuna.Trial], list[float]]


def numbers(trial: optuna.Trial) -> list[float]:
    """Eight floats."""
    return [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(8)]


def mixed(trial: optuna.Trial) -> list[float]:
    """Eight parameters of all kinds."""
    return [
        trial.suggest_float("a", 0.0, 1.0),
        trial.suggest_float("b", 1e-3, 1.0, log=True),
        trial.suggest_float("c", 0.0, 1.0),
        trial.suggest_int("layers", 1, 10) / 10,
        trial.suggest_int("units", 1, 200, log=True) / 200,
        ("x", "y", "z").index(trial.suggest_categorical("kind", ["x", "y", "z"])) / 2,
        trial.suggest_float("dropout", 0.0, 2.0, step=0.25) / 2,
        float(trial.suggest_categorical("flag", [True, False])),
    ]


SPACES: dict[str, Space] = {"8 floats": numbers, "8 mixed": mixed}


def objective(x: list[float], shift: float) -> float:
    """A bowl with waves, to be minimized."""
    z = np.array(x) - 0.5 - shift
    return float((z**2).sum() + 0.1 * np.sin(8.0 * z).sum())


def random_study(space: Space, shift: float, n: int, seed: int) -> optuna.Study:
    """A study of n random trials of a shifted bowl."""
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=seed), study_name=f"random-{seed}"
    )
    study.optimize(lambda trial: objective(space(trial), shift), n_trials=n)
    return study


def past_studies(space: Space, seed: int) -> list[optuna.Study]:
    """Twenty studies whose optima lie around the centre."""
    rng = np.random.default_rng(seed)
    return [
        random_study(space, 0.1 * rng.standard_normal(), PAST_TRIALS, 1000 * seed + i)
        for i in range(PAST)
    ]
