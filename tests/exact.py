"""The dense formulas in fifty digits, where the inverse of a matrix in float64 is worth nothing."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from tests.oracles import Array

mp = mpmath.MPContext()
mp.dps = 50


def kernel_matrix(name: str, A: Array, B: Array, lengthscale: Any, outputscale: Any) -> Any:
    """A stationary kernel, entry by entry; hyperparameters may be of either precision."""
    K = mp.matrix(len(A), len(B))
    inverse = [1 / mp.mpf(ell) for ell in lengthscale]
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            steps = [(mp.mpf(x) - mp.mpf(z)) * scale for x, z, scale in zip(a, b, inverse, strict=True)]
            squared = mp.fsum(step**2 for step in steps)
            s = mp.sqrt(5 * squared)
            K[i, j] = mp.exp(-squared / 2) if name == "se" else (1 + s + s**2 / 3) * mp.exp(-s)
    return outputscale * K


def matrix(values: Array) -> Any:
    """A matrix, or a column."""
    return mp.matrix(values.tolist())


def array(values: Any) -> Array:
    """Rounded to float64; columns are flat."""
    rounded = np.array(values.tolist(), dtype=np.float64)
    return rounded[:, 0] if values.cols == 1 else rounded


def log_density(z: Any, K: Any) -> Any:
    """log N(z; 0, K)."""
    L = mp.cholesky(K)
    half = mp.lu_solve(L, z)
    log_det = mp.fsum(mp.log(L[i, i]) for i in range(len(z)))
    return -mp.fdot(half, half) / 2 - log_det - len(z) * mp.log(2 * mp.pi) / 2
