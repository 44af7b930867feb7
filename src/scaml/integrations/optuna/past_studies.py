"""Past Optuna studies as past tasks: what of them is usable, and what was left out."""

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

__all__ = ["PastStudies", "negated", "read_studies", "storage_errors"]


@dataclass(frozen=True)
class PastStudies:
    """The usable trials of past studies, values as Optuna has them."""

    tasks: tuple[PastTask, ...]  # y not flipped yet: the direction is the study's
    directions: tuple[StudyDirection, ...]
    fingerprints: tuple[tuple[str, str], ...]
    left_out: Counter[str] = field(default_factory=Counter)  # trials, by reason

    def __str__(self) -> str:
        trials = sum(len(task.y) for task in self.tasks)
        text = f"{counted(len(self.tasks), 'past study').replace('studys', 'studies')}, "
        text += f"{counted(trials, 'trial')} used"
        reasons = [f"{number} {reason}" for reason, number in sorted(self.left_out.items())]
        return text + (f"; left out: {', '.join(reasons)}" if reasons else "")

    def for_direction(self, direction: StudyDirection) -> list[PastTask]:
        """Tasks with y so that larger is better; refuses studies of the other direction."""
        other = [t.name for t, d in zip(self.tasks, self.directions, strict=True) if d != direction]
        if other:
            raise SettingError(
                f"The new study is to {direction.name.lower()}, but the past "
                f"{', '.join(map(repr, other[:5]))} {'is' if len(other) == 1 else 'are'} of the other "
                "direction; give scaml.negated(study), a copy with the signs of its values flipped."
            )
        sign = 1.0 if direction == StudyDirection.MAXIMIZE else -1.0
        return [
            PastTask(t.name, t.distributions, t.params, [sign * value for value in t.y])
            for t in self.tasks
        ]

    def without(self, study: Study) -> PastStudies:
        """All but the study itself: it is not its own past."""
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
    """The usable trials of past studies.

    Failed, pruned, running and waiting trials and values that are not finite are left out, and so is
    a study with fewer than two trials that are left. Of a very long study the better half of
    `MOST_TRIALS` are its best trials, the others a random choice of the rest.
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
            left_out["in studies of fewer than 2 usable trials"] += len(usable)
            continue
        values = [float(trial.value or 0.0) for trial in usable]
        kept = [usable[i] for i in thinned(values, minimize=direction == StudyDirection.MINIMIZE)]
        left_out[f"beyond the {MOST_TRIALS} kept of one study"] += len(usable) - len(kept)
        name = study.study_name
        while name in names:
            names[study.study_name] += 1
            name = f"{study.study_name} ({names[study.study_name]})"
        names[name] += 1
        tasks.append(
            PastTask(name, space, [t.params for t in kept], [float(t.value or 0.0) for t in kept])
        )
        directions.append(direction)
        fingerprints.append(_fingerprint(study, trials))
    return PastStudies(tuple(tasks), tuple(directions), tuple(fingerprints), +left_out)


def negated(study: Study) -> Study:
    """A copy in memory of the finished trials, of the other direction and with the signs flipped."""
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


def _open(study: Study) -> tuple[StudyDirection, list[FrozenTrial]]:
    """Direction and trials of a study, or a sentence of why there are none."""
    if not isinstance(study, Study):
        raise SettingError(
            f"A past study is a {type(study).__name__}; give Optuna studies, for example from "
            "optuna.load_study."
        )
    with storage_errors(study):
        if len(study.directions) > 1:
            raise SettingError(
                f"The past study {study.study_name!r} has {len(study.directions)} objectives; give "
                "studies of one objective."
            )
        return study.direction, study.get_trials(deepcopy=False)


def _refused(trial: FrozenTrial) -> str | None:
    """Why a trial cannot be used; None if it can."""
    if trial.state != TrialState.COMPLETE:
        return trial.state.name.lower()
    value = trial.value
    return None if value is not None and abs(value) <= LARGEST_Y else "not finite"


def _fingerprint(study: Study, trials: Sequence[FrozenTrial]) -> tuple[str, str]:
    """Tells whether two Study objects, perhaps of two connections, are the same study."""
    return study.study_name, str(trials[0].datetime_start) if trials else ""


@contextmanager
def storage_errors(study: Study) -> Iterator[None]:
    """Turn a storage that does not answer into one sentence that names it, without its password."""
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
