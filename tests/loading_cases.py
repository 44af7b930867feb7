"""Past tasks, their space and what the tests of saved priors compare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from optuna.distributions import CategoricalDistribution, IntDistribution
from torch import Tensor

from scaml import MetaData, Task, TaskGPs, suggest
from scaml.errors import SavedFileError
from scaml.methods.base import MetaPrior
from scaml.methods.scaml import ScaMLPrior
from scaml.spaces.space import Space
from tests.cases import smooth, task_of

SPACE = Space({"n": IntDistribution(1, 20), "k": CategoricalDistribution(["x", "y"])})  # d = 3


def mixed_tasks() -> list[Task]:
    """Whole, lacking and with columns of their own."""
    rng = np.random.default_rng(0)
    A, B, C, D = (rng.random((n, 5)) for n in (9, 12, 9, 8))
    return [
        Task(A[:, :3], smooth(A, 0.1), name="whole"),
        Task(B[:, :3], smooth(B, 0.2), name="lacks", known=[True, False, True]),
        Task(C[:, :3], smooth(C, 0.3), name="more", extra=C[:, 3:] - 0.5),
        Task(D[:, :3], smooth(D, 0.4), name="both", known=[False, True, True], extra=D[:, 3:4] - 0.5),
    ]


META = MetaData(mixed_tasks())


def assert_same_gps(a: MetaPrior, b: MetaPrior) -> None:
    assert isinstance(a, ScaMLPrior)
    assert isinstance(b, ScaMLPrior)
    for field in fields(TaskGPs):
        mine, other = getattr(a.task_gps, field.name), getattr(b.task_gps, field.name)
        same = torch.equal(mine, other) if isinstance(mine, Tensor) else mine == other
        assert same, field.name
    for mine, other in zip(a.levels, b.levels, strict=True):
        assert torch.equal(mine, other)


def points(prior: MetaPrior, q: int = 2) -> Tensor:
    """Suggestions with and without data, from a short table where the cube would take long."""
    table = torch.rand(200, prior.d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tasks = [Task.empty(prior.d), task_of(3, prior.d)]
    return torch.cat([suggest(prior, task, q=q, candidates=table, seed=4) for task in tasks])


@contextmanager
def refused(path: Path, words: str | None = None) -> Iterator[None]:
    """A SavedFileError inside, of one sentence that names the file, and nothing else in its folder."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(SavedFileError, match=words) as info:
        yield
    assert str(path) in str(info.value)
    assert "\n" not in str(info.value)
    assert str(info.value).endswith(".")
    assert sorted(path.parent.iterdir()) == before
