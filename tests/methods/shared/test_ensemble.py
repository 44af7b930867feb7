"""A sum of independent GPs, term by term."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scaml import TaskGPs
from scaml.gp.units import standardize
from scaml.methods.shared.ensemble import Ensemble
from scaml.methods.shared.plain_gp import fit_plain_gp
from tests.cases import meta_data, query, task_of

META, TASK = meta_data((7, 9, 6), 2), task_of(5, 2)
GPS = TaskGPs.fit(META, kernel="se", seed=0, n_jobs=1)
OWN = fit_plain_gp(TASK, standardize(TASK.y), kernel="se", seed=0)
WEIGHTS = torch.tensor([0.5, 0.0, -0.2], dtype=torch.float64)


def by_hand(X: Tensor, own_weight: float, own_spread: float, past: bool) -> tuple[Tensor, Tensor]:
    """Mean and covariance in the units of y."""
    mean, covariance = OWN.moments(X)
    mean, covariance = own_weight * mean, own_spread**2 * covariance
    for m, w in enumerate(WEIGHTS):
        mean = mean + w * GPS.mean(X)[m]
        if past:
            covariance = covariance + w.square() * GPS.covariance(X)[m]
    return OWN.y_offset + OWN.y_scale * mean, OWN.y_scale.square() * covariance


@pytest.mark.parametrize(("own_spread", "means_alone"), [(None, False), (1.0, True)])
def test_mean_and_covariance(own_spread: float | None, means_alone: bool) -> None:
    model = Ensemble(GPS, OWN, WEIGHTS, 0.4, own_spread=own_spread, means_alone=means_alone)
    X = query(6, 2)
    posterior = model.posterior(X)
    mean, covariance = by_hand(X, 0.4, 0.4 if own_spread is None else own_spread, not means_alone)
    torch.testing.assert_close(posterior.mean.squeeze(-1), mean, rtol=0, atol=1e-9)
    ours = posterior.distribution.covariance_matrix
    torch.testing.assert_close(ours, covariance, rtol=0, atol=1e-8)
    Z = query(9, 2)[6:]
    together = torch.cat([X, Z])
    cross = model.cross(X, Z) * OWN.y_scale.square()
    _, dense = by_hand(together, 0.4, 0.4 if own_spread is None else own_spread, not means_alone)
    torch.testing.assert_close(cross, dense[:6, 6:], rtol=0, atol=1e-8)


def test_parts_add_up_to_the_prediction() -> None:
    model, X = Ensemble(GPS, OWN, WEIGHTS, 0.4), query(6, 2)
    parts, posterior = model.past_parts(), model.posterior(X.unsqueeze(-2))
    mean = OWN.y_offset + parts.means(X).sum(0)
    torch.testing.assert_close(mean, posterior.mean.flatten(), rtol=0, atol=1e-9)
    torch.testing.assert_close(
        parts.variances(X).sum(0), posterior.variance.flatten(), rtol=0, atol=1e-9
    )
    assert (parts.means(X)[1] == 0).all()
    assert not parts.of_prior
