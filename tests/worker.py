"""One of several processes that work on one Optuna study: `python -m tests.worker URL STUDY`.

It writes "ready" when it could begin and begins at a line on its standard input, so that a test
can let all of its workers begin together.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import optuna
from optuna.samplers import BaseSampler, RandomSampler

PAST = "past-"
PARAMETERS = {"x", "y", "z", "k", "kind"}
PAUSE = 0.05
BONUS = {"a": 0.0, "b": 0.3, "c": -0.2}


def objective(trial: optuna.Trial, shift: float = 0.0, pause: float = 0.0) -> float:
    """A bowl with its lowest point near 0.5 + shift, to be minimized; says who evaluated it."""
    trial.set_user_attr("worker", os.getpid())
    floats = [trial.suggest_float(name, 0.0, 1.0) for name in ("x", "y", "z")]
    k = trial.suggest_int("k", 0, 9)
    kind = trial.suggest_categorical("kind", sorted(BONUS))
    time.sleep(pause)
    bowl = sum((value - 0.5 - shift) ** 2 for value in floats)
    return bowl + 0.01 * (k - 4) ** 2 - BONUS[kind]


def make_sampler(kind: str, storage: optuna.storages.BaseStorage, seed: int) -> BaseSampler:
    """Over the studies of the same storage whose names say that they are past."""
    if kind == "random":
        return RandomSampler(seed=seed)
    from scaml import ScaMLSampler

    names = optuna.get_all_study_names(storage)
    past = [optuna.load_study(study_name=n, storage=storage) for n in names if n.startswith(PAST)]
    sampler: BaseSampler = ScaMLSampler(meta_studies=past, seed=seed)
    return sampler


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("study")
    parser.add_argument("--sampler", choices=["scaml", "random"], default="scaml")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=80, help="of the whole study, finished")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.get_storage(arguments.url)
    sampler = make_sampler(arguments.sampler, storage, arguments.seed)
    study = optuna.load_study(study_name=arguments.study, storage=storage, sampler=sampler)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if not sys.stdin.readline():
        return 1  # whoever started this is gone
    enough = optuna.study.MaxTrialsCallback(arguments.trials)
    study.optimize(lambda trial: objective(trial, pause=PAUSE), callbacks=[enough])
    return 0


if __name__ == "__main__":
    sys.exit(main())
