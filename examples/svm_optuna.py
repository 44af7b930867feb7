"""Tune a support vector machine on a new data set, learning from old Optuna studies in SQLite.

Four data sets that come with scikit-learn were tuned before, each in a study of its own. The fifth is
tuned now: by Optuna's TPE, which starts from nothing, and by a `ScaMLSampler` that is given the old
studies. Run it as `python examples/svm_optuna.py`; `--new wine` makes another data set the new one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import TPESampler
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from scaml import ScaMLSampler

DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
    "diabetes": load_diabetes,
    "breast_cancer": load_breast_cancer,
}
SHOWN = (1, 3, 5, 10)  # trials


def error(trial: optuna.Trial, X: Any, y: Any) -> float:
    """The share of wrong classes on held-out rows, in percent."""
    machine = SVC(
        C=trial.suggest_float("C", 1e-3, 1e3, log=True),
        gamma=trial.suggest_float("gamma", 1e-5, 1e1, log=True),
    )
    model = make_pipeline(StandardScaler(), machine)
    return 100.0 * (1.0 - float(cross_val_score(model, X, y, cv=5).mean()))


def objective(name: str, rows: int) -> partial[float]:
    """The error on some rows of a data set."""
    X, y = DATA[name](return_X_y=True)
    if name == "diabetes":  # a number, made two classes
        y = y > np.median(y)
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    return partial(error, X=X[chosen], y=y[chosen])


def past_study(name: str, storage: str, options: argparse.Namespace) -> optuna.Study:
    """The old study of a data set: from the storage, or made now if it is not there yet."""
    stored = optuna.create_study(storage=storage, study_name=f"svm-{name}", load_if_exists=True)
    if not stored.trials:
        study = optuna.create_study(sampler=TPESampler(seed=0))
        study.optimize(objective(name, options.rows), n_trials=options.past_trials)
        stored.add_trials(study.trials)  # at once: SQLite is slow to commit value by value
    print(f"  {stored.study_name:20}{len(stored.trials)} trials, best error {stored.best_value:.2f} %")
    return stored


def compare(storage: str, options: argparse.Namespace) -> None:
    """Make or load the past, then tune the new data set by both samplers."""
    print(f"Old studies in {options.storage or 'an SQLite file that is thrown away'}:")
    past = [past_study(name, storage, options) for name in DATA if name != options.new]
    shown = [n for n in SHOWN if n <= options.trials]
    print(f"New data set {options.new}, best error in % after {', '.join(map(str, shown))} trials:")
    runs = []
    for seed in range(options.seed, options.seed + options.runs):
        best = []
        for sampler in (TPESampler(seed=seed), ScaMLSampler(meta_studies=past, seed=seed)):
            study = optuna.create_study(sampler=sampler)
            study.optimize(objective(options.new, options.rows), n_trials=options.trials)
            values = np.array([trial.value for trial in study.trials], dtype=float)
            best.append(np.minimum.accumulate(values))
        runs.append(np.array(best)[:, [n - 1 for n in shown]])
        show(f"seed {seed}", runs[-1])
    show("median", np.median(runs, axis=0))
    weights = study.trials[-1].system_attrs["scaml:weights"]
    used = ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
    print(f"Weights of the old studies: {used or 'all 0'}")


def show(what: str, best: Any) -> None:
    """A line of the table."""
    tpe, ours = ("".join(f"{value:7.2f}" for value in row) for row in best)
    print(f"  {what:8}   TPE {tpe}      ScaML {ours}", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--new", default="breast_cancer", choices=DATA, help="the new data set")
    parser.add_argument(
        "--storage", metavar="URL", help="keeps the old studies, as in sqlite:///svm.db"
    )
    parser.add_argument("--past-trials", type=int, default=30, help="of each old study")
    parser.add_argument("--trials", type=int, default=10, help="of each new study")
    parser.add_argument("--runs", type=int, default=3, help="of each sampler")
    parser.add_argument("--rows", type=int, default=600, help="at most, of each data set")
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    options = parser.parse_args(argv)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        compare(options.storage or f"sqlite:///{Path(folder, 'svm.db')}", options)
    url = options.storage or "sqlite:///svm.db"
    hint = "" if options.storage else f", after a run with --storage {url}"
    print(f"The next trial, and a page about it{hint}:")
    for command in ("suggest", "report"):
        print(f"  scaml {command} --storage {url} --study new --past 'svm-*'")


if __name__ == "__main__":
    main()
