"""Past experiments and a new task, from a table or an Optuna storage, and what to try next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from scaml.data import Task, check_integer
from scaml.errors import SettingError, StorageError, nearest
from scaml.learning import learn
from scaml.loop import choose_new
from scaml.methods.base import Method, check_seed
from scaml.methods.scaml import ScaML
from scaml.report.run import Inapplicable, Run
from scaml.report.shares import Parts
from scaml.report.subject import Subject, of_study
from scaml.sampler import ScaMLSampler
from scaml.sheets import Sheet

__all__ = ["Progress", "Suggestion", "of_sheet", "of_storage", "suggestions"]

Progress = Callable[[str, int, int | None], None]
"""Told what is done now, how many steps of it are done, and out of how many; None if nobody knows."""

_LEARNING = "Learning from the past tasks"


@dataclass(frozen=True)
class Suggestion:
    """An experiment to do next.

    Args:
        params: The values of the parameters, with as many digits as somebody sets.
        expected: The value that is expected; None where a method does not predict values.
        deviation: Its standard deviation.
        behind: How far each past task moves the expectation, the largest first.
    """

    params: dict[str, Any]
    expected: float | None
    deviation: float | None
    behind: dict[str, float]


def of_sheet(
    sheet: Sheet,
    *,
    maximize: bool,
    q: int = 1,
    method: Method | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Subject:
    """Learn from the past tasks of a table, and suggest for its new task.

    Args:
        sheet: The table.
        maximize: Whether large values of the objective are good.
        q: Number of experiments to do at once.
        method: ScaML-GP by default.
        seed: Decides every random draw.
        n_jobs: Processes of the meta-fit.
        progress: Told at the beginning of every stage, and after steps of it.
    """
    q, seed = check_integer(q, "q", least=1), check_seed(seed)
    tell: Progress = progress or (lambda what, done, total: None)
    if sheet.past:
        tell(_LEARNING, 0, None)
    sign = 1.0 if maximize else -1.0
    past = [replace(task, y=[sign * value for value in task.y]) for task in sheet.past]
    prior, matching = learn(
        past,
        sheet.space,
        method or ScaML(),
        seed=seed,
        n_jobs=n_jobs,
        progress=partial(tell, _LEARNING),
    )
    tell("Choosing what to try next", 0, None)
    task = Task.empty(sheet.space.d)
    if sheet.task.y:
        X = sheet.space.encode_all(sheet.task.params)
        task = Task(X, [sign * value for value in sheet.task.y])
    model = prior.condition(task, seed=seed)
    pending = sheet.space.encode_all(sheet.pending)
    return Subject(
        prior=prior,
        task=task,
        space=sheet.space,
        objective=sheet.objective,
        maximize=maximize,
        matching=matching,
        suggestions=choose_new(prior, model, task, q, pending, seed),
        title=sheet.task.name,
        model=model,
    )


def of_storage(
    storage: str,
    study: str,
    past: str,
    *,
    q: int = 1,
    method: Method | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Subject:
    """Learn from past studies of an Optuna storage, and suggest for a new one; nothing is written.

    Args:
        storage: Its address, such as sqlite:///hpo.db.
        study: The name of the new study, which need not be there yet.
        past: A pattern of the names of past studies, such as "xgb-*".
        q: Number of trials to run at once.
        method: ScaML-GP by default.
        seed: Decides every random draw.
        n_jobs: Processes of the meta-fit.
        progress: Told at the beginning of every stage.
    """
    names = _names(storage)
    chosen = [name for name in names if fnmatchcase(name, past) and name != study]
    if not chosen:
        others = [name for name in names if name != study]
        hint = f"perhaps {nearest(past, others)!r}" if others else "but it has no other study"
        raise SettingError(f"No past study of the storage has a name like {past!r}; {hint}.")
    if progress is not None:
        progress("Learning from the past studies", 0, None)
    studies = [optuna.load_study(study_name=name, storage=storage) for name in chosen]
    sampler = ScaMLSampler(meta_studies=studies, method=method, seed=seed, n_jobs=n_jobs)
    if study in names:
        new = optuna.load_study(study_name=study, storage=storage, sampler=sampler)
    else:
        new = optuna.create_study(study_name=study, direction=studies[0].direction, sampler=sampler)
    return of_study(new, q=q, seed=seed)


def _names(storage: str) -> list[str]:
    """The names of all studies; a database that is not there is not made."""
    try:
        url = make_url(storage)
        if url.drivername.startswith("sqlite") and not Path(url.database or "").is_file():
            raise SettingError(
                f"There is no database {url.database!r}; give the address of one that is there, such "
                "as sqlite:///hpo.db."
            )
        return list(optuna.get_all_study_names(storage))
    except (SQLAlchemyError, OSError, ImportError, optuna.exceptions.StorageInternalError) as error:
        raise StorageError(
            f"The storage cannot be opened ({type(error).__name__}); give an address such as "
            "sqlite:///hpo.db, and check that the database answers."
        ) from error


def suggestions(subject: Subject, *, seed: int = 0) -> list[Suggestion]:
    """What is known of each of the subject's suggestions.

    Args:
        subject: With a space.
        seed: Of the model's fit.
    """
    run, X, space = Run.of(subject, seed=seed), subject.suggestions, subject.space
    if X is None or space is None:
        return []
    try:
        mean, deviation = (values.tolist() for values in run.shown(X))
    except Inapplicable:
        mean = deviation = [None] * len(X)
    parts = Parts.of(run.model)
    found = []
    for i, x in enumerate(X):
        behind = {}
        if parts is not None:
            moves = (run.sign * parts.means(x[None])[:-1, 0]).tolist()
            moved = sorted(zip(parts.names, moves, strict=True), key=lambda pair: -abs(pair[1]))
            behind = {name: move for name, move in moved if move}
        found.append(Suggestion(space.rounded(space.decode(x)), mean[i], deviation[i], behind))
    return found
