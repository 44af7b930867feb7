"""From an Optuna study, or a storage of studies, to suggestions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
from botorch.models.model import Model
from optuna.samplers import RandomSampler
from torch import Tensor

from scaml import DatabaseError, ScaMLSampler, SettingError, Task
from scaml.explain.run import Run
from scaml.integrations.optuna.subject import of_storage, of_study
from scaml.methods.base import MetaPrior
from tests.sampler_cases import BOX, bowl, bowls

pytestmark = pytest.mark.usefixtures("quiet")


def sampler() -> ScaMLSampler:
    return ScaMLSampler(meta_studies=bowls(), seed=0)


def study_of(**settings: Any) -> optuna.Study:
    study = optuna.create_study(study_name="tuning", **settings)
    study.optimize(bowl(0.0), n_trials=4)
    return study


def test_a_study_is_a_subject() -> None:
    study = study_of(sampler=sampler())
    subject = of_study(study, q=2)
    assert subject.title == "tuning"
    assert subject.objective == "value"
    assert not subject.maximize
    assert -float(subject.task.y.max()) == study.best_value
    assert subject.matching is not None
    assert subject.suggestions is not None
    assert subject.suggestions.shape == (2, 2)
    assert Run.of(subject).model is subject.model
    assert len(study.trials) == 4


def test_suggestions_know_what_is_being_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def spy(prior: MetaPrior, model: Model, task: Task, *settings: Any) -> Tensor:
        asked.extend(settings)
        return task.X[:1]

    monkeypatch.setattr("scaml.integrations.optuna.subject.choose_new", spy)
    study = study_of(sampler=sampler())
    running = study.ask()
    point = [running.suggest_float(name, 0.0, 1.0) for name in BOX]
    of_study(study, q=3, seed=5)
    q, pending, seed = asked
    assert pending.tolist() == [pytest.approx(point)]
    assert (q, seed) == (3, 5)


def test_the_objective_has_the_name_that_the_study_gives_it() -> None:
    study = study_of(sampler=sampler())
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        study.set_metric_names(["loss"])
    assert of_study(study).objective == "loss"


def test_a_study_without_a_past_is_refused() -> None:
    with pytest.raises(SettingError, match="RandomSampler, which does not learn from past studies"):
        of_study(study_of(sampler=RandomSampler(seed=0)))
    with pytest.raises(SettingError, match="q is 0"):
        of_study(study_of(sampler=sampler()), q=0)


@pytest.fixture
def storage(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path}/hpo.db"
    for i in range(3):
        study = optuna.create_study(study_name=f"bowl-{i}", storage=address)
        study.sampler = optuna.samplers.RandomSampler(seed=i)
        study.optimize(bowl(0.1 * i), n_trials=8)
    return address


def test_a_storage_is_read_and_not_written(storage: str) -> None:
    subject = of_storage(storage, "new", "bowl-*", q=2)
    assert subject.prior.names == ("bowl-0", "bowl-1", "bowl-2")
    assert not subject.maximize
    assert len(Run.of(subject).suggestions) == 2
    assert set(optuna.get_all_study_names(storage)) == {"bowl-0", "bowl-1", "bowl-2"}
    own = of_storage(storage, "bowl-1", "bowl-*")
    assert own.prior.names == ("bowl-0", "bowl-2")
    assert own.task.n == 8


def test_bad_storages_are_refused(storage: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"has a name like 'bow'; perhaps 'bowl-\d'\."):
        of_storage(storage, "new", "bow")
    with pytest.raises(SettingError, match=r"There is no database '.*none\.db'; give the address"):
        of_storage(f"sqlite:///{tmp_path}/none.db", "new", "*")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(DatabaseError, match=r"cannot be opened \(ArgumentError\)"):
        of_storage("no address", "new", "*")
