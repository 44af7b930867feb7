r"""The negative log marginal likelihood of many small GPs with its gradient in closed form.

Both likelihoods of the method are this one function. With residual $r$, kernel matrix
$K = o R + C + \sigma^2 I$ (a meta-task has $C = 0$ and $r = y_m$; the test-task has
$C = \sum_m w_m^2 \Sigma_m$ and $r = y_t - \sum_m w_m \mu_m$), $\alpha = K^{-1} r$,
$A = K^{-1} - \alpha\alpha^T$ and $G = A \circ o W$:

$$\partial / \partial \log \ell_d = \sum_i (G 1)_i a_{id}^2 - a_d^T G a_d, \quad
\partial / \partial \log o = \tfrac12 \langle A, o R \rangle, \quad
\partial / \partial \log \sigma^2 = \tfrac12 \sigma^2 \operatorname{tr} A.$$

No `n x n x d` tensor is ever built. Tasks of unequal size share a batch exactly: a padded row has
unit diagonal, zero covariance and zero residual, and adds nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from scaml.kernels import KernelName, correlation_and_slope, squared_distance

__all__ = ["Evaluation", "negative_log_likelihood"]

_LOG_2PI = math.log(2.0 * math.pi)


class Evaluation(NamedTuple):
    """A batch of likelihoods; where K is not positive definite, `value` is infinite."""

    value: Tensor  # batch
    slope: Tensor  # batch x (d + 2), with respect to (log ℓ, log o, log σ²)
    alpha: Tensor  # batch x n
    inner: Tensor  # A, batch x n x n


def negative_log_likelihood(
    kernel: KernelName,
    theta: Tensor,
    X: Tensor,
    residual: Tensor,
    *,
    mask: Tensor | None = None,
    covariance: Tensor | None = None,
) -> Evaluation:
    """Evaluate a batch of likelihoods.

    Args:
        kernel: The kernel's name.
        theta: `batch x (d + 2)`: log lengthscales, log outputscale, log noise variance.
        X: `batch x n x d` (or broadcastable).
        residual: `batch x n`, zero in padded rows.
        mask: `batch x n`, 1.0 for rows that exist; None if all do.
        covariance: C, `batch x n x n`, or None for zero.

    Returns:
        Value, slope, α and A.
    """
    a = X * torch.exp(-theta[:, None, :-2])
    outputscale, noise = theta[:, -2].exp(), theta[:, -1].exp()
    # Memory traffic costs as much as the factorization here, so n x n tensors are worked in place.
    R, W = correlation_and_slope(kernel, squared_distance(a, a))
    signal = R.mul_(outputscale[:, None, None])
    if mask is not None:
        signal.mul_(mask.unsqueeze(-1)).mul_(mask.unsqueeze(-2))
    K = signal if covariance is None else signal + covariance
    diagonal = K.diagonal(dim1=-2, dim2=-1)
    noiseless = diagonal.clone()
    diagonal.add_(noise[:, None] if mask is None else torch.where(mask > 0, noise[:, None], 1.0))
    L, info = torch.linalg.cholesky_ex(K)
    diagonal.copy_(noiseless)
    inverse = torch.cholesky_inverse(L)
    alpha = (inverse @ residual.unsqueeze(-1)).squeeze(-1)
    # LAPACK's result is column-major; its transpose is the same matrix laid out like the rest.
    inner = inverse.mT
    count = residual.shape[-1] if mask is None else mask.sum(-1)
    value = (
        0.5 * (residual * alpha).sum(-1)
        + L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        + 0.5 * _LOG_2PI * count
    )
    inner.baddbmm_(alpha.unsqueeze(-1), alpha.unsqueeze(-2), alpha=-1.0)
    trace = inner.diagonal(dim1=-2, dim2=-1)
    by_noise = 0.5 * noise * (trace if mask is None else trace * mask).sum(-1)
    G = signal.mul_(inner)
    rows, Ga = _row_sums_and_product(G, a)
    by_outputscale = 0.5 * rows.sum((-2, -1))
    if W is not None:
        G = W.mul_(outputscale[:, None, None]).mul_(inner)
        if mask is not None:
            G.mul_(mask.unsqueeze(-1)).mul_(mask.unsqueeze(-2))
        rows, Ga = _row_sums_and_product(G, a)
    by_lengthscale = (rows * a.square() - a * Ga).sum(-2)
    slope = torch.cat([by_lengthscale, by_outputscale[:, None], by_noise[:, None]], dim=-1)
    # A failed factorization must look like a wall to the line search, not like a number.
    return Evaluation(torch.where(info == 0, value, torch.inf), slope, alpha, inner)


def _row_sums_and_product(G: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """G 1, `batch x n x 1`, and G a from one pass over G."""
    product = G @ torch.cat([a, a.new_ones(()).expand(*a.shape[:-1], 1)], dim=-1)
    return product[..., -1:], product[..., :-1]
