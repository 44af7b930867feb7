"""Independent computations that the tests compare with: plain NumPy, no code of scaml's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def kernel_matrix(name: str, A: Array, B: Array, lengthscale: Array, outputscale: float) -> Array:
    """A stationary kernel written out entry by entry."""
    r = np.sqrt((((A[:, None, :] - B[None, :, :]) / lengthscale) ** 2).sum(-1))
    if name == "se":
        return np.asarray(outputscale * np.exp(-0.5 * r**2))
    s = np.sqrt(5.0) * r
    return np.asarray(outputscale * (1.0 + s + s**2 / 3.0) * np.exp(-s))


@dataclass(frozen=True)
class GP:
    """Hyperparameters of one kernel."""

    lengthscale: Array
    outputscale: float
    noise: float
    level: float = 0.0  # variance of a constant


@dataclass(frozen=True)
class JointGP:
    """The dense GP over meta- and test-tasks with the joint kernel of Lemma 1."""

    kernel: str
    meta: list[GP]
    residual: GP
    weights: Array
    X_meta: list[Array]
    z_meta: list[Array]
    X_test: Array
    z_test: Array

    def covariance(self, A: Array, i: int, B: Array, j: int) -> Array:
        """k_joint((x, i), (x', j)); task M is the test-task t."""
        t = len(self.meta)
        total = np.zeros((len(A), len(B)))
        if i == j == t:
            gp = self.residual
            total += kernel_matrix(self.kernel, A, B, gp.lengthscale, gp.outputscale) + gp.level
        for m, gp in enumerate(self.meta):

            def g(task: int, m: int = m) -> float:
                return float(self.weights[m]) if task == t else float(task == m)

            if g(i) * g(j) != 0.0:
                k = kernel_matrix(self.kernel, A, B, gp.lengthscale, gp.outputscale)
                total += g(i) * g(j) * k
        return total

    def _blocks(self) -> tuple[list[tuple[Array, int]], Array, Array]:
        places = [(X, m) for m, X in enumerate(self.X_meta)] + [(self.X_test, len(self.meta))]
        noise = [gp.noise for gp in self.meta] + [self.residual.noise]
        diagonal = np.concatenate([np.full(len(X), s) for (X, _), s in zip(places, noise, strict=True)])
        return places, diagonal, np.concatenate([*self.z_meta, self.z_test])

    def gram(self) -> Array:
        places, diagonal, _ = self._blocks()
        rows = [[self.covariance(A, i, B, j) for B, j in places] for A, i in places]
        return np.asarray(np.block(rows) + np.diag(diagonal))

    def posterior(self, Q: Array) -> tuple[Array, Array]:
        """Mean and covariance of f_t at Q given all data."""
        places, _, z = self._blocks()
        t = len(self.meta)
        cross = np.concatenate([self.covariance(A, i, Q, t) for A, i in places])
        solved = np.linalg.solve(self.gram(), cross)
        return solved.T @ z, self.covariance(Q, t, Q, t) - cross.T @ solved

    def log_likelihood(self) -> float:
        """log p(y_t, y_1:M)."""
        return log_density(self._blocks()[2], self.gram())


def log_density(z: Array, K: Array) -> float:
    """log N(z; 0, K)."""
    _, logdet = np.linalg.slogdet(K)
    return float(-0.5 * z @ np.linalg.solve(K, z) - 0.5 * logdet - 0.5 * len(z) * np.log(2 * np.pi))
