"""The one door to joblib, and to the number of threads."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, TypeVar

import joblib
import torch
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from scaml.common.checks import check_integer
from scaml.errors import SettingError

__all__ = ["each", "effective_n_jobs", "one_thread", "run"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread inside the block.

    Many small factorizations get slower with more threads, and results that depend on the number
    of threads would depend on `n_jobs`.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def effective_n_jobs(n_jobs: int) -> int:
    """How many processes `run` uses for `n_jobs`."""
    n_jobs = check_integer(n_jobs, "n_jobs", least=-1)
    if n_jobs == 0:
        raise SettingError("n_jobs is 0; give a positive integer, or -1 for one a core.")
    return int(joblib.effective_n_jobs(n_jobs))


def run(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> list[Result]:
    """`[function(item) for item in items]` on `n_jobs` processes, -1 for one a core.

    Processes are loky's unless the caller chose another backend (Dask, Ray) by
    `joblib.parallel_config`. Every call runs on one thread, so results do not depend on `n_jobs`.
    """
    if effective_n_jobs(n_jobs) == 1:
        with one_thread():
            return [function(item) for item in items]
    parallel = _Parallel(n_jobs=n_jobs)
    results: list[Result] = parallel(delayed(_alone)(function, item) for item in items)
    return results


def each(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> Iterator[Result]:
    """`function` of every item, as soon as it is there: for work of seconds to minutes an item.

    Like `run`, and NumPy is held to one thread as well.
    """
    if effective_n_jobs(n_jobs) == 1:
        for item in items:
            yield _on_one_thread(function, item)
    else:
        parallel = _Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
        yield from parallel(delayed(_on_one_thread)(function, item) for item in items)


def _on_one_thread(function: Callable[[Item], Result], item: Item) -> Result:
    with threadpool_limits(1):
        return _alone(function, item)


def _alone(function: Callable[[Item], Result], item: Item) -> Result:
    with one_thread():
        return function(item)


class _Parallel(Parallel):
    """Its processes do not hear Ctrl-C, which a terminal sends to all of them.

    This process does, and ends the others; each of them would first print where it was.
    """

    def dispatch_one_batch(self, iterator: Any) -> Any:
        """Hand out work, and start processes where there are none yet."""
        with _uninterrupted():
            return super().dispatch_one_batch(iterator)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block; processes that it starts never hear it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which would lift the block while it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
