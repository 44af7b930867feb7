"""L-BFGS-B with the signature of our `minimize`: BoTorch's batched one, and SciPy's per start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from numpy.typing import NDArray
from scipy.optimize import fmin_l_bfgs_b
from torch import Tensor

from scaml.gp.minimize import Metric, Minimum, Objective

__all__ = ["batched_l_bfgs_b", "l_bfgs_b_per_start"]

Floats = NDArray[np.float64]

_REFUSED = 1e10  # in place of a value that is not finite, which a line search then refuses
_MOST_ITERATIONS = 300
_SLOPE = 1e-6  # largest slope of a minimum, as BoTorch's fits ask for


def batched_l_bfgs_b(
    objective: Objective,
    x0: Tensor,
    lower: Tensor,
    upper: Tensor,
    group: Tensor,
    *,
    same_basin: float,
    tolerance: float = 1e-9,
    metric: Metric | None = None,
) -> Minimum:
    """All starts at once; every start goes to its own end. A metric is of no use to it."""
    evaluate, evaluations = _counted(objective)
    x, value, _ = fmin_l_bfgs_b_batched(
        lambda x, batch_indices: evaluate(x, np.asarray(batch_indices)),
        x0.numpy(),
        bounds=list(zip(lower.tolist(), upper.tolist(), strict=True)),
        factr=None,
        ftol=tolerance,
        pgtol=_SLOPE,
        maxiter=_MOST_ITERATIONS,
        pass_batch_indices=True,
    )
    return _best(np.asarray(x), np.asarray(value), group, evaluations[0])


def l_bfgs_b_per_start(
    objective: Objective,
    x0: Tensor,
    lower: Tensor,
    upper: Tensor,
    group: Tensor,
    *,
    same_basin: float,
    tolerance: float = 1e-9,
    metric: Metric | None = None,
) -> Minimum:
    """One start after the other. A metric is of no use to it."""
    evaluate, evaluations = _counted(objective)
    found = []
    for i, start in enumerate(x0.numpy()):
        place = np.array([i])

        def alone(x: Floats, place: NDArray[np.int64] = place) -> tuple[float, Floats]:
            value, slope = evaluate(x[None], place)
            return float(value[0]), slope[0]

        x, value, _ = fmin_l_bfgs_b(
            alone,
            start,
            bounds=list(zip(lower.tolist(), upper.tolist(), strict=True)),
            factr=tolerance / np.finfo(np.float64).eps,
            pgtol=_SLOPE,
            maxiter=_MOST_ITERATIONS,
        )
        found.append((x, value))
    x, value = np.stack([x for x, _ in found]), np.array([value for _, value in found])
    return _best(x, value, group, evaluations[0])


def _counted(
    objective: Objective,
) -> tuple[Callable[[Floats, NDArray[np.int64]], tuple[Floats, Floats]], list[int]]:
    count = [0]

    def evaluate(x: Floats, problem: NDArray[np.int64]) -> tuple[Floats, Floats]:
        count[0] += len(x)
        value, slope = objective(torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(problem))
        good = torch.isfinite(value) & torch.isfinite(slope).all(-1)
        return (
            torch.where(good, value, _REFUSED).numpy(),
            torch.where(good.unsqueeze(-1), slope, 0.0).numpy(),
        )

    return evaluate, count


def _best(x: Floats, value: Floats, group: Tensor, evaluations: int) -> Minimum:
    """The best end of each group."""
    best = [
        members[value[members].argmin()]
        for members in (np.flatnonzero(group.numpy() == g) for g in range(int(group.max()) + 1))
    ]
    return Minimum(torch.from_numpy(x[best]), torch.from_numpy(value[best]), evaluations)
