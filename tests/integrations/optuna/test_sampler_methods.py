"""Every method of scaml as the sampler's method."""

from __future__ import annotations

import optuna
import pytest

from scaml import ScaMLSampler
from scaml.methods import ABLR, FSBO, GC3P, GPBO, MTGP, RGPE, RMGPUCB, SGPT, Method, ScaML, StackGP
from tests.sampler_cases import Objective, study_of

pytestmark = pytest.mark.usefixtures("quiet")
METHODS: list[Method] = [
    ABLR(widths=(8, 8), iterations=20),
    FSBO(widths=(8, 8), iterations=20, epochs=5),
    GC3P(widths=(8, 8), updates=50),
    GPBO(),
    MTGP(max_iterations=20, warm_iterations=10),
    RGPE(),
    RMGPUCB(),
    SGPT(),
    ScaML(),
    StackGP(),
]
WEIGHING = ("RGPE", "RMGPUCB", "SGPT", "ScaML")


def hills(shift: float) -> Objective:
    def objective(trial: optuna.Trial) -> float:
        x, k = trial.suggest_float("x", 0.0, 1.0), trial.suggest_int("k", 1, 5)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return (x - 0.3 - shift) ** 2 + 0.1 * (k - 2) ** 2 + 0.2 * (kind == "b")

    return objective


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_study_of_a_mixed_space(method: Method) -> None:
    past = [study_of(hills(0.05 * i), seed=i, name=f"past-{i}") for i in range(3)]
    study = optuna.create_study(sampler=ScaMLSampler(meta_studies=past, method=method, seed=0))
    study.optimize(hills(0.02), n_trials=4)
    assert len(study.trials) == 4
    for trial in study.trials:
        assert ("scaml:weights" in trial.system_attrs) == (type(method).__name__ in WEIGHING)
