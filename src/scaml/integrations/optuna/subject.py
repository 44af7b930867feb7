"""`of_study` and `of_storage`: suggest for an Optuna study, and collect what explains it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import optuna
from optuna.study import Study, StudyDirection

from scaml.ask import choose_new
from scaml.common.checks import check_integer, check_seed
from scaml.common.progress import Progress
from scaml.common.wording import nearest
from scaml.errors import DatabaseError, SettingError
from scaml.explain.subject import Subject
from scaml.integrations.optuna.past_studies import raised_by_storages
from scaml.integrations.optuna.sampler import ScaMLSampler
from scaml.methods.base import Method

__all__ = ["of_storage", "of_study"]


def of_study(study: Study, *, q: int = 1, seed: int = 0) -> Subject:
    """Suggest for an Optuna study whose sampler is a `ScaMLSampler`; nothing is added to the study.

    Args:
        study: A study of one objective.
        q: Number of suggestions to make.
        seed: Decides the suggestions. The study draws its own seeds, so its next trial may differ.

    Returns:
        The prior, the trials so far and the suggested points.
    """
    q = check_integer(q, "q", least=1)
    if not isinstance(study.sampler, ScaMLSampler):
        raise SettingError(
            f"The study's sampler is a {type(study.sampler).__name__}, which does not learn from past "
            "studies; give a study with a ScaMLSampler."
        )
    observed = study.sampler.prior_of(study)
    seed = check_seed(seed)
    model = observed.prior.condition(observed.task, seed=seed)
    return Subject(
        prior=observed.prior,
        task=observed.task,
        space=observed.space,
        objective=_objective(study),
        maximize=study.direction == StudyDirection.MAXIMIZE,
        matching=observed.matching,
        suggestions=choose_new(observed.prior, model, observed.task, q, observed.pending, seed),
        title=study.study_name,
        model=model,
    )


def _objective(study: Study) -> str:
    """The user's name of the objective, or "value", as Optuna calls it."""
    names: Any = study.metric_names
    return str(names[0]) if names else "value"


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
    """Learn from past studies of an Optuna storage, and suggest for a new study; nothing is written.

    Args:
        storage: The address of the storage, such as sqlite:///hpo.db.
        study: The name of the new study, which need not exist yet.
        past: A pattern of the names of past studies, such as "xgb-*".
        q: Number of trials to run at once.
        method: The meta-learning method; ScaML-GP by default.
        seed: Decides every random draw.
        n_jobs: Processes of the meta-fit.
        progress: Called at the beginning of every stage.

    Returns:
        The prior, the trials so far and the suggested points.
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
    """The names of all studies; a database that does not exist is not created."""
    from sqlalchemy.engine import make_url

    try:
        url = make_url(storage)
        if url.drivername.startswith("sqlite") and not Path(url.database or "").is_file():
            raise SettingError(
                f"There is no database {url.database!r}; give the address of one that is there, such "
                "as sqlite:///hpo.db."
            )
        return list(optuna.get_all_study_names(storage))
    except raised_by_storages(ImportError) as error:
        raise DatabaseError(
            f"The storage cannot be opened ({type(error).__name__}); give an address such as "
            "sqlite:///hpo.db, and check that the database answers."
        ) from error
