"""One meta-fit with progress and with a cache: always the bits of `method.meta_fit`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from scaml import MetaData, ScaML, Task
from scaml.methods import GPBO, RGPE, StackGP
from scaml.methods.base import MetaPrior, Method
from scaml.priors.meta_fit import State, meta_fit
from tests.cases import meta_data

META = meta_data((6, 8, 10, 4, 5), 2)


class Memory:
    """A cache that counts."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, ...], State] = {}
        self.found: list[tuple[str, ...]] = []

    def find(self, method: Method, tasks: Sequence[Task], seed: int) -> State | None:
        del method, seed
        names = tuple(task.name for task in tasks)
        if names in self.kept:
            self.found.append(names)
        return self.kept.get(names)

    def keep(self, method: Method, tasks: Sequence[Task], seed: int, state: State) -> None:
        del method, seed
        self.kept[tuple(task.name for task in tasks)] = state


def assert_same(a: MetaPrior, b: MetaPrior) -> None:
    mine, other = a.state(), b.state()
    assert a.names == b.names
    assert mine.keys() == other.keys()
    assert all(torch.equal(mine[name], other[name]) for name in mine)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_changes_no_bit_and_counts_the_tasks(
    monkeypatch: pytest.MonkeyPatch, n_jobs: int
) -> None:
    monkeypatch.setattr("scaml.priors.meta_fit._ENTRIES_PER_PART", 120)  # 36 + 64, 100 alone, 16 + 25
    calls: list[tuple[int, int]] = []
    told = meta_fit(ScaML(), META, seed=3, n_jobs=n_jobs, progress=lambda *step: calls.append(step))
    assert_same(told, ScaML().meta_fit(META, seed=3))
    assert [total for _, total in calls] == [5] * 4
    done = [step for step, _ in calls]
    assert done[0] == 0
    assert done == sorted(set(done))
    assert done[-1] == 5


@pytest.mark.parametrize("method", [ScaML(), RGPE(), StackGP()], ids=["ScaML", "RGPE", "StackGP"])
def test_a_cache_changes_no_bit(method: Method) -> None:
    cache, whole = Memory(), method.meta_fit(META, seed=1)
    assert_same(meta_fit(method, META, seed=1, cache=cache), whole)
    assert not cache.found
    assert_same(meta_fit(method, META, seed=1, cache=cache), whole)
    expected = [(name,) for name in META.names] if method.modular else [META.names]
    assert cache.found == expected


def test_a_new_task_extends_the_cache_and_progress_says_so() -> None:
    cache, calls = Memory(), []
    meta_fit(ScaML(), MetaData(list(META)[:3]), cache=cache)
    prior = meta_fit(ScaML(), META, cache=cache, progress=lambda *step: calls.append(step))
    assert_same(prior, ScaML().meta_fit(META))
    assert cache.found == [("t0",), ("t1",), ("t2",)]
    assert calls[0] == (3, 5)
    assert calls[-1] == (5, 5)


def test_a_method_that_learns_all_at_once_tells_nothing() -> None:
    calls: list[tuple[int, int]] = []
    meta_fit(GPBO(), META, progress=lambda *step: calls.append(step))
    assert calls == []
