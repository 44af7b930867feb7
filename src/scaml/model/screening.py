r"""A rough evidence of every explanation, at the cost of a few factorizations per past task.

Lengthscales and noise are those of a GP without a past, c is at the mean of its prior. A short grid of
residual variances o and a long one of scales s are averaged over. With $K = L L^T$ for a value of o,
all scales and both signs follow from the inner products of $L^{-1} (\tilde z, \tilde a_e, 1)$, tildes
for means taken apart: $r = e^{-s} z \mp c\, a_e$ is linear in them. The prior of s has mean 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.model.evidence import Problem

__all__ = ["data_scale", "screen"]

_RESIDUALS = (-1.5, -0.5, 0.5)  # ξ of log o
_SCALES = torch.linspace(-1.5, 1.5, 13, dtype=torch.float64)  # around the scale of the data
_LEAST_DEVIATION = 1e-10


def data_scale(problem: Problem) -> float:
    """s at which the data have unit deviation, shrunk towards the prior; 0 if the scale is fixed."""
    spread, n = float(problem.spread[0, 1]), len(problem.z)
    if not spread or n < 2:
        return 0.0
    deviation = max(float(problem.z.std()), _LEAST_DEVIATION)
    return math.log(deviation) * n / (n + 1.0 / spread**2)


def screen(problem: Problem, kernel: Tensor) -> tuple[Tensor, Tensor]:
    """Log evidences, E each, of the explanations as they are and mirrored.

    Args:
        problem: The explanations; neither needs to be there with both signs.
        kernel: (log ℓ, log σ²), d + 1, in the units of s = `data_scale`.
    """
    E, n = problem.mean.shape
    a, c = problem.X * torch.exp(-kernel[:-1]), problem.center[:, 0]
    spread = float(problem.spread[0, 1])
    R = correlation(problem.kernel, squared_distance(a, a))
    s = data_scale(problem) + (_SCALES if spread else _SCALES[:1] * 0.0)
    past = c.square()[:, None, None] * problem.covariance
    past.diagonal(dim1=-2, dim2=-1).add_(kernel[-1].exp())
    mean_z, mean_a = problem.z.mean(), problem.mean.mean(-1)
    columns = torch.ones(E, n, 3, dtype=torch.float64)
    columns[..., 0] = problem.z - mean_z
    columns[..., 1] = c.unsqueeze(-1) * (problem.mean - mean_a.unsqueeze(-1))
    offsets = torch.stack([mean_z.expand(E), c * mean_a])
    found = []
    for xi in _RESIDUALS:
        o = torch.exp(problem.center[:, -2] + xi * problem.spread[:, -2])
        L, info = torch.linalg.cholesky_ex(past + o[:, None, None] * R)
        white = torch.linalg.solve_triangular(L, columns, upper=False)
        half_log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        density = [
            _log_density(white.mT @ white, half_log_det, offsets, s, sign, problem.level, n)
            for sign in (1.0, -1.0)
        ]
        found.append(torch.where(info == 0, torch.stack(density), -torch.inf) - 0.5 * xi**2)
    values = torch.stack(found)  # residuals x signs x scales x E
    if spread:
        values = values - 0.5 * (s / spread).square().unsqueeze(-1)
    values = torch.logsumexp(values, (0, 2))
    return values[0], values[1]


def _log_density(
    gram: Tensor,
    half_log_det: Tensor,
    offsets: Tensor,
    s: Tensor,
    sign: float,
    level: float,
    n: int,
) -> Tensor:
    """log p(y_t), `scales x E`, up to a constant, from the inner products of the whitened columns."""
    shrink = torch.exp(-s).unsqueeze(-1)
    quadratic = shrink.square() * gram[:, 0, 0] - 2.0 * sign * shrink * gram[:, 0, 1] + gram[:, 1, 1]
    along = shrink * gram[:, 0, 2] - sign * gram[:, 1, 2]
    mean = shrink * offsets[0] - sign * offsets[1]
    t, variance = gram[:, 2, 2], level * shrink.square()
    kept = 1.0 / (1.0 + variance * t)
    quadratic = quadratic - variance * kept * along.square() + kept * mean * (mean * t + 2.0 * along)
    return -0.5 * quadratic - half_log_det + 0.5 * kept.log() - n * s.unsqueeze(-1)
