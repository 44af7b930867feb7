"""What acquisition functions are, and how high they get, found the long way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from scaml import ScaMLGP


def climb(acquisition: Callable[[Tensor], Tensor], starts: Tensor, rate: float) -> Tensor:
    """The highest value that Adam sees on its way from starts, `n x d`, in the cube."""
    x = starts.clone().requires_grad_()
    optimizer, best = torch.optim.Adam([x], lr=rate), torch.tensor(-torch.inf)
    for i in range(150):
        for group in optimizer.param_groups:
            group["lr"] = rate * 0.97**i
        optimizer.zero_grad()
        value = acquisition(x.unsqueeze(-2))
        best = torch.maximum(best, value.max().detach())
        (-value.sum()).backward()
        optimizer.step()
        with torch.no_grad():
            x.clamp_(0.0, 1.0)
    return best


def mean_improvement(model: ScaMLGP, x: Tensor, draws: int) -> tuple[float, float]:
    """E max(f(x) - max f(X_t), 0) from joint draws, and its standard error."""
    joint = model.posterior(torch.cat([model.train_inputs[0], x[None]]))
    mean, covariance = joint.mean.flatten().numpy(), joint.distribution.covariance_matrix.numpy()
    f = np.random.default_rng(0).multivariate_normal(mean, covariance, size=draws)
    gains = np.maximum(f[:, -1] - f[:, :-1].max(-1), 0.0)
    return float(gains.mean()), float(gains.std()) / draws**0.5
