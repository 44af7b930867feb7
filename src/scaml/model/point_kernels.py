r"""Stationary kernels between single points and fixed ones, with their slopes, in few passes.

With $(x^2, x, 1)$ as the features of a point, squared scaled distances are one product of matrices:

$$\sum_d (x_d - z_d)^2 / \ell_d^2 = (x^2, x, 1) \cdot (\ell^{-2}, -2 z \ell^{-2}, |z / \ell|^2).$$

The kernels' own factor is in it, too. So the product is E, with $R = e^E$ and $E = -r^2 / 2$ (SE), or
$R = (1 + t + t^2 / 3) e^{-t}$ and $E = t^2 = 5 r^2$ (Matérn), where $dR / dE = -(1 + t) e^{-t} / 6$.
From derivatives $q = \bar R\, dR / dE$ the same factor leads back:
$\bar x = 2 x \cdot (q\, \ell^{-2}) - q\, (2 z \ell^{-2})$.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from scaml.gp.kernels import KernelName

__all__ = ["PointKernels", "features", "towards"]

_SQUARE = {"se": -0.5, "matern52": 5.0}  # E over the squared distance
_SLOPE = {"se": 1.0, "matern52": -1.0 / 6.0}  # dR / dE over what `at` returns


@dataclass(frozen=True, eq=False)
class PointKernels:
    """K correlations, each with k fixed points of its own."""

    kernel: KernelName
    forward: Tensor  # K x (2 d + 1) x k
    backward: Tensor  # K x k x 2 d

    @classmethod
    def of(cls, kernel: KernelName, inverse: Tensor, points: Tensor, d: int) -> PointKernels:
        """From 1/ℓ, `K x D`, and the points, `K x k x D`.

        Args:
            kernel: Its name.
            inverse: Inverse lengthscales.
            points: The fixed points.
            d: Columns of the other points, which are 0 in the last D - d.
        """
        squares = inverse.square().unsqueeze(1)
        weighted = points * squares
        length = (weighted * points).sum(-1, keepdim=True)
        factor = torch.cat(
            [squares[..., :d].expand_as(points[..., :d]), -2.0 * weighted[..., :d], length], dim=-1
        )
        factor = _SQUARE[kernel] * factor
        return cls(kernel, factor.mT.contiguous(), _SLOPE[kernel] * factor[..., :-1])

    def at(self, phi: Tensor, which: slice = slice(None)) -> tuple[Tensor, Tensor]:
        """R and its slope but for a factor, `K x S x k`, at features, `S x (2 d + 1)`."""
        forward = self.forward[which]
        E = torch.bmm(phi.expand(len(forward), -1, -1), forward)
        if self.kernel == "se":
            R = E.exp_()
            return R, R
        root = E.clamp_min_(0.0).sqrt_()
        decay = torch.neg(root).exp_()
        slope = torch.add(root, 1.0).mul_(decay)
        return torch.addcmul(slope, root, decay.mul_(root), value=1.0 / 3.0), slope


def features(X: Tensor) -> Tensor:
    """(x², x, 1), `S x (2 d + 1)`."""
    return torch.cat([X.square(), X, X.new_ones(len(X), 1)], dim=-1)


def towards(X: Tensor, sums: Tensor) -> Tensor:
    """The slope, `S x d`, from derivatives with respect to x² and x, `S x 2 d`."""
    by_square, by_x = sums.split(X.shape[-1], dim=-1)
    return torch.addcmul(by_x, by_square, X, value=2.0)
