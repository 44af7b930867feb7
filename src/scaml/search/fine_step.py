"""The last digits: a better point beside the best one, closer than a search would look.

The fitted noise has a lower bound, which hides differences of y below 1e-4 of its range. Close to a
maximum of a smooth objective without noise, such differences are all that is left to gain. So the model
is asked again with its observations taken for exact: where is its mean largest beside the best point?
"""

from __future__ import annotations

import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.gp.posterior import mean_and_variance
from scaml.model.protocols import AverageModel, ExactModel, PointModel
from scaml.search.cube import ascend, evaluate

__all__ = ["fine_step"]

# A maximum on the edge of the box is none: what rises beyond it is the usual search's business. With
# noise or on a plateau, the mean between exact observations has its maxima farther away than this.
_EDGE = 1e-3
_GAINLESS_RETURNS = (
    2  # after so many points in the box without a gain, nothing better is expected there
)
_STARTS = 8
_LEAST_UNIT = 1e-6  # of gains, as such a share: the solver's tolerance is 1e-9 of it
_ROUNDING = 1e-15  # a smaller gain, as a share of the largest |y|, is a rounding error


def fine_step(model: object, width: float, fixed: Tensor, *, seed: int) -> Tensor | None:
    """A point, d long, less than `width` from the best one, where more is expected; None if not.

    None, too, if the last two points this close to the best one were no better, if the best value was
    observed twice, as on a plateau, or if the model cannot take its observations for exact.

    Args:
        model: Of the new task.
        width: Largest distance from the best point in any coordinate.
        fixed: Which of the d columns stay as they are.
        seed: Decides the starts of the search.
    """
    if not isinstance(model, ExactModel) or not len(model.train_targets) or fixed.all():
        return None
    (X,), y = model.train_inputs, model.train_targets
    best = int(y.argmax())
    returns = int(((X[best + 1 :] - X[best]).abs().amax(-1) < width).sum())
    if returns >= _GAINLESS_RETURNS or int((y == y[best]).sum()) > 1:
        return None
    low, high = (X[best] - width).clamp(0.0, 1.0), (X[best] + width).clamp(0.0, 1.0)
    gain = _Gain(model.exact(), X[best], low, high)
    starts = torch.quasirandom.SobolEngine(X.shape[-1], scramble=True, seed=seed)
    U = starts.draw(_STARTS, dtype=torch.float64)
    centre = ((X[best] - low) / (high - low)).expand_as(U)
    U = torch.cat([centre[:1], torch.where(fixed, centre, U)])
    unit = evaluate(gain, U).abs().max()
    if not unit > 0:
        return None
    least = _LEAST_UNIT * float(y.abs().max())
    points, gains = ascend(gain, U, fixed, unit=max(float(unit), least))
    found, more = points[gains.argmax()], float(gains.max())
    inside = ((found > _EDGE) | (low == 0.0)) & ((found < 1.0 - _EDGE) | (high == 1.0)) | fixed
    if not inside.all() or not more > _ROUNDING * float(y.abs().max()):
        return None
    return torch.where(fixed, X[best], low + found * (high - low))


class _Gain:
    """What the mean has more in a box than at its centre, at points of the unit cube."""

    def __init__(self, model: Model, centre: Tensor, low: Tensor, high: Tensor) -> None:
        self.model, self.low, self.side = model, low, high - low
        with torch.no_grad():
            reached = mean_and_variance(model.posterior(centre[None]))[0]
        self.reached = reached.item()  # y, but for rounding

    @property
    def has_slope(self) -> bool:
        """Whether the model knows the slope of its mean."""
        return isinstance(self.model, PointModel)

    def __call__(self, U: Tensor) -> Tensor:
        """The gain, k, at `k x 1 x d`."""
        mean, _ = mean_and_variance(self.model.posterior(self.low + U * self.side))
        return mean.flatten() - self.reached

    def value_and_slope(self, U: Tensor) -> tuple[Tensor, Tensor]:
        """The gain and its slope at `k x d`."""
        mean, variance, back = self.model.point_moments().with_slope(self.low + U * self.side)
        p = self.model.probability if isinstance(self.model, AverageModel) else mean.new_ones(1)
        slope = back(p[:, None].expand_as(mean), torch.zeros_like(variance))
        return mean[..., 0] @ p - self.reached, slope * self.side
