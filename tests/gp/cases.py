"""Data of tasks that lack columns or have some of their own."""

from __future__ import annotations

import numpy as np

from scaml import Task
from tests.cases import smooth
from tests.oracles import Array


def data(n: int, d: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, smooth(X, 0.3) + 0.01 * rng.standard_normal(n)


def mixed_tasks(seed: int = 0) -> list[Task]:
    """Whole; lacking a parameter; of two more columns; lacking one and having another."""
    draws = [data(n, d, seed + i) for i, (n, d) in enumerate([(9, 2), (12, 2), (9, 4), (12, 3)])]
    (A, a), (B, b), (C, c), (D, d) = draws
    return [
        Task(A, a, name="whole"),
        Task(B, b, name="lacks", known=[True, False]),
        Task(C[:, :2], c, name="more", extra=C[:, 2:] - 0.5),
        Task(D[:, :2], d, name="both", known=[False, True], extra=D[:, 2:] - 0.2),
    ]
