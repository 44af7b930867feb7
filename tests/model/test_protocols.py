"""Who has which protocol: ours, other methods' models, and foreign ones."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound as BoTorchUCB
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from scaml import ScaML, Task, suggest
from scaml.methods import GC3P, GPBO, RGPE, SGPT, StackGP
from scaml.methods.base import Method
from scaml.model.protocols import (
    FantasyModel,
    LeaveOneOutModel,
    MarginalModel,
    SumOverPast,
    TableModel,
)
from scaml.search.ucb import UpperConfidenceBound
from tests.cases import meta_data, query, task_of

ALL = {FantasyModel, LeaveOneOutModel, MarginalModel, SumOverPast, TableModel}
META, TASK = meta_data((8, 9), 2), task_of(5, 2)


def protocols_of(model: Model) -> set[type]:
    return {protocol for protocol in ALL if isinstance(model, protocol)}


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (ScaML(), ALL),
        (ScaML.paper(), ALL),
        (GPBO(), ALL),
        (RGPE(), {MarginalModel, SumOverPast}),
        (SGPT(), {MarginalModel, SumOverPast}),
        (StackGP(), {MarginalModel}),
        (GC3P(), {MarginalModel}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Method) else "",
)
def test_models_of_all_kinds(method: Method, expected: set[type]) -> None:
    assert protocols_of(method.meta_fit(META).condition(TASK)) == expected


def test_a_foreign_model_needs_none_of_them() -> None:
    y = TASK.y.unsqueeze(-1)
    model = SingleTaskGP(TASK.X, (y - y.mean()) / y.std())
    assert not protocols_of(model)
    X = query(6, 1, 2)
    torch.testing.assert_close(
        UpperConfidenceBound(model, sqrt_beta=2.0)(X), BoTorchUCB(model, beta=4.0)(X)
    )


class Marginal(SingleTaskGP):
    """A foreign model that has one of the protocols."""

    asked = 0

    def marginal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        type(self).asked += 1
        posterior = self.posterior(X)
        return posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)


def test_a_foreign_model_that_has_one_is_asked_by_it() -> None:
    y = TASK.y.unsqueeze(-1)
    model, X = Marginal(TASK.X, (y - y.mean()) / y.std()), query(6, 1, 2)
    torch.testing.assert_close(
        UpperConfidenceBound(model, sqrt_beta=2.0)(X), BoTorchUCB(model, beta=4.0)(X)
    )
    assert Marginal.asked == 1


def test_the_acquisition_function_of_the_name_falls_back_where_a_model_cannot_fantasize() -> None:
    """ "lognei" before the first observation is UCB with the method's √β."""
    prior = ScaML(sqrt_beta=0.5).meta_fit(META)
    model = prior.condition(Task.empty(d=2))
    function = prior.acquisition(model)
    assert isinstance(function, UpperConfidenceBound)
    assert function.exploration == pytest.approx(0.5)
    assert suggest(prior, Task.empty(d=2)).shape == (1, 2)
