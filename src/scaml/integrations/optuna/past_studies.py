"""Past Optuna studies as past tasks, and which of their trials were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from scaml.common.wording import counted
from scaml.errors import DatabaseError, SettingError
from scaml.integrations.optuna.pruned_trials import final_values
from scaml.tasks.arrays import LARGEST_Y
from scaml.tasks.past_task import MOST_TRIALS, PastTask, thinned

__all__ = [
    "PastStudies",
    "negated",
    "raised_by_storages",
    "read_studies",
    "storage_errors",
    "values_of",
]


@dataclass(frozen=True)
class PastStudies:
    """The usable trials of past studies as past tasks; y of a minimized study has its sign flipped."""

    tasks: tuple[PastTask, ...]
    directions: tuple[StudyDirection, ...]  # of the studies
    fingerprints: tuple[tuple[str, str], ...]
    pruned: tuple[int, ...]  # number of pruned trials in each task
    left_out: Counter[str] = field(default_factory=Counter)  # number of trials by reason

    def __str__(self) -> str:
        trials = sum(len(task.y) for task in self.tasks)
        text = f"{counted(len(self.tasks), 'past study').replace('studys', 'studies')}, "
        text += f"{counted(trials, 'trial')} used"
        text += f" ({sum(self.pruned)} of them pruned)" if any(self.pruned) else ""
        reasons = [f"{number} {reason}" for reason, number in sorted(self.left_out.items())]
        return text + (f"; left out: {', '.join(reasons)}" if reasons else "")

    def for_direction(self, direction: StudyDirection) -> list[PastTask]:
        """All tasks; refuses studies of the other direction."""
        other = [t.name for t, d in zip(self.tasks, self.directions, strict=True) if d != direction]
        if other:
            raise SettingError(
                f"The new study is to {direction.name.lower()}, but the past "
                f"{', '.join(map(repr, other[:5]))} {'is' if len(other) == 1 else 'are'} of the other "
                "direction; give scaml.negated(study), a copy with the signs of its values flipped."
            )
        return list(self.tasks)

    def without(self, study: Study) -> PastStudies:
        """All past studies except the study itself."""
        mine = _fingerprint(study, study.get_trials(deepcopy=False))
        kept = [i for i, print_ in enumerate(self.fingerprints) if print_ != mine]
        if len(kept) == len(self.tasks):
            return self
        return replace(
            self,
            tasks=tuple(self.tasks[i] for i in kept),
            directions=tuple(self.directions[i] for i in kept),
            fingerprints=tuple(self.fingerprints[i] for i in kept),
            pruned=tuple(self.pruned[i] for i in kept),
        )


def read_studies(studies: Iterable[Study]) -> PastStudies:
    """The usable trials of past studies as past tasks.

    Trials that failed, are running or waiting, or have a value that is not finite, are left out. A
    pruned trial gets the value that `final_values` estimates. It is left out if there is no estimate,
    or if a parameter that all complete trials share is missing or has another range. A study with fewer
    than two usable trials is left out. Of a study with more than `MOST_TRIALS` usable trials, `thinned`
    chooses that many: half are the best trials, half are drawn at random from the rest.
    """
    if isinstance(studies, Study) or not isinstance(studies, Iterable):
        raise SettingError(
            f"meta_studies is a {type(studies).__name__}; give a list of Optuna studies."
        )
    tasks, directions, fingerprints, pruned = [], [], [], []
    left_out: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for study in studies:
        direction, trials = _open(study)
        values = values_of(trials, direction)
        # Only complete trials decide: one pruned before its last parameter must not remove it from all.
        space = optuna.search_space.intersection_search_space([t for t in trials if _has_value(t)])
        usable = [
            trial
            for trial in trials
            if (reason := _unusable(trial, values, space)) is None or left_out.update([reason])
        ]
        if len(usable) < 2 or not space:
            left_out["in studies with fewer than 2 usable trials"] += len(usable)
            continue
        y = [values[trial.number] for trial in usable]
        kept = thinned(y)
        left_out[f"beyond the {MOST_TRIALS} kept of one study"] += len(usable) - len(kept)
        name = study.study_name
        while name in names:
            names[study.study_name] += 1
            name = f"{study.study_name} ({names[study.study_name]})"
        names[name] += 1
        tasks.append(PastTask(name, space, [usable[i].params for i in kept], [y[i] for i in kept]))
        directions.append(direction)
        fingerprints.append(_fingerprint(study, trials))
        pruned.append(sum(usable[i].state == TrialState.PRUNED for i in kept))
    return PastStudies(tuple(tasks), tuple(directions), tuple(fingerprints), tuple(pruned), +left_out)


def negated(study: Study) -> Study:
    """A copy in memory for the other direction: all values, intermediate ones too, change their sign.

    It has the complete trials with a usable value and the pruned trials.
    """
    direction, trials = _open(study)
    other = StudyDirection.MINIMIZE if direction == StudyDirection.MAXIMIZE else StudyDirection.MAXIMIZE
    copy = optuna.create_study(study_name=study.study_name, direction=other)
    copy.add_trials(
        optuna.trial.create_trial(
            state=trial.state,
            params=trial.params,
            distributions=trial.distributions,
            value=None if trial.value is None else -trial.value,
            intermediate_values={step: -v for step, v in trial.intermediate_values.items()},
        )
        for trial in trials
        if trial.state == TrialState.PRUNED or _has_value(trial)
    )
    return copy


def values_of(trials: Sequence[FrozenTrial], direction: StudyDirection) -> dict[int, float]:
    """The values of the trials of a study by trial number, so that larger is better.

    A minimized objective is negated. The values of pruned trials are estimates. Trials that have no
    value and none that can be estimated are not in the result.
    """
    sign = 1.0 if direction == StudyDirection.MAXIMIZE else -1.0
    complete = {t.number: sign * float(t.value or 0.0) for t in trials if _has_value(t)}
    return complete | final_values(trials, complete, sign)


def _open(study: Study) -> tuple[StudyDirection, list[FrozenTrial]]:
    """Direction and trials of a study.

    Raises:
        SettingError: It is not a study, or it has several objectives.
        DatabaseError: The storage of the study does not answer.
    """
    if not isinstance(study, Study):
        raise SettingError(
            f"A past study is a {type(study).__name__}; give Optuna studies, for example from "
            "optuna.load_study."
        )
    with storage_errors(study):
        if len(study.directions) > 1:
            raise SettingError(
                f"The past study {study.study_name!r} has {len(study.directions)} objectives; give "
                "studies with one objective."
            )
        return study.direction, study.get_trials(deepcopy=False)


def _has_value(trial: FrozenTrial) -> bool:
    """Whether a trial is complete with a finite value whose square float64 can hold."""
    if trial.state != TrialState.COMPLETE:  # the value of a pruned trial is an intermediate one
        return False
    return trial.value is not None and abs(trial.value) <= LARGEST_Y


def _unusable(
    trial: FrozenTrial, values: Mapping[int, float], space: Mapping[str, BaseDistribution]
) -> str | None:
    """Why a trial cannot be used; None if it can."""
    if trial.number in values:
        same = all(trial.distributions.get(name) == space[name] for name in space)
        return None if same else "pruned with other parameters"
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        return "pruned without complete trials to compare with"
    names = {TrialState.FAIL: "failed", TrialState.COMPLETE: "not finite"}
    return names.get(trial.state, trial.state.name.lower())


def _fingerprint(study: Study, trials: Sequence[FrozenTrial]) -> tuple[str, str]:
    """Equal for two `Study` objects of the same study, even if they use different connections."""
    return study.study_name, str(trials[0].datetime_start) if trials else ""


def raised_by_storages(*further: type[Exception]) -> tuple[type[Exception], ...]:
    """What a storage raises if it does not answer, and further exceptions.

    Called by an `except` clause, thus only after an error: importing SQLAlchemy takes 0.3 s, and
    studies in memory or in journals never need it.
    """
    from sqlalchemy.exc import SQLAlchemyError

    return SQLAlchemyError, OSError, optuna.exceptions.StorageInternalError, *further


@contextmanager
def storage_errors(study: Study) -> Iterator[None]:
    """Raise a `DatabaseError` if the storage does not answer, with its address but no password."""
    try:
        yield
    except raised_by_storages() as error:
        raise DatabaseError(
            f"The storage {_address(study)} of study {study.study_name!r} does not answer "
            f"({type(error).__name__}); check that it is running and reachable."
        ) from None


def _address(study: Study) -> str:
    backend = getattr(study._storage, "_backend", study._storage)
    engine = getattr(backend, "engine", None)
    if engine:
        return str(engine.url.render_as_string(hide_password=True))
    return str(getattr(backend, "_file_path", type(backend).__name__))
