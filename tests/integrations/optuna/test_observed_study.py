"""What is known of a study, for those who want to look behind its next trial."""

from __future__ import annotations

import optuna
import pytest
import torch
from optuna.samplers import RandomSampler
from optuna.study import StudyDirection

from scaml import ScaMLSampler, SettingError, Space
from scaml.integrations.optuna.observed_study import observations
from tests.pruned_cases import PRUNED, X, study_with, trial_of
from tests.sampler_cases import BOX, bowl, bowls

pytestmark = pytest.mark.usefixtures("quiet")


def new_study(sampler: ScaMLSampler | None = None) -> tuple[optuna.Study, ScaMLSampler]:
    sampler = sampler or ScaMLSampler(meta_studies=bowls(), seed=0)
    return optuna.create_study(study_name="new", sampler=sampler), sampler


def test_the_prior_behind_a_study() -> None:
    study, sampler = new_study()
    study.optimize(bowl(0.05), n_trials=4)
    known = sampler.prior_of(study)
    assert known.prior.names == ("past-0", "past-1", "past-2")
    assert known.space.distributions == BOX
    assert known.task.y.tolist() == [-(trial.value or 0.0) for trial in study.trials]
    expected = [[trial.params["x"], trial.params["y"]] for trial in study.trials]
    torch.testing.assert_close(known.task.X, torch.tensor(expected, dtype=torch.float64))
    assert known.pending.shape == (0, 2)
    assert known.matching is not None
    assert known.matching.identical


def test_running_trials_are_pending() -> None:
    study, sampler = new_study()
    study.optimize(bowl(0.05), n_trials=2)
    trial = study.ask()
    point = [trial.suggest_float(name, 0.0, 1.0) for name in ("x", "y")]
    known = sampler.prior_of(study)
    assert known.task.n == 2
    assert known.pending.tolist() == [pytest.approx(point)]


def test_the_space_of_a_study_without_trials_is_that_of_the_past() -> None:
    study, sampler = new_study()
    known = sampler.prior_of(study)
    assert known.task.n == 0
    assert known.space.distributions == BOX


def test_a_study_of_which_nothing_is_known() -> None:
    study, sampler = new_study(ScaMLSampler(seed=0))
    with pytest.raises(SettingError, match="The study 'new' has no finished trial and no past"):
        sampler.prior_of(study)
    several = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(SettingError, match="2 objectives"):
        ScaMLSampler(seed=0).prior_of(several)


@pytest.mark.parametrize(
    ("direction", "sign"), [(StudyDirection.MINIMIZE, -1.0), (StudyDirection.MAXIMIZE, 1.0)]
)
def test_observations_are_larger_where_better(direction: StudyDirection, sign: float) -> None:
    study = optuna.create_study(direction=direction, sampler=RandomSampler(seed=0))
    study.optimize(bowl(0.0), n_trials=3)
    study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL))
    task, numbers = observations(study, Space(BOX))
    assert task.y.tolist() == [sign * (trial.value or 0.0) for trial in study.trials[:3]]
    assert numbers == {0, 1, 2}


def test_pruned_trials_are_observations() -> None:
    study = study_with(
        [
            trial_of(1.0, {0: 1.0}, x=0.1),
            trial_of(None, {0: 3.0}, x=0.2),
            trial_of(2.0, {0: 2.0}, x=0.3),
            trial_of(None, {1: 3.0}, x=0.4),
            trial_of(None, {}, x=0.5),
        ]
    )
    task, numbers = observations(study, Space(X))
    assert numbers == {0, 1, 2}
    assert task.X.flatten().tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert task.y.tolist() == [-1.0, -2.0, -2.0]


def test_a_pruned_trial_without_the_parameters_is_no_observation() -> None:
    bare = optuna.trial.create_trial(state=PRUNED, intermediate_values={0: 3.0})
    study = study_with([trial_of(1.0, {0: 1.0}), trial_of(2.0, {0: 2.0}), bare])
    task, numbers = observations(study, Space(X))
    assert (task.n, numbers) == (2, {0, 1})
