r"""The negative log marginal likelihood of many small GPs with its gradient in closed form.

Each GP has a residual $r$ (y minus its prior mean) and a kernel matrix $K = o R + C + \sigma^2 I$, with
a given covariance $C$ or $C = 0$. With $\alpha = K^{-1} r$, $A = K^{-1} - \alpha\alpha^T$ and
$G = A \circ o W$, the gradient is

$$\partial / \partial \log \ell_d = \sum_i (G 1)_i a_{id}^2 - a_d^T G a_d, \quad
\partial / \partial \log o = \tfrac12 \langle A, o R \rangle, \quad
\partial / \partial \log \sigma^2 = \tfrac12 \sigma^2 \operatorname{tr} A.$$

No `n x n x d` tensor is built. GPs of different sizes can share a batch, and their values stay exact: a
padded row has unit diagonal, zero covariance and zero residual, so that it adds nothing.

An unknown level of variance $\lambda$ adds $\lambda 1 1^T$ to K. In units of y_t, λ can be a million
times the other variances, and K would lose its digits. So the level stays outside: with
$u = K^{-1} 1$, $t = 1^T u$ and $\tau = \lambda / (1 + \lambda t)$,

$$(K + \lambda 1 1^T)^{-1} = K^{-1} - \tau u u^T, \qquad
\log \det (K + \lambda 1 1^T) = \log \det K + \log(1 + \lambda t),$$

and the mean of r is taken apart first: $r = \bar r 1 + \tilde r$ gives
$\alpha = K^{-1} \tilde r - \tau u (u^T \tilde r) + \bar r u / (1 + \lambda t)$, whose terms are all of
the order of the result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from scaml.gp.kernels import KernelName, correlation_and_slope, squared_distance
from scaml.gp.linalg import inverse_and_half_log_det

__all__ = ["Evaluation", "negative_log_likelihood", "value_alone"]

_LOG_2PI = math.log(2.0 * math.pi)


class Evaluation(NamedTuple):
    """A batch of likelihoods; `value` is infinite where K is not positive definite."""

    value: Tensor  # batch
    slope: Tensor  # batch x (d + 2), with respect to (log ℓ, log o, log σ²)
    alpha: Tensor  # batch x n
    inner: Tensor  # A, batch x n x n
    level: LevelTerms | None = None

    def along(self, z: Tensor) -> Tensor:
        """α^T z, `batch`, without the cancellation of a large mean of z where the level is unknown."""
        if self.level is None:
            return (self.alpha * z).sum(-1)
        mean = z.mean(-1)
        return (self.alpha * (z - mean.unsqueeze(-1))).sum(-1) + mean * self.level.alpha


class LevelTerms(NamedTuple):
    """What the level adds, computed without the cancellation that sums over α and A would have."""

    slope: Tensor  # batch, with respect to log λ
    alpha: Tensor  # batch, 1^T α


def negative_log_likelihood(
    kernel: KernelName,
    theta: Tensor,
    X: Tensor,
    residual: Tensor,
    *,
    mask: Tensor | None = None,
    covariance: Tensor | None = None,
    level: Tensor | None = None,
) -> Evaluation:
    """Evaluate a batch of likelihoods.

    Args:
        kernel: The kernel's name.
        theta: `batch x (d + 2)`: log lengthscales, log outputscale, log noise variance.
        X: `batch x n x d` (or broadcastable).
        residual: `batch x n`, zero in padded rows.
        mask: `batch x n`, 1.0 for data, 0.0 for padded rows; None if no row is padded.
        covariance: C, `batch x n x n`, or None for zero.
        level: λ, `batch`, the variance of an unknown level; None for none. No row may be padded.

    Returns:
        Value, slope, α and A, and the terms of the level.
    """
    a = X * torch.exp(-theta[:, None, :-2])
    outputscale, noise = theta[:, -2].exp(), theta[:, -1].exp()
    # Memory traffic costs as much as the factorization here, so n x n tensors are changed in place.
    R, W = correlation_and_slope(kernel, squared_distance(a, a))
    signal = _signal(R, outputscale, mask)
    K = signal if covariance is None else signal + covariance
    diagonal = K.diagonal(dim1=-2, dim2=-1)
    noiseless = diagonal.clone()
    diagonal.add_(_noise_of_rows(noise, mask))
    inner, half_log_det, info = inverse_and_half_log_det(K)
    diagonal.copy_(noiseless)
    terms = None
    if level is None:
        alpha = (inner * residual.unsqueeze(-2)).sum(-1)
        quadratic = (residual * alpha).sum(-1)
    else:
        alpha, quadratic, more, terms = _with_level(inner, residual, level)
        half_log_det = half_log_det + more
    value = _value(quadratic, half_log_det, info, residual, mask)
    inner.sub_(alpha.unsqueeze(-1) * alpha.unsqueeze(-2))
    trace = inner.diagonal(dim1=-2, dim2=-1)
    by_noise = 0.5 * noise * (trace if mask is None else trace * mask).sum(-1)
    G = signal.mul_(inner)
    rows, Ga = _row_sums_and_product(G, a)
    by_outputscale = 0.5 * rows.sum(-1)
    if W is not None:
        G = W.mul_(outputscale[:, None, None]).mul_(inner)
        if mask is not None:
            G.mul_(mask.unsqueeze(-1)).mul_(mask.unsqueeze(-2))
        rows, Ga = _row_sums_and_product(G, a)
    by_lengthscale = (rows.unsqueeze(-2) * a.mT.square() - a.mT * Ga).sum(-1)
    slope = torch.cat([by_lengthscale, by_outputscale[:, None], by_noise[:, None]], dim=-1)
    return Evaluation(value, slope, alpha, inner, terms)


def _with_level(
    inner: Tensor, residual: Tensor, level: Tensor
) -> tuple[Tensor, Tensor, Tensor, LevelTerms]:
    """α, r^T α, the change of ½ log det K, and the terms of the level; updates K^-1 in place."""
    u = inner.sum(-1)
    t = u.sum(-1).clamp_min(0.0)  # below 0 only where K is not positive definite
    kept = 1.0 / (1.0 + level * t)  # the share of a level that the data leave unknown
    tau = level * kept
    mean = residual.mean(-1)
    apart = residual - mean.unsqueeze(-1)
    along = (u * apart).sum(-1)
    alpha = (inner * apart.unsqueeze(-2)).sum(-1) + (kept * mean - tau * along).unsqueeze(-1) * u
    inner.sub_((tau.unsqueeze(-1) * u).unsqueeze(-1) * u.unsqueeze(-2))
    total = kept * (mean * t + along)  # 1^T α
    quadratic = (apart * alpha).sum(-1) + mean * total
    slope = 0.5 * (tau * t - level * total.square())
    return alpha, quadratic, 0.5 * torch.log1p(level * t), LevelTerms(slope, total)


def value_alone(
    kernel: KernelName,
    theta: Tensor,
    X: Tensor,
    residual: Tensor,
    *,
    mask: Tensor | None = None,
    covariance: Tensor | None = None,
    level: Tensor | None = None,
) -> Tensor:
    """The value of `negative_log_likelihood`, in a third of the time."""
    a = X * torch.exp(-theta[:, None, :-2])
    R, _ = correlation_and_slope(kernel, squared_distance(a, a))
    K = _signal(R, theta[:, -2].exp(), mask)
    if covariance is not None:
        K += covariance
    K.diagonal(dim1=-2, dim2=-1).add_(_noise_of_rows(theta[:, -1].exp(), mask))
    L, info = torch.linalg.cholesky_ex(K)
    half_log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    if level is None:
        half = torch.linalg.solve_triangular(L, residual.unsqueeze(-1), upper=False).squeeze(-1)
        return _value(half.square().sum(-1), half_log_det, info, residual, mask)
    mean = residual.mean(-1)
    columns = torch.stack([residual - mean.unsqueeze(-1), torch.ones_like(residual)], dim=-1)
    half, e = torch.linalg.solve_triangular(L, columns, upper=False).unbind(-1)
    t, along = e.square().sum(-1), (e * half).sum(-1)
    kept = 1.0 / (1.0 + level * t)
    quadratic = half.square().sum(-1) - level * kept * along.square()
    quadratic = quadratic + kept * mean * (mean * t + 2.0 * along)
    half_log_det = half_log_det + 0.5 * torch.log1p(level * t)
    return _value(quadratic, half_log_det, info, residual, mask)


def _signal(R: Tensor, outputscale: Tensor, mask: Tensor | None) -> Tensor:
    """o R, zero in padded rows and columns; overwrites R."""
    signal = R.mul_(outputscale[:, None, None])
    return signal if mask is None else signal.mul_(mask.unsqueeze(-1)).mul_(mask.unsqueeze(-2))


def _noise_of_rows(noise: Tensor, mask: Tensor | None) -> Tensor:
    return noise[:, None] if mask is None else torch.where(mask > 0, noise[:, None], 1.0)


def _value(
    quadratic: Tensor, half_log_det: Tensor, info: Tensor, residual: Tensor, mask: Tensor | None
) -> Tensor:
    count = residual.shape[-1] if mask is None else mask.sum(-1)
    value = 0.5 * quadratic + half_log_det + 0.5 * _LOG_2PI * count
    # Where the factorization failed, the value means nothing: infinity keeps the line search out.
    return torch.where(info == 0, value, torch.inf)


def _row_sums_and_product(G: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """1^T G, `batch x n`, and a^T G, `batch x d x n`, from one pass over the symmetric G.

    The thin matrix is on the left, which takes half the time.
    """
    product = torch.cat([a.mT, a.new_ones(()).expand(*a.shape[:-2], 1, a.shape[-2])], dim=-2) @ G
    return product[..., -1, :], product[..., :-1, :]
