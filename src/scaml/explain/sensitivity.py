r"""How much each parameter moves the expected value.

The main effect of a parameter p is the posterior mean μ, averaged over all other parameters. The
sensitivity is its variance, divided by the variance of μ:

$$S_p = \mathrm{Var}_{x_p} \left( E_{x_{-p}} \mu(x) \right) / \mathrm{Var}_x\, \mu(x).$$

The averages run over one Sobol sample of the space, the same for all levels of all parameters, so that
a parameter without an effect gets exactly 0. Interactions count for no parameter, so that the
sensitivities may add up to less than 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.explain.moments import moments
from scaml.explain.parameters import Parameter

__all__ = ["sensitivities"]

_LEVELS = 12
_SAMPLE = 64
_ROUNDING = 1e-10


def sensitivities(model: Model, parameters: Sequence[Parameter], points: Tensor) -> Tensor:
    """S_p of every parameter; all 0 if the posterior mean is flat.

    Args:
        model: The model of the new task.
        parameters: The parameters that vary.
        points: `n x d`, spread evenly over the space.
    """
    everywhere, _ = moments(model, points)
    X = points[:_SAMPLE]
    effects = []
    for parameter in parameters:
        levels = parameter.strata(_LEVELS)
        mean, _ = moments(model, parameter.along(X, levels).flatten(0, 1))
        effects.append(mean.view(len(X), len(levels)).mean(0).var(correction=0))
    variances, total = torch.stack(effects), everywhere.var(correction=0)
    # Rounding errors are no variation.
    if not total > (_ROUNDING * everywhere.abs().max()) ** 2:
        return torch.zeros_like(variances)
    return (variances / total).clamp_max(1.0)
