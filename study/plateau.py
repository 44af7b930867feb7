"""A new task that is flat, after past tasks that are not: does every study end without an exception?

The recipe: 40 past tasks of 64 points on a grid of 14 x 12, each a level plus one common smooth bump of
a height between 0.0003 and 0.5. The new task has one value everywhere, or two or three values in random
places, or one better point near the top of the bump (a needle). Its likelihood is then nearly flat, or
without bound as the noise goes to 0, and matrices are nearly singular.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice, product
from statistics import median

import numpy as np
import optuna
import pandas as pd
import torch
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial
from torch import Tensor

from scaml import MetaData, ScaML, ScaMLSampler, Task, suggest
from scaml.common.checks import check_integer
from scaml.common.parallel import each
from scaml.errors import SettingError
from scaml.spaces.space import Space

__all__ = [
    "GRID",
    "VALUE",
    "Outcome",
    "Plateau",
    "Variant",
    "exceptions",
    "needles",
    "run_studies",
    "variants",
]

_SHAPE = 14, 12
_TASKS, _POINTS = 40, 64
_LEVELS, _HEIGHTS = (0.5, 1.0), (-3.5, -0.3)  # of past tasks; heights as powers of ten
_CENTRE, _WIDTH = (0.2, 0.8), 0.25  # of the bump
_STREAM = 8  # of random numbers; the others belong to problems and families
_SEEDS_PER_STUDY = 10_000
VALUE = 0.6774
"""The value of the new task; of two or three values, the first."""
GRID = torch.cartesian_prod(*(torch.linspace(0.0, 1.0, n, dtype=torch.float64) for n in _SHAPE))
"""The `168 x 2` grid of all past tasks, and the table of candidates."""

_SQUARE: dict[str, BaseDistribution] = dict.fromkeys(("a", "b"), FloatDistribution(0.0, 1.0))
_MIXED = Space({"step": IntDistribution(0, _SHAPE[0] - 1), "number": FloatDistribution(0.0, 1.0)})
_SPACES = ("table", "cube", "mixed", "optuna")
_TASK_KINDS = ("1 value", "2 values", "3 values", "needle")
_METHODS: dict[str, Callable[[], ScaML]] = {
    "se": lambda: ScaML(kernel="se"),
    "matern52": lambda: ScaML(kernel="matern52"),
    "paper": ScaML.paper,
}


@dataclass(frozen=True)
class Variant:
    """What kind of study it is.

    Args:
        space: "table" for the grid as candidates, "cube" for the whole square, "mixed" for a parameter
            in steps beside a continuous one, "optuna" for the sampler with two continuous ones.
        method: "se" or "matern52" for the default with this kernel, "paper" for the paper's setting.
        task: "1 value", "2 values", "3 values" or "needle".
    """

    space: str
    method: str
    task: str

    @property
    def name(self) -> str:
        """All three words, as in "table se needle"."""
        return f"{self.space} {self.method} {self.task}"


@dataclass(frozen=True)
class Outcome:
    """How a study ended.

    Args:
        variant: What kind of study it was.
        seed: The number of the study within its variant.
        error: The class of the exception that ended the study; None if there was none.
        message: That of the exception.
        step: The number of the suggestion that raised it, from 1; the first includes the meta-fit.
        found: The number of evaluations with which the needle was found; None if it was not.
    """

    variant: Variant
    seed: int
    error: str | None = None
    message: str | None = None
    step: int | None = None
    found: int | None = None


@dataclass(frozen=True, eq=False)
class Plateau:
    """Past and new task of one study.

    Args:
        meta: The past tasks.
        values: The new task at the 168 points of the grid.
        needle: The row of the one better point; None if there is none.
    """

    meta: MetaData
    values: Tensor
    needle: int | None

    @classmethod
    def draw(cls, task: str, seed: int) -> Plateau:
        """Draw a study; the past is the same for every kind of new task.

        Args:
            task: The kind of the new task.
            seed: Decides everything random.
        """
        generator = np.random.default_rng([_STREAM, seed])
        centre = generator.uniform(*_CENTRE, 2)
        bump = np.exp(-0.5 * ((GRID.numpy() - centre) ** 2).sum(1) / _WIDTH**2)
        meta = MetaData([_past_task(m, bump, generator) for m in range(_TASKS)])
        values = torch.full((len(GRID),), VALUE, dtype=torch.float64)
        gap = 10.0 ** generator.uniform(*_HEIGHTS)  # like the heights of the past: unknown
        if task == "needle":
            needle = _beside(int(bump.argmax()), generator)
            values[needle] += gap
            return cls(meta, values, needle)
        number = int(task.split()[0])
        return cls(
            meta, values - gap * torch.from_numpy(generator.integers(number, size=len(GRID))), None
        )

    def __call__(self, x: Tensor) -> tuple[int, float]:
        """The row of the grid that is nearest to a point, and its value."""
        row = int((GRID - x).abs().mul(torch.tensor(_SHAPE) - 1).amax(-1).argmin())
        return row, self.values[row].item()


def _past_task(m: int, bump: np.ndarray, generator: np.random.Generator) -> Task:
    rows = generator.permutation(len(GRID))[:_POINTS]
    height = 10.0 ** generator.uniform(*_HEIGHTS)
    return Task(GRID[rows], generator.uniform(*_LEVELS) + height * bump[rows], name=f"past-{m}")


def _beside(row: int, generator: np.random.Generator) -> int:
    """The row, or one of its eight neighbours."""
    place = np.array(divmod(row, _SHAPE[1])) + generator.integers(-1, 2, size=2)
    i, j = np.clip(place, 0, np.array(_SHAPE) - 1).tolist()
    return int(i * _SHAPE[1] + j)


def variants(only: str = "") -> list[Variant]:
    """All variants whose name has these words.

    Args:
        only: Words such as "table se"; all variants by default.

    Raises:
        SettingError: If there is none.
    """
    known = [Variant(*key) for key in product(_SPACES, _METHODS, _TASK_KINDS)]
    found = [variant for variant in known if set(only.split()) <= set(variant.name.split())]
    if not found:
        raise SettingError(
            f"No variant has the words {only!r}; give some of "
            f"{', '.join([*_SPACES, *_METHODS, *(kind.split()[0] for kind in _TASK_KINDS)])}."
        )
    return found


def run_studies(
    chosen: Sequence[Variant],
    studies: int,
    evaluations: int,
    *,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Run studies and tell how they ended.

    Args:
        chosen: The variants, which take turns.
        studies: The number of studies in all.
        evaluations: The number of evaluations of a study.
        n_jobs: Processes to use, -1 for one per core. The result does not depend on it.
        progress: Called with the number of finished studies and the number of all studies.
    """
    check_integer(studies, "The number of studies", least=1)
    check_integer(evaluations, "The number of evaluations", least=1)
    cases = [_Case(i, chosen[i % len(chosen)], i // len(chosen), evaluations) for i in range(studies)]
    report = progress or (lambda done, total: None)
    report(0, studies)
    found: dict[int, Outcome] = {}
    for i, outcome in each(_run, cases, n_jobs):
        found[i] = outcome
        report(len(found), studies)
    return [found[i] for i in range(studies)]


@dataclass(frozen=True)
class _Case:
    number: int
    variant: Variant
    seed: int
    evaluations: int


def _run(case: _Case) -> tuple[int, Outcome]:
    plateau = Plateau.draw(case.variant.task, case.seed)
    step, found = 0, None
    try:
        for step, row in enumerate(islice(_evaluated(case, plateau), case.evaluations), start=1):
            if row == plateau.needle and found is None:
                found = step
    except Exception as error:  # any exception ends somebody's study, and counts
        ended = type(error).__name__, str(error), step + 1
        return case.number, Outcome(case.variant, case.seed, *ended, found=found)
    return case.number, Outcome(case.variant, case.seed, found=found)


def _evaluated(case: _Case, plateau: Plateau) -> Iterator[int]:
    """The rows of the grid that are evaluated, one after the other, without end."""
    method = _METHODS[case.variant.method]()
    if case.variant.space == "optuna":
        yield from _evaluated_by_optuna(method, plateau, case.seed)
    prior = method.meta_fit(plateau.meta, seed=case.seed)
    if case.variant.space == "mixed":
        prior = prior.in_space(_MIXED)
    table = GRID if case.variant.space == "table" else None
    task = Task.empty(2)
    for i in count():
        x = suggest(prior, task, candidates=table, seed=_SEEDS_PER_STUDY * case.seed + i)
        row, value = plateau(x[0])
        task = task.append(x, value)
        yield row


def _evaluated_by_optuna(method: ScaML, plateau: Plateau, seed: int) -> Iterator[int]:
    with _quiet_optuna():
        past = [_study_of(task) for task in plateau.meta]
        sampler = ScaMLSampler(meta_studies=past, method=method, search_space=_SQUARE, seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        while True:
            trial = study.ask(_SQUARE)
            row, value = plateau(torch.tensor([trial.params[name] for name in _SQUARE]))
            study.tell(trial, value)
            yield row


def _study_of(task: Task) -> optuna.Study:
    study = optuna.create_study(direction="maximize", study_name=task.name)
    study.add_trials(
        create_trial(params=dict(zip(_SQUARE, x, strict=True)), distributions=_SQUARE, value=y)
        for x, y in zip(task.X.tolist(), task.y.tolist(), strict=True)
    )
    return study


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def exceptions(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One row per space, method and kind of new task: studies, exceptions by type, and their steps."""
    rows: dict[str, dict[str, str]] = {}
    for variant in dict.fromkeys(outcome.variant for outcome in outcomes):
        ours = [outcome for outcome in outcomes if outcome.variant == variant]
        steps = [outcome.step for outcome in ours if outcome.step is not None]
        counts = Counter(outcome.error for outcome in ours if outcome.error is not None)
        rows[variant.name] = {
            "studies": str(len(ours)),
            "ended early": str(len(steps)),
            "exceptions": ", ".join(f"{number} {name}" for name, number in counts.items()) or "nan",
            "at steps": f"{min(steps)} to {max(steps)}" if steps else "nan",
        }
    return pd.DataFrame(rows).T


def needles(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One row per method: evaluations until it found the better row of the table.

    A study that did not find it, or ended early, counts as infinitely many.
    """
    rows: dict[str, dict[str, str]] = {}
    ours = [o for o in outcomes if (o.variant.space, o.variant.task) == ("table", "needle")]
    for method in dict.fromkeys(outcome.variant.method for outcome in ours):
        needed = [
            math.inf if outcome.found is None else outcome.found
            for outcome in ours
            if outcome.variant.method == method
        ]
        rows[method] = {
            "studies": str(len(needed)),
            "found": str(sum(map(math.isfinite, needed))),
            "median evaluations": f"{median(needed):g}",
            "most": f"{max(needed):g}",
        }
    return pd.DataFrame(rows).T
