"""Past Optuna studies as past tasks, and which of their trials were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import optuna
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from scaml.common.wording import counted
from scaml.errors import DatabaseError, SettingError
from scaml.tasks.arrays import LARGEST_Y
from scaml.tasks.past_task import MOST_TRIALS, PastTask, thinned

__all__ = ["PastStudies", "negated", "read_studies", "storage_errors", "values_of"]


@dataclass(frozen=True)
class PastStudies:
    """The usable trials of past studies as past tasks; y of a minimized study has its sign flipped."""

    tasks: tuple[PastTask, ...]
    directions: tuple[StudyDirection, ...]  # of the studies
    fingerprints: tuple[tuple[str, str], ...]
    left_out: Counter[str] = field(default_factory=Counter)  # number of trials by reason

    def __str__(self) -> str:
        trials = sum(len(task.y) for task in self.tasks)
        text = f"{counted(len(self.tasks), 'past study').replace('studys', 'studies')}, "
        text += f"{counted(trials, 'trial')} used"
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
        )


def read_studies(studies: Iterable[Study]) -> PastStudies:
    """The usable trials of past studies as past tasks.

    Trials that failed, were pruned, are running or waiting, or have a value that is not finite, are
    left out. A study with fewer than two usable trials is left out. Of a study with more than
    `MOST_TRIALS` usable trials, `thinned` chooses that many: half are the best trials, half are drawn
    at random from the rest.
    """
    if isinstance(studies, Study) or not isinstance(studies, Iterable):
        raise SettingError(
            f"meta_studies is a {type(studies).__name__}; give a list of Optuna studies."
        )
    tasks, directions, fingerprints = [], [], []
    left_out: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for study in studies:
        direction, trials = _open(study)
        usable = [
            trial
            for trial in trials
            if (reason := _refused(trial)) is None or left_out.update([reason])
        ]
        space = optuna.search_space.intersection_search_space(usable)
        if len(usable) < 2 or not space:
            left_out["in studies with fewer than 2 usable trials"] += len(usable)
            continue
        y = values_of(usable, direction)
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
    return PastStudies(tuple(tasks), tuple(directions), tuple(fingerprints), +left_out)


def negated(study: Study) -> Study:
    """A copy in memory of the usable trials: the other direction, all values with the other sign."""
    direction, trials = _open(study)
    other = StudyDirection.MINIMIZE if direction == StudyDirection.MAXIMIZE else StudyDirection.MAXIMIZE
    copy = optuna.create_study(study_name=study.study_name, direction=other)
    copy.add_trials(
        optuna.trial.create_trial(
            params=trial.params, distributions=trial.distributions, value=-float(trial.value or 0.0)
        )
        for trial in trials
        if _refused(trial) is None
    )
    return copy


def values_of(trials: Iterable[FrozenTrial], direction: StudyDirection) -> list[float]:
    """The values of finished trials so that larger is better: a minimized objective is negated."""
    sign = 1.0 if direction == StudyDirection.MAXIMIZE else -1.0
    return [sign * float(trial.value or 0.0) for trial in trials]


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


def _refused(trial: FrozenTrial) -> str | None:
    """Why a trial cannot be used; None if it can."""
    if trial.state != TrialState.COMPLETE:
        return "failed" if trial.state == TrialState.FAIL else trial.state.name.lower()
    value = trial.value
    return None if value is not None and abs(value) <= LARGEST_Y else "not finite"


def _fingerprint(study: Study, trials: Sequence[FrozenTrial]) -> tuple[str, str]:
    """Equal for two `Study` objects of the same study, even if they use different connections."""
    return study.study_name, str(trials[0].datetime_start) if trials else ""


@contextmanager
def storage_errors(study: Study) -> Iterator[None]:
    """Raise a `DatabaseError` if the storage does not answer, with its address but no password."""
    try:
        yield
    except (SQLAlchemyError, OSError, optuna.exceptions.StorageInternalError) as error:
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
