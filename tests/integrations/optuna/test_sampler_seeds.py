"""Seeds and pickles: a run of `ScaMLSampler` can be had again."""

from __future__ import annotations

import pickle
from typing import Any

import optuna
import pytest
from optuna.trial import create_trial

from scaml import ScaMLGP, ScaMLSampler, Task
from scaml.methods.scaml import ScaMLPrior
from tests.sampler_cases import UNIT, bowl, bowls, params, run, valley, valleys

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that priors are asked with, as they come."""
    found: list[int] = []
    condition = ScaMLPrior.condition

    def counting(self: ScaMLPrior, task: Task, *, seed: int = 0) -> ScaMLGP:
        found.append(seed)
        return condition(self, task, seed=seed)

    monkeypatch.setattr(ScaMLPrior, "condition", counting)
    return found


def test_the_same_seed_gives_the_same_run_and_another_seed_another(seeds: list[int]) -> None:
    past = bowls()
    runs = [params(run(ScaMLSampler(past, seed=seed), bowl(0.0), 2)) for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert seeds[:2] == seeds[2:4]
    # The searches end at the same maximum of a smooth function, whatever points they begin with.
    assert not set(seeds[:2]) & set(seeds[4:])
    for _ in range(2):
        run(ScaMLSampler(past), bowl(0.0), 1)
    assert len(set(seeds[6:])) == 2


def test_reseeding_changes_the_seeds(fits: list[tuple[str, ...]], seeds: list[int]) -> None:
    sampler = ScaMLSampler(bowls(), seed=0)
    before = params(run(sampler, bowl(0.0), 1))
    assert params(run(sampler, bowl(0.0), 1)) == before
    sampler.reseed_rng()
    run(sampler, bowl(0.0), 1)
    assert seeds[0] == seeds[1] != seeds[2]
    assert len(fits) == 1


def test_a_large_seed_is_no_trouble() -> None:
    def objective(trial: optuna.Trial) -> float:
        return valley(trial) + trial.suggest_float("unheard of", 0.0, 1.0)

    assert len(run(ScaMLSampler(valleys(4), seed=2**40), objective, 2).trials) == 2


def test_a_pickled_sampler_goes_on_where_it_was(fits: list[tuple[str, ...]]) -> None:
    def go_on(sampler: ScaMLSampler) -> list[dict[str, Any]]:
        study = optuna.create_study(sampler=sampler)
        study.add_trial(create_trial(params={"x": 0.3}, distributions={"x": UNIT}, value=0.16))
        study.optimize(valley, n_trials=2)
        return params(study)

    fresh = ScaMLSampler(valleys(), seed=0)
    used = pickle.loads(pickle.dumps(fresh))
    expected = go_on(used)
    assert len(fits) == 1
    copy = pickle.loads(pickle.dumps(used))
    assert go_on(copy) == expected
    assert len(fits) == 1
    assert str(copy.matching) == str(used.matching)
    assert go_on(fresh) == expected


def test_every_trial_has_a_seed_of_its_own(seeds: list[int]) -> None:
    """Two workers that see the same finished trials must not draw the same numbers."""
    run(ScaMLSampler(bowls(), seed=0), bowl(0.0), 3)
    assert len(set(seeds)) == 3
