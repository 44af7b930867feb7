"""The only module that uses joblib and sets the number of threads."""

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

    Many small factorizations get slower with more threads. And if results depended on the number
    of threads, they would depend on `n_jobs`.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def effective_n_jobs(n_jobs: int) -> int:
    """The number of processes that `run` uses for `n_jobs`."""
    n_jobs = check_integer(n_jobs, "n_jobs", least=-1)
    if n_jobs == 0:
        raise SettingError("n_jobs is 0; give a positive integer, or -1 for one process per core.")
    return int(joblib.effective_n_jobs(n_jobs))


def run(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> list[Result]:
    """`[function(item) for item in items]` on `n_jobs` processes, -1 for one per core.

    joblib's backend is loky, unless the caller chose another one (Dask, Ray) by
    `joblib.parallel_config`. Every call runs on one thread, so results do not depend on `n_jobs`.
    """
    if effective_n_jobs(n_jobs) == 1:
        with one_thread():
            return [function(item) for item in items]
    parallel = _Parallel(n_jobs=n_jobs)
    results: list[Result] = parallel(delayed(_alone)(function, item) for item in items)
    return results


def each(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int) -> Iterator[Result]:
    """Yield `function(item)` for every item as soon as it is computed, in any order.

    Made for items that take seconds to minutes each. Like `run`, but NumPy also runs on one thread.
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
    """`joblib.Parallel` whose worker processes ignore Ctrl-C.

    A terminal sends Ctrl-C to all processes. This process handles it and ends the workers; without
    this class each worker would print a traceback of its own first.
    """

    def dispatch_one_batch(self, iterator: Any) -> Any:
        """Dispatch work; the first call starts the processes."""
        with _uninterrupted():
            return super().dispatch_one_batch(iterator)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block; processes started inside the block ignore Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
