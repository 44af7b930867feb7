"""How many trials a `scaml.ScaMLSampler` saves when real models are tuned with Optuna.

Run as `python -m benchmarks.optuna_transfer`. Two searches, of a support vector machine and of gradient
boosting, were done before on ten real data sets, 50 trials each, all kept in one SQLite file. The same
search now starts on a data set that is not among them: with TPESampler, with GPSampler and with a
ScaMLSampler that is given the ten studies. For every seed it is counted after how many trials
ScaMLSampler is as good as the others are at their end; never counts as infinity. Medians over the seeds
are printed and written to `benchmarks/optuna_transfer.json`.

The objective is the cross-validated log loss on at most 300 rows of a data set, fixed once and for all;
the same parameters are evaluated once.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import optuna
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.report import provenance, write
from scaml import ScaML, ScaMLSampler
from scaml.methods.scaml import KernelChoice
from study.tables.data_sets import load, names

PAST = (
    "abalone",
    "baseball",
    "crime",
    "diabetes",
    "final_exam",
    "hearts",
    "labor_force",
    "penguins",
    "phishing",
    "wages",
)
NEW = "breast_cancer"
PAST_TRIALS = 50
ROWS, FOLDS, SEED = 300, 3, 0
TPE_SHARE = 5 / 3  # TPESampler has 50 trials where the others have 30
ASKED = {"TPESampler": 15, "GPSampler": 10}  # trials that ScaMLSampler may need
SHOWN = (1, 5, 10, 15, 30, 50)  # trials in the table of best values

Parameters = dict[str, Any]
Advance = Callable[[], None]

console = Console()


# The two searches.


def svm_parameters(trial: optuna.Trial) -> Parameters:
    """All five for every kernel, so that every sampler sees one space."""
    return {
        "C": trial.suggest_float("C", 1e-3, 1e3, log=True),
        "gamma": trial.suggest_float("gamma", 1e-4, 1e1, log=True),
        "kernel": trial.suggest_categorical("kernel", ["rbf", "poly", "sigmoid"]),
        "degree": trial.suggest_int("degree", 2, 5),
        "balanced": trial.suggest_categorical("balanced", [False, True]),
    }


def svm_probabilities(p: Parameters, X: Any, y: Any, folds: StratifiedKFold) -> Any:
    """Of a logistic regression on the held-out scores: Platt's way from scores to probabilities."""
    machine = SVC(
        C=p["C"],
        gamma=p["gamma"],
        kernel=p["kernel"],
        degree=p["degree"],
        class_weight="balanced" if p["balanced"] else None,
        max_iter=10_000,  # wild polynomials never end
    )
    model = make_pipeline(StandardScaler(), machine)
    scores = cross_val_predict(model, X, y, cv=folds, method="decision_function").reshape(len(y), -1)
    link = make_pipeline(StandardScaler(), LogisticRegression())
    return link.fit(scores, y).predict_proba(scores)


def boosting_parameters(trial: optuna.Trial) -> Parameters:
    """What is tuned in practice; the number of trees in steps of five."""
    return {
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 1.0, log=True),
        "max_leaf_nodes": trial.suggest_int("max_leaf_nodes", 2, 64, log=True),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 60),
        "l2_regularization": trial.suggest_float("l2_regularization", 1e-4, 1e2, log=True),
        "max_iter": trial.suggest_int("max_iter", 5, 40, step=5),
    }


def boosting_probabilities(p: Parameters, X: Any, y: Any, folds: StratifiedKFold) -> Any:
    """Of the held-out rows."""
    model = HistGradientBoostingClassifier(**p, early_stopping=False, random_state=SEED)
    return cross_val_predict(model, X, y, cv=folds, method="predict_proba")


@dataclass(frozen=True)
class Search:
    """A model with its parameters: what is suggested, and the probabilities that follow."""

    name: str
    title: str
    suggest: Callable[[optuna.Trial], Parameters]
    probabilities: Callable[[Parameters, Any, Any, StratifiedKFold], Any]


SEARCHES = (
    Search("svm", "support vector machine", svm_parameters, svm_probabilities),
    Search("boosting", "gradient boosting", boosting_parameters, boosting_probabilities),
)


@dataclass
class Objective:
    """Log loss of a search on a data set; remembers what it evaluated and how long that took."""

    search: Search
    name: str
    seconds: list[float] = field(default_factory=list)
    memory: dict[tuple[Any, ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        data = load(self.name)
        self.X, self.y = data.X, data.y
        if len(self.y) > ROWS:
            self.X, _, self.y, _ = train_test_split(
                data.X, data.y, train_size=ROWS, stratify=data.y, random_state=SEED
            )

    def __call__(self, trial: optuna.Trial) -> float:
        parameters = self.search.suggest(trial)
        key = tuple(parameters.values())
        if key not in self.memory:
            start = time.perf_counter()
            self.memory[key] = self.evaluate(parameters)
            self.seconds.append(time.perf_counter() - start)
        return self.memory[key]

    def evaluate(self, parameters: Parameters) -> float:
        """The log loss, without a look into the memory."""
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            probabilities = self.search.probabilities(parameters, self.X, self.y, folds)
        return float(log_loss(self.y, probabilities))


# The samplers, each made from the past studies and a seed.


def tpe(_past: Sequence[optuna.Study], seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's default."""
    return optuna.samplers.TPESampler(seed=seed)


def gp(_past: Sequence[optuna.Study], seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's plain Gaussian process."""
    return optuna.samplers.GPSampler(seed=seed)


def scaml(
    past: Sequence[optuna.Study], seed: int, *, kernel: KernelChoice
) -> optuna.samplers.BaseSampler:
    """Ours, which learns from the past studies."""
    return ScaMLSampler(meta_studies=list(past), method=ScaML(kernel=kernel), seed=seed)


@dataclass(frozen=True)
class Entry:
    """A sampler in the comparison and the number of trials it has."""

    name: str
    make: Callable[[Sequence[optuna.Study], int], optuna.samplers.BaseSampler]
    trials: int


def entries(trials: int, kernel: KernelChoice) -> tuple[Entry, Entry, Entry]:
    """The two others, then ours."""
    return (
        Entry("TPESampler", tpe, round(TPE_SHARE * trials)),
        Entry("GPSampler", gp, trials),
        Entry("ScaMLSampler", partial(scaml, kernel=kernel), trials),
    )


# Running.


def optimize(study: optuna.Study, objective: Objective, trials: int, advance: Advance) -> None:
    """Some trials of a study, each reported."""
    study.optimize(objective, n_trials=trials, callbacks=[lambda _study, _trial: advance()])


def past_studies(search: Search, url: str, trials: int, advance: Advance) -> list[optuna.Study]:
    """The search on every past data set, each a study of its own in the storage."""
    studies = []
    for seed, name in enumerate(PAST):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        optimize(study, Objective(search, name), trials, advance)
        # Copied at the end: a commit for every parameter takes longer than the search.
        stored = optuna.create_study(storage=url, study_name=f"{search.name} on {name}")
        stored.add_trials(study.trials)
        studies.append(stored)
    return studies


def run(
    entry: Entry, past: Sequence[optuna.Study], objective: Objective, seed: int, advance: Advance
) -> tuple[list[float], float]:
    """The best value after every trial, and the seconds a trial that the sampler took for itself."""
    evaluated = len(objective.seconds)
    start = time.perf_counter()
    study = optuna.create_study(sampler=entry.make(past, seed))
    optimize(study, objective, entry.trials, advance)
    seconds = time.perf_counter() - start - sum(objective.seconds[evaluated:])
    values = [math.inf if trial.value is None else trial.value for trial in study.trials]
    return np.minimum.accumulate(values).tolist(), seconds / entry.trials


def trials_to_reach(best: Sequence[float], target: float) -> float:
    """The first trial at which the best value is the target or better; infinity if none is."""
    return next((float(n) for n, value in enumerate(best, 1) if value <= target), math.inf)


def compare(
    search: Search,
    new: str,
    past: Sequence[optuna.Study],
    runners: Sequence[Entry],
    seeds: int,
    advance: Advance,
) -> dict[str, Any]:
    """All samplers on the new data set; the last of them against each of the others."""
    objective = Objective(search, new)
    runs = {
        entry.name: [run(entry, past, objective, seed, advance) for seed in range(seeds)]
        for entry in runners
    }
    *others, ours = runs
    reached = {
        other: [
            trials_to_reach(best, theirs[-1])
            for (best, _), (theirs, _) in zip(runs[ours], runs[other], strict=True)
        ]
        for other in others
    }
    return {
        "search": search.title,
        "new_data_set": new,
        "sampler": ours,
        "milliseconds_an_evaluation": 1e3 * float(np.mean(objective.seconds)),
        "seconds_a_trial_of_the_sampler": {
            name: float(np.median([seconds for _, seconds in results]))
            for name, results in runs.items()
        },
        "median_best_value_after_trials": {
            name: {
                str(n): float(np.median([best[n - 1] for best, _ in results]))
                for n in SHOWN
                if n <= len(results[0][0])
            }
            for name, results in runs.items()
        },
        "trials_to_reach_the_end_of": {
            other: {
                "trials_of_the_other": len(runs[other][0][0]),
                "median": finite(float(np.median(counts))),
                "asked_at_most": ASKED[other],
                "of_every_seed": [finite(count) for count in counts],
            }
            for other, counts in reached.items()
        },
    }


def finite(count: float) -> float | None:
    """JSON has no infinity: never is null."""
    return count if math.isfinite(count) else None


# Showing.


def show(result: dict[str, Any]) -> None:
    """The answer to the question, then the curves behind it."""
    ours = result["sampler"]
    title = f"{result['search']} on {result['new_data_set']}"
    answer = Table(title=f"{title}: trials of {ours} to be as good as")
    for column in ("at its end", "median", "asked: at most", "of every seed"):
        answer.add_column(column)
    for other, row in result["trials_to_reach_the_end_of"].items():
        shown = [f"{count:g}" if count is not None else "never" for count in row["of_every_seed"]]
        answer.add_row(
            f"{other}, {row['trials_of_the_other']} trials",
            "never" if row["median"] is None else f"{row['median']:g}",
            str(row["asked_at_most"]),
            " ".join(shown),
        )
    curves = Table(title=f"{title}: median best log loss")
    curves.add_column("trials", justify="right")
    medians = result["median_best_value_after_trials"]
    for name in medians:
        curves.add_column(name, justify="right")
    for n in map(str, SHOWN):
        if any(n in values for values in medians.values()):
            curves.add_row(n, *(f"{v[n]:.4f}" if n in v else "" for v in medians.values()))
    seconds = result["seconds_a_trial_of_the_sampler"]
    curves.add_row("s a trial", *(f"{value:.3f}" for value in seconds.values()))
    console.print(answer, curves)


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optuna_transfer", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="runs of every sampler")
    help_trials = "of ScaMLSampler and GPSampler; TPESampler has 5/3 as many"
    parser.add_argument("--trials", type=int, default=30, help=help_trials)
    parser.add_argument(
        "--new",
        default=NEW,
        choices=sorted(set(names()) - set(PAST)),
        metavar="DATA_SET",
        help=f"a data set that is not among the past ones, by default {NEW}",
    )
    parser.add_argument(
        "--kernel", choices=get_args(KernelChoice), default="past", help="of ScaMLSampler"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    return parser.parse_args(words)


def measure(search: Search, url: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One search: past, then present, with a progress bar."""
    runners = entries(arguments.trials, arguments.kernel)
    with Progress(console=console) as bar:
        row = bar.add_task(f"{search.title}: past studies", total=len(PAST) * PAST_TRIALS)
        past = past_studies(search, url, PAST_TRIALS, lambda: bar.advance(row))
        trials = arguments.seeds * sum(entry.trials for entry in runners)
        new = bar.add_task(f"{search.title}: {arguments.new}", total=trials)
        return compare(search, arguments.new, past, runners, arguments.seeds, lambda: bar.advance(new))


def main() -> None:
    """Measure, print, write."""
    arguments = arguments_of()
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    start = time.perf_counter()
    source = provenance(
        f"python -m benchmarks.optuna_transfer --seeds {arguments.seeds} --trials {arguments.trials} "
        f"--new {arguments.new} --kernel {arguments.kernel}"
    )
    results = []
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for search in SEARCHES:
            results.append(measure(search, f"sqlite:///{Path(folder) / 'past.db'}", arguments))
            show(results[-1])
    write(
        arguments.out,
        source,
        seconds=time.perf_counter() - start,
        past_data_sets=list(PAST),
        past_trials=PAST_TRIALS,
        rows_at_most=ROWS,
        results=results,
    )
    console.print(f"Written: {arguments.out}")


if __name__ == "__main__":
    main()
