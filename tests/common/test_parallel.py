from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from joblib.externals.loky import get_reusable_executor
from threadpoolctl import threadpool_info
from torch import Tensor

from scaml.common.parallel import each, one_thread, run
from scaml.errors import SettingError, TaskDataError


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Start from a number of threads that is not the one to be set."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def factorize(seed: int) -> tuple[int, Tensor, int, int]:
    A = torch.randn(64, 64, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return seed, torch.linalg.cholesky(A @ A.T + torch.eye(64)), torch.get_num_threads(), os.getpid()


def threads_before_taking_two(_item: int) -> int:
    """The number that a call finds; it leaves a higher one to the next call of its process."""
    found = torch.get_num_threads()
    torch.set_num_threads(2)
    return found


def refuse(item: int) -> int:
    raise TaskDataError(f"Item {item} is bad; give another.")


def test_results_and_their_order_do_not_depend_on_n_jobs() -> None:
    seeds = [5, 3, 8, 1, 9, 2]
    alone, together = run(factorize, seeds, 1), run(factorize, seeds, 2)
    assert [result[0] for result in alone] == seeds
    assert [result[0] for result in together] == seeds
    assert all(torch.equal(a[1], b[1]) for a, b in zip(alone, together, strict=True))
    assert {result[3] for result in alone} == {os.getpid()}
    assert os.getpid() not in {result[3] for result in together}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_call_runs_on_one_thread(n_jobs: int) -> None:
    assert [result[2] for result in run(factorize, [0, 1], n_jobs)] == [1, 1]
    assert torch.get_num_threads() == 2


def test_a_process_that_is_used_again_starts_on_one_thread_again() -> None:
    assert run(threads_before_taking_two, range(8), 2) == [1] * 8


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_items_may_be_any_iterable_also_an_empty_one(n_jobs: int) -> None:
    assert run(abs, (-i for i in range(4)), n_jobs) == [0, 1, 2, 3]
    assert run(abs, [], n_jobs) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_arrives_as_what_it_was(n_jobs: int) -> None:
    with pytest.raises(TaskDataError, match=r"^Item 7 is bad; give another\.$"):
        run(refuse, [7], n_jobs)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("n_jobs", [0, -2, True, False, 1.0, "2", None])
def test_bad_n_jobs_are_refused_before_any_work(n_jobs: Any) -> None:
    with pytest.raises(SettingError, match=rf"^n_jobs is {re.escape(repr(n_jobs))}; give .*\.$"):
        run(refuse, [7], n_jobs)


def test_one_thread_sets_and_restores() -> None:
    with one_thread():
        assert torch.get_num_threads() == 1
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_one_thread_restores_after_an_exception() -> None:
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == 2


def blas_threads(item: int) -> tuple[int, set[int], int]:
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return item, {pool["num_threads"] for pool in pools}, torch.get_num_threads()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_item_comes_once_and_runs_on_one_thread(n_jobs: int) -> None:
    found = list(each(blas_threads, range(5), n_jobs))
    assert sorted(item for item, _, _ in found) == list(range(5))
    assert all(blas <= {1} and threads == 1 for _, blas, threads in found)


def test_each_gives_an_item_before_the_next_is_begun() -> None:
    begun: list[int] = []

    def begin(item: int) -> int:
        begun.append(item)
        return item

    for item in each(begin, range(3), 1):
        assert begun == list(range(item + 1))


def hears_ctrl_c(_item: int) -> bool:
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no masks of signals")
def test_ctrl_c_is_for_this_process_alone() -> None:
    get_reusable_executor().shutdown()  # processes of other tests
    assert not any(run(hears_ctrl_c, range(4), 2))
    assert not any(each(hears_ctrl_c, range(4), 2))
    assert hears_ctrl_c(0)
