"""`ScaMLSampler` with a prior in place of past studies."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution

import scaml
from scaml import ScaMLSampler, Space
from scaml.errors import SpaceError
from tests.sampler_cases import UNIT, prior_of, run, valley

pytestmark = pytest.mark.usefixtures("quiet")


def up(trial: optuna.Trial) -> float:
    return -((trial.suggest_float("b", 0.0, 1.0) - 0.9) ** 2) - trial.suggest_float("a", 0.0, 1.0)


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_saved_prior_knows_its_space_in_any_order(names: str, tmp_path: Path) -> None:
    best = {"a": 0.1, "b": 0.9}
    prior = prior_of(Space(dict.fromkeys(names, UNIT)), [best[name] for name in names])
    prior.save(tmp_path / "prior.safetensors")
    loaded = scaml.load(tmp_path / "prior.safetensors")
    study = run(ScaMLSampler(prior=loaded, seed=0), up, 2, direction="maximize")
    assert study.trials[0].params == pytest.approx(best, abs=0.05)
    assert study.trials[0].system_attrs["scaml:weights"] == {"saved": 1.0}


def test_a_prior_of_another_space_is_refused_by_the_names() -> None:
    prior = prior_of(Space({"x": UNIT, "y": UNIT}), [0.5, 0.5])
    other = {"x": FloatDistribution(0.0, 2.0), "z": UNIT}
    sampler = ScaMLSampler(prior=prior, seed=0, search_space=other)
    with pytest.raises(SpaceError, match="differ in 'x', 'y', 'z'; give the past studies"):
        run(sampler, lambda t: t.suggest_float("z", 0.0, 1.0), 1)


def test_a_prior_may_know_a_parameter_that_cannot_vary() -> None:
    prior = prior_of(Space({"c": FloatDistribution(2.0, 2.0), "x": UNIT}), [0.7])

    def objective(trial: optuna.Trial) -> float:
        return -valley(trial) - trial.suggest_float("c", 2.0, 2.0)

    study = run(ScaMLSampler(prior=prior, seed=0), objective, 2, direction="maximize")
    assert study.trials[0].params == pytest.approx({"x": 0.7, "c": 2.0}, abs=0.05)


def test_a_prior_without_a_space_takes_the_study_s() -> None:
    prior = prior_of(None, [0.1, 0.9])
    space: dict[str, BaseDistribution] = {"b": UNIT, "a": UNIT}
    study = run(ScaMLSampler(prior=prior, seed=0, search_space=space), up, 1, direction="maximize")
    assert study.trials[0].params == pytest.approx({"a": 0.1, "b": 0.9}, abs=0.05)  # by name
    sampler = ScaMLSampler(prior=prior, seed=0, warn_independent_sampling=False)
    study = run(sampler, up, 2, direction="maximize")
    assert ["scaml:weights" in trial.system_attrs for trial in study.trials] == [False, True]
    with pytest.raises(SpaceError, match="1 column but the past tasks have 2"):
        run(ScaMLSampler(prior=prior, seed=0, search_space={"x": UNIT}), valley, 1)
