"""Factorizations and inverses of kernel matrices: one is robust to rounding errors, one is fast."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from scaml.errors import FitError

__all__ = [
    "appended",
    "cholesky",
    "inverse_and_half_log_det",
    "inverse_of_lower",
    "keep_freed_memory",
    "square_root",
]

# Jitter, as shares of the mean diagonal: if a matrix is not positive definite, these are tried in turn.
_JITTERS = (1e-10, 1e-8, 1e-6)

# For these sizes two blocks are up to a third faster than one: rows fall on the same lines of the CPU
# cache, LAPACK is slow, products are not. For others one block is faster, for a single matrix twice.
_TWO_BLOCKS = (128, 192)


def cholesky(K: Tensor, whose: str | Sequence[str]) -> Tensor:
    """Lower factors of `batch x n x n` kernel matrices, with jitter only where one fails.

    Args:
        K: Symmetric matrices.
        whose: The name in the error message: one for all matrices, or one per matrix.

    Raises:
        FitError: A matrix is not positive definite even with the largest jitter, or not finite.
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
            f"{_JITTERS[-1]:g}; raise the noise, or drop repeated rows of X."
        )
    return L


def square_root(S: Tensor) -> Tensor:
    """R with R R^T = S for a covariance S, `n x n`, that may be singular.

    R is the Cholesky factor. Where rounding makes eigenvalues of S negative, they are taken for 0.
    """
    L: Tensor
    L, info = torch.linalg.cholesky_ex(S)
    if info == 0:
        return L
    values, vectors = torch.linalg.eigh(S)
    root: Tensor = vectors * values.clamp_min(0.0).sqrt()
    return root


def inverse_of_lower(L: Tensor) -> Tensor:
    """L^-1 of lower triangular matrices L, `batch x n x n`."""
    identity = torch.eye(L.shape[-1], dtype=L.dtype).expand_as(L)
    inverse: Tensor = torch.linalg.solve_triangular(L, identity, upper=False)
    return inverse


def inverse_and_half_log_det(K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """K^-1 and ½ log det K of `batch x n x n` matrices; no result depends on the other matrices.

    Args:
        K: Symmetric matrices.

    Returns:
        Inverses, a new tensor that the caller may overwrite; `batch` half log determinants; `batch`
        integers, not 0 where K is not positive definite. There, the other results mean nothing.
    """
    n = K.shape[-1]
    if n not in _TWO_BLOCKS:
        L, info = torch.linalg.cholesky_ex(K)
        return _inverse(L, info), _half_log_det(L), info
    half = n // 2
    L, info = torch.linalg.cholesky_ex(K[:, :half, :half])
    V = torch.linalg.solve_triangular(L, K[:, :half, half:], upper=False)
    L_schur, info_schur = torch.linalg.cholesky_ex(
        torch.baddbmm(K[:, half:, half:], V.mT, V, alpha=-1.0)
    )
    B = torch.linalg.solve_triangular(L.mT, V, upper=True)  # K_11^-1 K_12
    schur = _inverse(L_schur, info_schur)
    corner = B @ schur
    inverse = torch.empty_like(K)
    inverse[:, half:, half:] = schur
    inverse[:, :half, half:] = -corner
    inverse[:, half:, :half] = -corner.mT
    inverse[:, :half, :half] = _inverse(L, info).baddbmm_(corner, B.mT)
    return inverse, _half_log_det(L) + _half_log_det(L_schur), info + info_schur


def _inverse(L: Tensor, info: Tensor) -> Tensor:
    """(L L^T)^-1, or some finite matrix where the factorization failed."""
    if info.any():  # a zero on the diagonal of one factor raises an error for the whole batch
        identity = torch.eye(L.shape[-1], dtype=L.dtype)
        L = torch.where(info[:, None, None] == 0, L, identity)
    # LAPACK's result is column-major; its transpose is the same symmetric matrix in row-major order.
    return torch.cholesky_inverse(L).mT


def _half_log_det(L: Tensor) -> Tensor:
    return L.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def keep_freed_memory() -> None:
    """Make the C library keep the memory that one evaluation frees for the next one.

    glibc returns large blocks to the system at once, and the next use faults their pages in again: a
    fifth of the time at 128 points. It stops doing so after a larger block was freed. So this function
    allocates and frees one, without writing to it.
    """
    torch.empty(2**22 - 2**12, dtype=torch.float64)


def appended(old: Tensor, new: Tensor, dim: int) -> Tensor:
    """Concatenate along `dim`, expanding the batch dimensions of either."""
    kept = -dim
    batch = torch.broadcast_shapes(old.shape[:-kept], new.shape[:-kept])
    return torch.cat(
        [old.expand(*batch, *old.shape[-kept:]), new.expand(*batch, *new.shape[-kept:])], dim=dim
    )
