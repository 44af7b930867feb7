"""`ScaMLSampler`: an Optuna sampler that learns from past studies, from trial 0 on."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from scaml.ask import choose_new
from scaml.common.checks import check_seed
from scaml.common.logger import logger
from scaml.errors import SettingError, SpaceError
from scaml.integrations.optuna.observed_study import ObservedStudy, observations
from scaml.integrations.optuna.past_studies import PastStudies, read_studies
from scaml.integrations.optuna.reservation import (
    LONGEST_ATTRIBUTE,
    intended,
    is_ours,
    reserve,
    reserved,
)
from scaml.integrations.optuna.told_verdicts import ToldVerdicts
from scaml.methods.base import MetaPrior, Method
from scaml.methods.scaml import ScaML
from scaml.priors.learn import learn
from scaml.spaces.matching import Matching
from scaml.spaces.space import Space, nearest_value

__all__ = ["ScaMLSampler"]

_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
_WEIGHTS = "scaml:weights"
_TRIES = 10  # attempts to find a point that no other worker has


class ScaMLSampler(BaseSampler):
    """Bayesian optimization that learns from past studies (ScaML-GP, AISTATS 2024).

    The first trial already uses the past. While a study has no finished trial, its space is taken from
    `search_space` or from the past studies. The parameters of a past study may differ from the new
    ones, and so may their ranges, scales and choices: `matching` says how each study was mapped.

    Pruned trials, of past studies and of the new one, are used with an estimated value: the final value
    that complete trials with such an intermediate value reached, at most their median.

    Args:
        meta_studies: Past studies with the same direction, from any storage.
        prior: A fitted prior with its space, as `scaml.load` returns it, instead of `meta_studies`.
        method: The meta-learning method; ScaML-GP by default.
        seed: Decides every random draw; None draws a seed.
        search_space: The parameters of the new study, if they are known before its first trial.
        fixed: Name to value: where to hold parameters that only past studies have. By default each is
            held at its value in that study's best trial.
        cache: A folder that keeps meta-fits across processes: only new or changed studies are fitted.
        n_jobs: Number of processes of the meta-fit.
        independent_sampler: Samples parameters that are not in every trial; random by default.
        warn_independent_sampling: Whether to log a warning when a parameter is sampled independently.

    Examples:
        >>> import optuna
        >>> past = [optuna.create_study() for _ in range(3)]
        >>> for shift, study in enumerate(past):
        ...     study.sampler = optuna.samplers.RandomSampler(seed=shift)
        ...     study.optimize(lambda t: (t.suggest_float("x", 0, 9) - shift - 2) ** 2, n_trials=10)
        >>> study = optuna.create_study(sampler=ScaMLSampler(meta_studies=past, seed=0))
        >>> study.optimize(lambda t: (t.suggest_float("x", 0, 9) - 3.2) ** 2, n_trials=5)
        >>> study.best_value < 0.1
        True
    """

    def __init__(
        self,
        meta_studies: Iterable[Study] | None = None,
        *,
        prior: MetaPrior | None = None,
        method: Method | None = None,
        seed: int | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        fixed: Mapping[str, Any] | None = None,
        cache: str | os.PathLike[str] | None = None,
        n_jobs: int = 1,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
    ) -> None:
        _check_arguments(meta_studies, prior, method, fixed, cache)
        _check_helpers(fixed, independent_sampler)
        self._method = ScaML() if method is None else method
        self._given = prior
        self._past = read_studies([] if meta_studies is None else meta_studies)
        self._search_space = None if search_space is None else Space(search_space)
        self._fixed = dict(fixed or {})
        self._cache = cache
        self._n_jobs = n_jobs
        # The fit has a seed of its own: if a worker reseeds, the fit must stay in the cache.
        self._fit_seed = 0 if seed is None else check_seed(seed)
        self._seed = _entropy() if seed is None else self._fit_seed
        draws = None if seed is None else int(np.random.SeedSequence(self._seed).generate_state(1)[0])
        self._independent_sampler = independent_sampler or RandomSampler(seed=draws)
        self._warn = warn_independent_sampling
        self._warned: set[str] = set()
        self._said_plain = False
        self._verdicts = ToldVerdicts()
        self._priors: dict[str, tuple[MetaPrior, Matching | None]] = {}
        self._guesses: dict[tuple[str, int], dict[str, Any]] = {}
        self._lock = threading.RLock()
        if meta_studies is not None:
            logger.info("ScaMLSampler: %s.", self._past)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    @property
    def matching(self) -> Matching | None:
        """How the past was mapped to the latest space; None before the first trial."""
        return next(reversed(self._priors.values()))[1] if self._priors else None

    def prior_of(self, study: Study) -> ObservedStudy:
        """What the sampler knows before the next trial of a study: prior, space, observations.

        Raises:
            SettingError: The parameters of the study are not known yet, or it has several objectives.
        """
        _check_single(study)
        found = self._known_space(study) or self._past_space(study)
        if not found:
            raise SettingError(
                f"The study {study.study_name!r} has no finished trial and no past, so its "
                "parameters are unknown; run a trial, or give the sampler a search_space."
            )
        prior, space = self._prior(study, Space(found))
        task, _ = observations(study, space)
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        points = [point for t in running if (point := intended(t, space)) is not None]
        return ObservedStudy(prior, space, task, self.matching, space.encode_all(points))

    def reseed_rng(self) -> None:
        self._seed = _entropy()
        self._independent_sampler.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._known_space(study)

    def _known_space(self, study: Study) -> dict[str, BaseDistribution]:
        """The parameters that vary, if they are known before the trial; else empty."""
        if len(study.directions) > 1:
            return {}
        if self._search_space is not None:
            return _varying(self._search_space.distributions)
        if self._given is not None and self._given.space is not None:
            return _varying(self._given.space.distributions)
        trials = study.get_trials(deepcopy=False, states=_FINISHED)
        return _varying(optuna.search_space.intersection_search_space(trials, include_pruned=True))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        _check_single(study)
        if not search_space:
            return {}
        prior, space = self._prior(study, Space(search_space))
        task, known = observations(study, space)
        # Trials that are not among the observations stay pending: one that ends while this point is
        # chosen, and one that ended without a usable value, whose point would be suggested again.
        seed = int(np.random.SeedSequence([self._seed, trial.number]).generate_state(1)[0])
        model = prior.condition(task, seed=seed)
        params: dict[str, Any] = {}
        for attempt in range(_TRIES):
            pending = space.encode_all(reserved(study, trial, space, known))
            x = choose_new(prior, model, task, 1, pending, seed + attempt)
            params = space.decode(x[0])
            reserve(study, trial, params)
            if is_ours(study, trial, space, known, x):
                break
        weights = getattr(model, "weights", None)
        if weights is not None and len(weights) == len(prior.names):  # a plain GP has none
            shown = _shown(prior.names, weights.tolist())
            study._storage.set_trial_system_attr(trial._trial_id, _WEIGHTS, shown)
        self._verdicts.tell(study, trial, model)
        return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        _check_single(study)
        first = not study.get_trials(deepcopy=False, states=_FINISHED)
        # A trial that began with a guess uses it to its end, even if another trial has finished since.
        guessing = first and self._search_space is None and self._given is None
        if guessing or _key(study, trial) in self._guesses:
            guess = self._guess(study, trial)
            if param_name in guess and _takes(param_distribution, guess[param_name]):
                nearest = _nearest(param_distribution, guess[param_name])
                # If the guess is outside the range, only trial 0 takes the nearest end of the range.
                if nearest == guess[param_name] or trial.number == 0:
                    return nearest
        elif self._warn and param_name not in self._warned:
            self._warned.add(param_name)
            logger.warning(
                "The parameter %r is sampled independently by %s, because it is not in every trial or "
                "its range changes.",
                param_name,
                type(self._independent_sampler).__name__,
            )
        return self._independent_sampler.sample_independent(
            study, trial, param_name, param_distribution
        )

    def _guess(self, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        """Parameters for a trial of a study without finished trials, whose space is not known yet.

        The space of the past studies is used. It may be wrong, and Optuna does not allow a sampler to
        return a parameter of the wrong kind from `sample_relative`. So `sample_independent` returns the
        parameters one by one instead.
        """
        key = _key(study, trial)
        if key not in self._guesses:
            self._guesses[key] = self.sample_relative(study, trial, self._past_space(study))
        return self._guesses[key]

    def _past_space(self, study: Study) -> dict[str, BaseDistribution]:
        """The parameters of the past studies that vary and are not in `fixed`."""
        past = self._past.without(study).tasks
        space = {name: d for task in past for name, d in task.distributions.items()}
        return _varying({name: d for name, d in space.items() if name not in self._fixed})

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._independent_sampler.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        self._guesses.pop(_key(study, trial), None)
        self._independent_sampler.after_trial(study, trial, state, values)

    def _prior(self, study: Study, space: Space) -> tuple[MetaPrior, Space]:
        """The prior in the coordinates of the new space, and this space; fitted once per space."""
        if self._given is not None:
            prior = _in_space(self._given, space)
            return prior, prior.space or space
        past = self._past.without(study)
        key = f"{study.direction.name} {past.fingerprints} {space.distributions}"
        with self._lock:
            if key not in self._priors:
                self._priors[key] = self._fit(past, study.direction, space)
            return self._priors[key][0], space

    def _fit(
        self, past: PastStudies, direction: StudyDirection, space: Space
    ) -> tuple[MetaPrior, Matching | None]:
        if len(past.tasks) < len(self._past.tasks):
            logger.info("The study is among its own past studies; it is not used as one of them.")
        prior, matching = learn(
            past.for_direction(direction),
            space,
            self._method,
            fixed=self._fixed,
            cache=self._cache,
            seed=self._fit_seed,
            n_jobs=self._n_jobs,
        )
        if past.tasks:
            logger.info("ScaMLSampler: %s.", matching)
        if not prior.names and not self._said_plain:
            logger.warning("ScaMLSampler has no usable past trial and works as a plain GP.")
            self._said_plain = True
        return prior, matching


def _check_arguments(
    meta_studies: object, prior: object, method: object, fixed: object, cache: object
) -> None:
    if prior is not None:
        if meta_studies is not None or method is not None or fixed is not None or cache is not None:
            raise SettingError(
                "A prior is given together with meta_studies, method, fixed or cache, which only a new "
                "fit could use; give the prior alone."
            )
        if not isinstance(prior, MetaPrior):
            raise SettingError(f"The prior is a {type(prior).__name__}; give what scaml.load returns.")
    if method is not None and not isinstance(method, Method):
        raise SettingError(f"The method is {method!r}; give one of scaml.methods, such as ScaML().")


def _check_helpers(fixed: object, independent_sampler: object) -> None:
    if fixed is not None and not isinstance(fixed, Mapping):
        raise SettingError(
            f"fixed is a {type(fixed).__name__}; give a dictionary from names to values."
        )
    if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
        raise SettingError(
            f"The independent_sampler is {independent_sampler!r}; give one of optuna.samplers."
        )


def _key(study: Study, trial: FrozenTrial) -> tuple[str, int]:
    return study.study_name, trial.number


def _check_single(study: Study) -> None:
    if len(study.directions) > 1:
        raise SettingError(
            f"The study has {len(study.directions)} objectives, and ScaMLSampler is for one; use "
            "optuna.samplers.TPESampler, GPSampler or NSGAIISampler instead."
        )


def _in_space(prior: MetaPrior, space: Space) -> MetaPrior:
    if prior.space is None:
        return prior.in_space(space)
    ours, theirs = _varying(prior.space.distributions), _varying(space.distributions)
    if ours != theirs:
        differ = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        raise SpaceError(
            f"The study and the prior differ in {', '.join(map(repr, differ))}; give the past studies "
            "as meta_studies, whose spaces may differ."
        )
    # In the order of the prior's columns, which may differ from the study's.
    return prior.in_space(Space({n: ours[n] for n in prior.space.names if n in ours}))


def _entropy() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])


def _varying(distributions: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    return {
        name: distributions[name] for name in sorted(distributions) if not distributions[name].single()
    }


def _takes(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a value of another space can be mapped to the distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    return isinstance(value, int | float) and not isinstance(value, bool)


def _nearest(distribution: BaseDistribution, value: Any) -> Any:
    """The value of the distribution that is nearest to a value of another space."""
    if isinstance(distribution, CategoricalDistribution):
        # The choice that equals the value, not the value itself: it may be True where the past has 1.
        return distribution.choices[distribution.choices.index(value)]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return nearest_value(distribution, value)


def _shown(names: Sequence[str], weights: Sequence[float]) -> dict[str, float]:
    """The weights that are not 0, largest first, as many as fit into an attribute."""
    ranked = sorted(zip(names, weights, strict=True), key=lambda pair: -abs(pair[1]))
    shown: dict[str, float] = {}
    for name, weight in ranked:
        longer = shown | {name: round(weight, 4)}
        if weight == 0.0 or len(json.dumps(longer)) > LONGEST_ATTRIBUTE:
            break
        shown = longer
    return shown
