"""A Cholesky factorization that does not give up at the first rounding error."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from scaml.errors import FitError

__all__ = ["cholesky"]

# Shares of the mean diagonal that are added in turn to a matrix that is not positive definite.
_JITTERS = (1e-10, 1e-8, 1e-6)


def cholesky(K: Tensor, whose: str | Sequence[str]) -> Tensor:
    """Lower factors of `batch x n x n` kernel matrices, with jitter only where one fails.

    Args:
        K: Symmetric matrices.
        whose: Whom to name if all jitter was in vain: one for all matrices, or one for each.

    Raises:
        FitError: K is not positive definite, or not finite.
    """
    L: Tensor
    L, info = torch.linalg.cholesky_ex(K)
    scale = K.diagonal(dim1=-2, dim2=-1).mean(-1)
    added = torch.zeros_like(scale)
    for jitter in _JITTERS:
        failed = info != 0
        if not failed.any():
            break
        added = torch.where(failed, jitter * scale, added)
        L, info = torch.linalg.cholesky_ex(
            K + added[..., None, None] * torch.eye(K.shape[-1], dtype=K.dtype)
        )
    good = (info == 0) & L.isfinite().all(-1).all(-1)
    if not good.all():
        name = whose if isinstance(whose, str) else whose[int((~good).nonzero()[0])]
        raise FitError(
            f"The kernel matrix of {name} is not positive definite even with a jitter of "
            f"{_JITTERS[-1]:g}; raise the noise, or drop rows of X that lie on top of each other."
        )
    return L
