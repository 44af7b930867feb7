r"""Log noisy expected improvement (Letham et al., 2019): the expected gain over the best point so far.

With noisy observations the best value so far is not known. With draws $f_s$ of the test-task at X_t
given D_t, and the model $\mu_s, \sigma$ that knows $f_s(X_t)$ without noise,

$$\alpha(x) = \log \frac1S \sum_s \sigma(x)\, h\left(\frac{\mu_s(x) - \max f_s(X_t)}{\sigma(x)}\right),
\qquad h(u) = \varphi(u) + u \Phi(u).$$

All draws share K and therefore σ: beyond UCB, a value costs S products of length n_t.

The slope follows from $h' = \Phi$. With $t_s = \Phi(u_s) / \sum_r h(u_r)$,

$$\frac{\partial \alpha}{\partial \mu_s} = \frac{t_s}{\sigma}, \qquad
\frac{\partial \alpha}{\partial \sigma^2} = \frac{1 - \sum_s t_s u_s}{2 \sigma^2}.$$

Of an average over explanations e with probabilities $p_e$, the expected gain is the average of the
members' gains, each over the best value of its own draws: $\log \sum_e p_e \exp \alpha_e(x)$. Its
slope is the members' with the weights $p_e \exp(\alpha_e - \alpha)$.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from scaml.errors import SettingError
from scaml.model.protocols import AverageModel, FantasyModel, PointModel
from scaml.search.ucb import SQRT_BETA

__all__ = ["NoisyExpectedImprovement", "log_mean_improvement", "log_mean_improvement_and_slope"]

_DRAWS = 32
_SEED = 0  # the draws are the nodes of a quadrature: the same model always gives the same function
_TAIL, _FAR = -5.0, -1e3


class NoisyExpectedImprovement(AnalyticAcquisitionFunction):
    """The logarithm of the expected improvement over the unknown best value at X_t, in units of y.

    The attribute `model` is the one that knows these values, one fantasy per draw. `best_points`,
    `k x d`, are the rows of X_t that are best in a draw, the most frequent first.

    Args:
        model: A BoTorch model that is a `FantasyModel`, with one observation or more and no batch.
    """

    _log = True  # BoTorch marks logarithms this way
    by_moments = True
    exploration = SQRT_BETA  # √β of the UCB that takes over where this function repeats a point

    def __init__(self, model: FantasyModel) -> None:
        (X,) = model.train_inputs
        if X.ndim > 2 or not len(X):
            raise SettingError(
                f"The model has {X.shape[-2]} observations and the batch shape {tuple(X.shape[:-2])}; "
                "noisy expected improvement takes one observation or more, and no batch."
            )
        with torch.no_grad():
            values = model.draws(_nodes(len(X), _DRAWS))
            super().__init__(model.revealed(values))
        self.register_buffer("best", values.amax(-1))
        rows, times = values.argmax(-1).unique(return_counts=True)
        self.best_points = X[rows[times.argsort(descending=True, stable=True)]]

    def of_moments(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The values, n, from the means of the fantasies, `n x S`, and their variance, n.

        Of an average over E explanations, they are `n x E x S` and `n x E`.
        """
        deviation = variance.sqrt()
        u = (mean - self.best) / deviation.unsqueeze(-1)
        if u.ndim == 2:
            return log_mean_improvement(u) + deviation.log()
        gain = log_mean_improvement(u.flatten(0, 1)).view(deviation.shape) + deviation.log()
        return torch.logsumexp(gain + self.model.log_probability, -1)

    @property
    def has_slope(self) -> bool:
        """Whether the model knows the slopes of its moments."""
        return isinstance(self.model, PointModel)

    def value_and_slope(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Values, n, and slopes, `n x d`, at single points, `n x d`."""
        mean, variance, back = self.model.point_moments().with_slope(X)  # n x E x S, n x E
        deviation = variance.sqrt()
        u = (mean - self.best) / deviation.unsqueeze(-1)
        gain, t = log_mean_improvement_and_slope(u.flatten(0, 1))
        t = t.view_as(u)
        each = gain.view_as(deviation) + deviation.log()
        if isinstance(self.model, AverageModel):
            each = each + self.model.log_probability
        value = torch.logsumexp(each, -1)
        share = (each - value.unsqueeze(-1)).exp()
        by_variance = 0.5 * share * (1.0 - (t * u).sum(-1)) / variance
        return value, back((share / deviation).unsqueeze(-1) * t, by_variance)

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """The value, `batch`, at `batch x 1 x d`."""
        return self.of_moments(*self.model.of_fantasies(X.flatten(0, -2))).view(X.shape[:-2])


@lru_cache(maxsize=64)
def _nodes(n: int, draws: int) -> Tensor:
    """Standard normal nodes, `draws x n`."""
    with torch.inference_mode(False):  # they outlive the caller's inference mode
        nodes: Tensor = draw_sobol_normal_samples(n, draws, dtype=torch.float64, seed=_SEED)
    return nodes


def log_mean_improvement(u: Tensor) -> Tensor:
    """log of the mean of h(u) over S draws, n from `n x S`; exact where h is close to 0, too."""
    hopeful = u.detach().amax(-1) > _TAIL
    value = u.new_empty(len(u))
    value[hopeful] = _mean_improvement(u[hopeful]).log()
    value[~hopeful] = _log_tail(u[~hopeful]).logsumexp(-1) - math.log(u.shape[-1])
    return value


def log_mean_improvement_and_slope(u: Tensor) -> tuple[Tensor, Tensor]:
    r"""The same, and its slopes $t_s = \Phi(u_s) / \sum_r h(u_r)$, `n x S`."""
    hopeful = u.amax(-1) > _TAIL
    if hopeful.all():
        return _near(u)
    value, slope = u.new_empty(len(u)), torch.empty_like(u)
    value[hopeful], slope[hopeful] = _near(u[hopeful])
    far = u[~hopeful]
    log_h = _log_tail(far)
    total = log_h.logsumexp(-1)
    value[~hopeful] = total - math.log(u.shape[-1])
    # Φ / Σ h as Φ / φ times φ / Σ h: each of them underflows by itself.
    mills = math.sqrt(0.5 * math.pi) * torch.special.erfcx(-far / math.sqrt(2.0))
    log_density = -0.5 * far.square() - 0.5 * math.log(2.0 * math.pi)
    slope[~hopeful] = mills * (log_density - total.unsqueeze(-1)).exp()
    return value, slope


def _near(u: Tensor) -> tuple[Tensor, Tensor]:
    """Value and slopes where a draw is not far below."""
    Phi = 0.5 * torch.erfc(u * -math.sqrt(0.5))
    total = (torch.exp(-0.5 * u.square()) / math.sqrt(2.0 * math.pi) + u * Phi).sum(-1)
    return (total / u.shape[-1]).log(), Phi / total.unsqueeze(-1)


def _mean_improvement(u: Tensor) -> Tensor:
    """The mean of h(u), where its subtraction costs fewer than two digits."""
    density = torch.exp(-0.5 * u.square()) / math.sqrt(2.0 * math.pi)
    # Not by ndtr: it computes 1 + erf, which loses all digits of a small Φ.
    return (density + 0.5 * u * torch.erfc(-u / math.sqrt(2.0))).mean(-1)


def _log_tail(u: Tensor) -> Tensor:
    r"""log h(u) where u < 0: φ times $1 - |u| \sqrt{\pi/2}\, \mathrm{erfcx}(|u| / \sqrt2)$."""
    # Far out this difference has no digits left; there it is 1/u² - 3/u⁴. Each formula sees only the
    # arguments it is good for: elsewhere its gradient would be NaN.
    near, far = u.clamp_min(_FAR), u.clamp_max(_FAR)
    scaled = torch.special.erfcx(-near / math.sqrt(2.0))
    ratio = torch.log1p(near * math.sqrt(0.5 * math.pi) * scaled)
    series = torch.log1p(-3.0 / far.square()) - 2.0 * torch.log(-far)
    log_density = -0.5 * u.square() - 0.5 * math.log(2.0 * math.pi)
    return log_density + torch.where(u > _FAR, ratio, series)
