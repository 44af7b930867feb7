r"""Stationary kernels $k(x, x') = o \cdot R(\lVert (x - x') / \ell \rVert)$ on scaled inputs.

All functions take scaled inputs $a = x / \ell$. A GP that does not depend on a column has inverse
lengthscale 0 there. Leading dimensions are batches (tasks, starts, t-batches).

A kernel is given by its correlation $R$ and its slope $W$. A closed-form gradient of the likelihood
needs nothing else:

$$\partial R_{ij} / \partial \log \ell_d = W_{ij} (a_{id} - a_{jd})^2.$$
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from scaml.errors import SettingError

__all__ = [
    "KernelName",
    "check_kernel",
    "correlation",
    "correlation_and_slope",
    "left_factor",
    "right_factor",
    "squared_distance",
]

KernelName = Literal["se", "matern52"]

# Smaller squared distances are lifted to this one. The square root in the Matérn kernel is then
# differentiable at equal points, where the true gradient is 0.
_SAME_POINT = 1e-24


def check_kernel(kernel: str) -> None:
    """Refuse an unknown kernel."""
    if kernel not in get_args(KernelName):
        raise SettingError(
            f"The kernel is {kernel!r}; choose one of {', '.join(map(repr, get_args(KernelName)))}."
        )


def squared_distance(a: Tensor, b: Tensor) -> Tensor:
    """Squared Euclidean distances between scaled inputs, never negative.

    Args:
        a: `batch x n x d`.
        b: `batch x k x d`.

    Returns:
        `batch x n x k`, a new tensor that the caller may overwrite.
    """
    # |a|² - 2ab + |b|² is one matrix product of d + 2 columns. Any other pass over the n x k entries
    # costs more, and no n x k x d tensor is built.
    return torch.matmul(left_factor(a), right_factor(b).mT).clamp_min_(0.0)


def left_factor(a: Tensor) -> Tensor:
    """(a, |a|², 1), `n x (d + 2)`."""
    one = a.new_ones(()).expand(*a.shape[:-1], 1)
    return torch.cat([a, a.square().sum(-1, keepdim=True), one], dim=-1)


def right_factor(b: Tensor) -> Tensor:
    """(-2 b, 1, |b|²), `k x (d + 2)`; `left_factor` times its transpose gives squared distances."""
    one = b.new_ones(()).expand(*b.shape[:-1], 1)
    return torch.cat([-2.0 * b, one, b.square().sum(-1, keepdim=True)], dim=-1)


def correlation(kernel: KernelName, squared: Tensor) -> Tensor:
    """$R$ from squared distances; differentiable."""
    if kernel == "se":
        return torch.exp(squared.mul(-0.5))
    root = squared.mul(5.0).clamp_min(_SAME_POINT).sqrt()
    return (1.0 + root + root.square() / 3.0) * torch.exp(-root)


def correlation_and_slope(kernel: KernelName, squared: Tensor) -> tuple[Tensor, Tensor | None]:
    """$R$ and $W$; overwrites the squared distances. W is None for the SE kernel, where W = R."""
    if kernel == "se":
        return squared.mul_(-0.5).exp_(), None
    root = squared.mul_(5.0).sqrt_()
    decay = torch.exp(-root)
    slope = (1.0 + root).mul_(decay)
    return root.square_().div_(3.0).mul_(decay).add_(slope), slope.mul_(5.0 / 3.0)
