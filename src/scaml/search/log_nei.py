r"""Noisy expected improvement (Letham et al., 2019): how much better than the best point so far?

The best value so far is not known where observations are noisy. With draws $f_s$ of the test-task at
X_t given D_t, and the model $\mu_s, \sigma$ that knows $f_s(X_t)$ without noise,

$$\alpha(x) = \log \frac1S \sum_s \sigma(x)\, h\left(\frac{\mu_s(x) - \max f_s(X_t)}{\sigma(x)}\right),
\qquad h(u) = \varphi(u) + u \Phi(u).$$

All draws share K and so σ: of a step's work, S products of length n_t are all that is added to UCB's.
"""

from __future__ import annotations

import math

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.linalg import cholesky
from scaml.model.scaml_gp import ScaMLGP

__all__ = ["NoisyExpectedImprovement", "log_mean_improvement"]

_DRAWS = 32
_SEED = 0  # the draws are the nodes of one quadrature: the same model, the same function
# Draws at points that are all but known need a little variance of their own; in squared deviations.
_JITTER = 1e-8
_TAIL, _FAR = -5.0, -1e3


class NoisyExpectedImprovement(AnalyticAcquisitionFunction):
    """The logarithm of the expected improvement over the unknown best value at X_t, in units of y.

    `model` is the one that knows these values, a fantasy a draw; `best_points`, `k x d`, are the rows
    of X_t that are the best in one of them, most often first.

    Args:
        model: Of at least one observation, and of no batch.
    """

    _log = True  # as BoTorch's own

    def __init__(self, model: ScaMLGP) -> None:
        (X,) = model.train_inputs
        if model.batch_shape or not len(X):
            raise SettingError(
                f"The model has {len(X)} observations and the batch shape {tuple(model.batch_shape)}; "
                "noisy expected improvement takes one observation or more, and no batch."
            )
        with torch.no_grad():
            mean, covariance = model.moments(X)
            L = cholesky(covariance + _JITTER * torch.eye(len(X), dtype=X.dtype), "the draws")
            nodes = draw_sobol_normal_samples(len(X), _DRAWS, dtype=X.dtype, seed=_SEED)
            values = model.y_offset + model.y_scale * (mean + nodes @ L.mT)
            super().__init__(model.revealed(values, _JITTER))
        self.register_buffer("best", values.amax(-1))
        rows, times = values.argmax(-1).unique(return_counts=True)
        self.best_points = X[rows[times.argsort(descending=True, stable=True)]]

    def of_moments(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The value, n, where the means of the fantasies, `n x S`, and their variance, n, are known."""
        deviation = variance.sqrt()
        return log_mean_improvement((mean - self.best) / deviation.unsqueeze(-1)) + deviation.log()

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """The value, `batch`, at `batch x 1 x d`."""
        return self.of_moments(*self.model.of_fantasies(X.flatten(0, -2))).view(X.shape[:-2])


def log_mean_improvement(u: Tensor) -> Tensor:
    """log of the mean of h(u) over S draws, n from `n x S`; exact also where h is all but 0."""
    hopeful = u.detach().amax(-1) > _TAIL
    value = u.new_empty(len(u))
    value[hopeful] = _mean_improvement(u[hopeful]).log()
    value[~hopeful] = _log_tail(u[~hopeful]).logsumexp(-1) - math.log(u.shape[-1])
    return value


def _mean_improvement(u: Tensor) -> Tensor:
    """The mean of h(u); its difference costs the largest term less than two digits."""
    density = torch.exp(-0.5 * u.square()) / math.sqrt(2.0 * math.pi)
    # Not by ndtr, which is 1 + erf and has no digits of a small Φ.
    return (density + 0.5 * u * torch.erfc(-u / math.sqrt(2.0))).mean(-1)


def _log_tail(u: Tensor) -> Tensor:
    r"""log h(u) where u < 0: φ times $1 - |u| \sqrt{\pi/2}\, \mathrm{erfcx}(|u| / \sqrt2)$."""
    # Of that difference nothing is left far out, where it is 1/u² - 3/u⁴. Each formula sees only what
    # it is good for: elsewhere its gradient would not be a number.
    near, far = u.clamp_min(_FAR), u.clamp_max(_FAR)
    scaled = torch.special.erfcx(-near / math.sqrt(2.0))
    ratio = torch.log1p(near * math.sqrt(0.5 * math.pi) * scaled)
    series = torch.log1p(-3.0 / far.square()) - 2.0 * torch.log(-far)
    log_density = -0.5 * u.square() - 0.5 * math.log(2.0 * math.pi)
    return log_density + torch.where(u > _FAR, ratio, series)
