"""Bad input to `ScaMLSampler`: refused in one sentence, or no trouble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import create_trial

import scaml
from scaml import ScaML, ScaMLSampler
from scaml.errors import DatabaseError, SettingError, SpaceError
from tests.sampler_cases import UNIT, params, prior_of, run, study_of, valley, valleys

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_study_of_two_objectives_is_refused() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=ScaMLSampler(valleys(), seed=0))
    with pytest.raises(ValueError, match=r"has 2 objectives.*TPESampler, GPSampler or NSGAIISampler"):
        study.optimize(lambda t: (valley(t), valley(t)), n_trials=1)


def test_past_studies_of_the_other_direction_are_refused_and_can_be_negated() -> None:
    past = valleys()
    sampler = ScaMLSampler(past, seed=0)
    with pytest.raises(SettingError, match=r"to maximize, but the past 'valley' is.*scaml\.negated"):
        run(sampler, lambda t: -valley(t), 1, direction="maximize")
    sampler = ScaMLSampler([scaml.negated(study) for study in past], seed=0)
    study = run(sampler, lambda t: -valley(t), 1, direction="maximize")
    assert params(study) == params(run(ScaMLSampler(past, seed=0), valley, 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"meta_studies": 5}, "meta_studies is a int; give a list"),
        ({"meta_studies": 0}, "meta_studies is a int; give a list"),
        ({"meta_studies": study_of(valley, 2)}, "meta_studies is a Study; give a list"),
        ({"meta_studies": ["past"]}, "A past study is a str; give Optuna studies"),
        ({"meta_studies": [optuna.create_study(directions=["minimize"] * 2)]}, "has 2 objectives"),
        ({"method": "scaml"}, "The method is 'scaml'; give one of scaml.methods"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": 2**62}, "seed is 4611686018427387904"),
        ({"prior": "prior.safetensors"}, "The prior is a str; give what scaml.load returns"),
        ({"fixed": ["y"]}, "fixed"),
        ({"search_space": ["x"]}, "The space is a list; give a dictionary"),
        ({"search_space": {"x": (0, 1)}}, "Parameter 'x' of the space"),
        ({"independent_sampler": "random"}, "independent_sampler"),
    ],
)
def test_bad_settings_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((SettingError, SpaceError), match=message):
        ScaMLSampler(**settings)


@pytest.mark.parametrize(
    "settings",
    [{"meta_studies": []}, {"method": ScaML()}, {"fixed": {"x": 1}}, {"cache": "folder"}],
)
def test_a_prior_is_given_alone(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="give the prior alone"):
        ScaMLSampler(prior=prior_of(None, [0.5]), **settings)


def test_past_studies_of_constant_values_or_one_name_are_no_trouble() -> None:
    past = [study_of(lambda t: 0.0 * t.suggest_float("x", 0.0, 1.0), 4, seed=i) for i in range(2)]
    study = run(ScaMLSampler([*past, *valleys()], seed=0), valley, 3)
    assert set(study.trials[0].system_attrs["scaml:weights"]) == {"past", "past (2)", "valley"}
    assert study.best_value < 0.05


def test_a_past_study_of_one_point_again_and_again_is_no_trouble() -> None:
    past = optuna.create_study()
    for value in (1.0, 2.0, 3.0):
        past.add_trial(create_trial(params={"x": 0.5}, distributions={"x": UNIT}, value=value))
    assert len(run(ScaMLSampler([past], seed=0), valley, 3).trials) == 3


def test_a_storage_that_is_no_database_any_more_is_named(tmp_path: Path) -> None:
    storage = RDBStorage(f"sqlite:///{tmp_path / 'past.db'}")
    past = study_of(valley, 2, storage=storage)
    sampler = ScaMLSampler([past], seed=0)
    storage.engine.dispose()
    (tmp_path / "past.db").write_text("no database\n" * 1000)
    with pytest.raises(DatabaseError, match=r"sqlite:.*past\.db of study 'past' does not answer"):
        ScaMLSampler([past], seed=0)
    assert len(run(sampler, valley, 1).trials) == 1  # what was read was read
    storage.remove_session()
    storage.engine.dispose()
