"""Coverage of intervals: of models that are right by construction, and of real ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch

from scaml import MetaData, SettingError, Task
from scaml.bench.contestants import Contestant, contestant
from scaml.bench.problems import TableProblem
from scaml.bench.tables import Table
from scaml.gp.moments_model import MomentsModel
from scaml.gp.units import Units
from scaml.methods import GPBO, MetaPrior, Method
from scaml.methods.gpbo import GPBOPrior
from study import calibration
from study.calibration import calibrate, coverage_error


class Known(MomentsModel):
    """Independent values of known mean and deviation."""

    def __init__(self, deviation: float) -> None:
        one = torch.ones((), dtype=torch.float64)
        super().__init__(Units(0.0 * one, one), 0.0 * one)
        self.deviation = deviation

    def moments(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        eye = torch.eye(X.shape[-2], dtype=torch.float64)
        return X[..., 0] * 0.0, self.deviation**2 * eye.expand(*X.shape[:-1], -1)

    def cross(self, X: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*X.shape[:-1], Z.shape[-2], dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class KnownPrior(GPBOPrior):
    deviation: float = 1.0

    def condition(self, task: Task, *, seed: int = 0) -> Known:
        return Known(self.deviation)


@dataclass(frozen=True)
class Fixed(Method):
    deviation: float = 1.0

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        return KnownPrior(GPBO(), meta.d, deviation=self.deviation)


def normal_table() -> Table:
    """Losses that are independent standard normal numbers."""
    losses = np.random.default_rng(0).standard_normal((3, 2000))
    axis = tuple(np.linspace(0.0, 1.0, 50).tolist())
    return Table({"u": axis, "v": axis}, np.arange(2000), ("a", "b", "c"), losses, "none")


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> None:
    where = TableProblem("normal", "Normal", 2, 2, 8, 30, 3, 2000, normal_table)
    monkeypatch.setattr(calibration, "problem", {"normal": where}.__getitem__)


@pytest.mark.usefixtures("study")
def test_a_model_that_is_right_covers_what_it_says() -> None:
    deviations = {"right": 1.0, "timid": 3.0, "bold": 0.3}
    methods = [Contestant(name, Fixed(value), str(value)) for name, value in deviations.items()]
    frame = calibrate(["normal"], methods, 4)
    assert len(frame) == 3 * 4 * 3 * 3
    found = coverage_error(frame).set_index(["method", "observations", "level"])
    for n, level in [(0, 0.5), (5, 0.8), (20, 0.95)]:
        assert found.loc[("right", n, level), "covered"] == pytest.approx(level, abs=0.03)
        assert found.loc[("timid", n, level), "covered"] > level + 0.03
        assert found.loc[("bold", n, level), "covered"] < level - 0.2
    assert found.loc["right"]["error"].mean() < 0.02


def test_errors_of_tables_do_not_cancel() -> None:
    """One table above the level and another as much below it are two errors."""
    key = {"method": "m", "run": 0, "observations": 5, "level": 0.8}
    frame = pd.DataFrame(
        [{"problem": "a", "covered": 0.7} | key, {"problem": "b", "covered": 0.9} | key]
    )
    found = coverage_error(frame)
    assert found["covered"].tolist() == [pytest.approx(0.8)]
    assert found["error"].tolist() == [pytest.approx(0.1)]


def test_a_real_table_and_the_number_of_processes() -> None:
    told: list[tuple[int, int]] = []
    methods = [contestant("gpbo")]
    frame = calibrate(["svm"], methods, 2, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert frame["covered"].between(0, 1).all()
    assert frame["covered"].nunique() > 3
    pd.testing.assert_frame_equal(frame, calibrate(["svm"], methods, 2, n_jobs=2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["branin"], ["gpbo"], 1), "'branin' is no table; calibration needs one, such as 'svm'."),
        ((["svm"], ["random"], 1), "'random' predicts nothing; give a method with a model."),
        ((["svm"], ["gpbo"], 0), "The number of runs is 0"),
        ((["svn"], ["gpbo"], 1), "did you mean 'svm'"),
    ],
)
def test_bad_input_is_refused(arguments: tuple[list[str], list[str], int], message: str) -> None:
    problems, names, runs = arguments
    with pytest.raises(SettingError, match=message):
        calibrate(problems, [contestant(name) for name in names], runs)
