"""The conformance suite notices: it fails for each fault below, in the test that is named beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from scaml import Task
from scaml.methods import MetaPrior, Method
from scaml.testing import MetaLearnerTestCase
from tests import faults

PAST, EACH = "test_the_past_is_used", "test_every_past_task_is_used"
ORDER, LEARNS = "test_order_of_tasks", "test_it_learns_from_observations"
SEED, FIRST = "test_the_seed_alone_decides", "test_the_seed_decides_where_nothing_is_known"
JOBS, SPACES = "test_the_number_of_processes_changes_nothing", "test_mixed_spaces"
CAUGHT: list[tuple[type[faults.Intact], str]] = [
    (faults.PastIgnored, PAST),
    (faults.PastReplaced, PAST),
    (faults.PastReplacedOfABLR, PAST),
    (faults.WeightsTimesZero, PAST),
    (faults.WeightsTimesZeroOfRGPE, PAST),
    (faults.WeightsTimesZeroOfRMGPUCB, PAST),
    (faults.WeightsTimesZeroOfScaML, PAST),
    (faults.WeightsTimesZeroOfThePaper, PAST),
    (faults.WeightsTimesZeroOnceObserved, PAST),
    (faults.WeightsTimesZeroOnceRanked, PAST),
    (faults.PastReversed, PAST),
    (faults.PastReversedOfScaML, PAST),
    (faults.PastReversedOfStackGP, PAST),
    (faults.PastReversedOfRMGPUCB, PAST),
    (faults.PastReversedOfMTGP, PAST),
    (faults.FirstTaskDropped, EACH),
    (faults.LastTaskDropped, EACH),
    (faults.LastTaskDroppedOfABLR, EACH),
    (faults.LastTaskDropped, ORDER),
    (faults.OrderNotDeclared, ORDER),
    (faults.LaterTasksCountLess, ORDER),
    (faults.LaterTasksCountLessToRMGPUCB, ORDER),
    (faults.ObservationsIgnored, LEARNS),
    (faults.OnlyLevelAndScaleSeen, LEARNS),
    (faults.ObservationsReversed, LEARNS),
    (faults.Minimizes, LEARNS),
    (faults.AcquisitionNegated, PAST),
    (faults.AcquisitionNegated, LEARNS),
    (faults.AcquisitionNegatedOfScaML, LEARNS),
    (faults.AcquisitionNegatedOfGPBO, LEARNS),
    (faults.AlwaysTheCentre, PAST),
    (faults.AlwaysTheCentre, LEARNS),
    (faults.DrawsFromTorch, SEED),
    (faults.DrawsFromTorchAndHidesIt, SEED),
    (faults.DrawsFromNumPy, SEED),
    (faults.DrawsFromPython, SEED),
    (faults.SeedsTorch, SEED),
    (faults.CountsItsFits, SEED),
    (faults.CountsItsModels, SEED),
    (faults.RoundsByProcesses, JOBS),
    (faults.SpaceIgnored, SPACES),
    (faults.SpaceLost, SPACES),
]
# Here the inner method itself is the fault.
AT_FAULT = {faults.PastIgnored, faults.OrderNotDeclared}


class TestIntact(MetaLearnerTestCase):
    """The hooks of the faults are no fault themselves."""

    method = faults.Intact()


def run(method: Method, test: str, folder: Path, **attributes: Any) -> None:
    """One test of the suite, for every value of its parameters."""
    case = type("Case", (MetaLearnerTestCase,), {"method": method, **attributes})()
    function = getattr(case, test)
    if test == SPACES:
        function(folder)
    elif test == EACH:
        for m in (0, 2):
            function(case.fitted(), m)
    else:
        function(case.fitted())


@pytest.mark.parametrize(("fault", "test"), CAUGHT, ids=lambda value: getattr(value, "__name__", value))
def test_a_fault_is_caught(fault: type[faults.Intact], test: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(fault(), test, tmp_path)


@pytest.mark.parametrize(
    ("method", "test"),
    sorted({(fault.inner, test) for fault, test in CAUGHT if fault not in AT_FAULT}, key=str),
    ids=lambda value: type(value).__name__ if isinstance(value, Method) else value,
)
def test_the_same_method_passes_without_the_fault(method: Method, test: str, tmp_path: Path) -> None:
    run(method, test, tmp_path)


def test_a_first_point_that_the_seed_does_not_decide_is_caught(tmp_path: Path) -> None:
    run(faults.PastIgnored(), FIRST, tmp_path, uses_past=False)
    with pytest.raises(AssertionError, match="does not depend on the seed"):
        run(faults.BeginsAtTheCentre(), FIRST, tmp_path, uses_past=False)


def test_uses_past_is_checked_both_ways(tmp_path: Path) -> None:
    run(faults.PastIgnored(), PAST, tmp_path, uses_past=False)
    with pytest.raises(AssertionError):
        run(faults.Intact(), PAST, tmp_path, uses_past=False)


def test_a_constant_suggestion_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def centre(prior: MetaPrior, task: Task, *, seed: int = 0) -> Tensor:
        return torch.full((1, prior.d), 0.5, dtype=torch.float64)

    case = TestIntact()
    case.test_observations(case.fitted(), 8)
    monkeypatch.setattr("scaml.testing.suggest", centre)
    with pytest.raises(AssertionError, match="no maximum"):
        case.test_observations(case.fitted(), 8)
