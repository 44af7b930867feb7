r"""Mean and variance of E test-task models at single points, with their slopes: equation 1.

A search asks for thousands of them. The models are the members of an average over explanations, or a
single one. They share the past tasks and X_t, and differ in weights, residual kernel, noise, level and
scale. From the prior of Theorem 1 (`past_at_points`), with $c(x) = k(x, X_t)$ and $\psi = L_t^{-1} c$,

$$\mu(x) = m(x) + c(x)^T \alpha + \beta, \qquad
\sigma^2(x) = k(x, x) - |\psi|^2 + \tau (1 - \psi^T e)^2,$$

the last term and β for the level (`unknown_level`). Fantasies, which are F vectors of values at X_t,
differ in α and β alone. Backwards, with bars for derivatives,

$$\bar\psi = -2 \bar{\sigma^2} (\psi + \tau (1 - \psi^T e)\, e), \qquad
\bar c = \bar\mu \alpha + L_t^{-T} \bar\psi,$$

and from $\bar c$ through the residual kernel and the past tasks to x. All arrays have one row per point
and member, so that a call is a few products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from scaml.model.past_at_points import Block, OfPast, PastAtPoints
from scaml.model.point_kernels import PointKernels, features, towards
from scaml.model.unknown_level import LevelGiven

if TYPE_CHECKING:
    from scaml.model.scaml_gp import ScaMLGP

__all__ = ["Observed", "PointMoments", "Pullback"]

Pullback = Callable[[Tensor, Tensor], Tensor]
"""From derivatives with respect to means, `S x E x F`, and variances, `S x E`, to slopes, `S x d`."""


class Observed(NamedTuple):
    """What equation 1 keeps of D_t, in standardized units."""

    X: Tensor  # `n x d`
    alpha: Tensor  # `batch x n`
    root: Tensor  # L_t^-1, `n x n`
    level: LevelGiven
    floor: float  # least variance


class _Way(NamedTuple):
    """What the way back needs, `E x S x ...`."""

    slope: Tensor  # of the residual kernels
    psi: Tensor
    unlevelled: Tensor  # 1 - ψ^T e, `E x S`
    free: Tensor  # `E x S`, where the variance is above its floor


@dataclass(frozen=True, eq=False)
class PointMoments:
    """What means and variances at a point need, in standardized units but for the last two."""

    past: PastAtPoints
    weights: Tensor  # E x M
    kernels: PointKernels  # of the residuals, to X_t
    residual: Tensor  # E x 1, o
    alpha: Tensor  # E x F x n
    root: Tensor  # E x n x n, L_t^-1
    beta: Tensor  # E x 1 x F, the mean of the level
    tau: Tensor  # E x 1, its variance
    one: Tensor  # E x n, e
    floor: Tensor  # E x 1, least variances
    offset: Tensor  # E x 1, of y
    scale: Tensor  # E x 1

    @classmethod
    def of(cls, past: PastAtPoints, weights: Tensor, members: Sequence[ScaMLGP]) -> PointMoments:
        """From models of the same X_t, `n x d`, and their weights of the past tasks, `E x M`."""
        inverse = torch.stack([member.lengthscale.reciprocal() for member in members])
        X = members[0].observed.X.expand(len(members), -1, -1)
        return cls(
            past=past,
            weights=weights,
            kernels=PointKernels.of(past.kernels.kernel, inverse, X, X.shape[-1]),
            residual=torch.stack([member.outputscale.reshape(1) for member in members]),
            offset=torch.stack([member.y_offset.reshape(1) for member in members]),
            scale=torch.stack([member.y_scale.reshape(1) for member in members]),
            **_observed(members),
        )

    def observing(self, members: Sequence[ScaMLGP]) -> PointMoments:
        """The same models with other values at X_t, or another noise there."""
        return replace(self, **_observed(members))

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means, `S x E x F`, and variances, `S x E`, at `S x d`, in the units of y; differentiable."""
        return self.in_units(*self.standardized(X))

    def standardized(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The same before units."""
        if torch.is_grad_enabled() and X.requires_grad:
            moments: tuple[Tensor, Tensor] = _Differentiable.apply(X, self)  # type: ignore[no-untyped-call]
            return moments
        with torch.no_grad():
            mean, variance, _ = self._given(self.past(X, self.weights), X)
        return mean.transpose(0, 1), variance.mT

    def given(self, past: OfPast, X: Tensor) -> tuple[Tensor, Tensor]:
        """As a call, from the past tasks at X, which a table of points keeps."""
        mean, variance, _ = self._given(past, X)
        return self.in_units(mean.transpose(0, 1), variance.mT)

    def in_units(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Standardized moments, in the units of y."""
        return self.offset + self.scale * mean, self.scale[:, 0].square() * variance

    def with_slope(self, X: Tensor) -> tuple[Tensor, Tensor, Pullback]:
        """Means and variances in the units of y, and the way back from derivatives to slopes."""
        mean, variance, back = self.standardized_with_slope(X)
        scale = self.scale[:, 0]

        def in_units(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            return back(by_mean * self.scale, by_variance * scale.square())

        return *self.in_units(mean, variance), in_units

    def standardized_with_slope(self, X: Tensor) -> tuple[Tensor, Tensor, Pullback]:
        """The same before units."""
        with torch.no_grad():
            blocks: list[Block] = []
            mean, variance, way = self._given(self.past(X, self.weights, blocks), X)

        def back(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            with torch.no_grad():
                given, sums = self._back(by_mean.transpose(0, 1), by_variance.mT, way)
                return towards(X, sums) + self.past.slope(X, given, self.weights, blocks)

        return mean.transpose(0, 1), variance.mT, back

    def _given(self, past: OfPast, X: Tensor) -> tuple[Tensor, Tensor, _Way]:
        R, slope = self.kernels.at(features(X))
        covariance = torch.addcmul(past.covariance, self.residual.unsqueeze(-1), R)
        mean = torch.baddbmm(past.mean.unsqueeze(-1) + self.beta, covariance, self.alpha.mT)
        psi = torch.bmm(covariance, self.root.mT)
        unlevelled = 1.0 - torch.bmm(psi, self.one.unsqueeze(-1)).squeeze(-1)
        variance = self.residual + past.variance - psi.square().sum(-1)
        free = variance > self.floor
        variance = torch.maximum(variance, self.floor) + self.tau * unlevelled.square()
        return mean, variance, _Way(slope, psi, unlevelled, free)

    def _back(self, by_mean: Tensor, by_variance: Tensor, way: _Way) -> tuple[OfPast, Tensor]:
        """Derivatives with respect to the past, and through the residual kernels to x² and x.

        Args:
            by_mean: `E x S x F`, standardized.
            by_variance: `E x S`.
            way: Of the way there.
        """
        free = by_variance * way.free
        by_psi = way.psi * (-2.0 * free).unsqueeze(-1)
        by_level = -2.0 * self.tau * by_variance * way.unlevelled
        by_psi.addcmul_(by_level.unsqueeze(-1), self.one.unsqueeze(1))
        covariance = torch.bmm(by_psi, self.root).baddbmm_(by_mean, self.alpha)
        by_R = (self.residual.unsqueeze(-1) * covariance).mul_(way.slope)
        sums = torch.bmm(by_R, self.kernels.backward).sum(0)
        return OfPast(by_mean.sum(-1), free, covariance), sums


class _Differentiable(torch.autograd.Function):
    """Standardized moments for autograd, which asks for the way back by itself."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, moments: PointMoments) -> tuple[Tensor, Tensor]:
        mean, variance, ctx.back = moments.standardized_with_slope(X.detach())
        return mean, variance

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, by_mean: Tensor, by_variance: Tensor) -> tuple[Tensor, None]:
        return ctx.back(by_mean, by_variance), None


def _observed(members: Sequence[ScaMLGP]) -> dict[str, Any]:
    """What depends on the values at X_t and on their noise."""
    given = [member.observed for member in members]
    return {
        "alpha": torch.stack([torch.atleast_2d(one.alpha) for one in given]),
        "root": torch.stack([one.root for one in given]),
        "beta": torch.stack([torch.atleast_1d(one.level.mean)[None] for one in given]),
        "tau": torch.stack([one.level.variance.reshape(1) for one in given]),
        "one": torch.stack([one.level.one for one in given]),
        "floor": torch.tensor([[one.floor] for one in given], dtype=given[0].X.dtype),
    }
