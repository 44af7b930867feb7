"""A folder of meta-fits: what was fitted once, by any process, is not fitted again.

A modular method keeps a file for each task, so that a new or changed task costs its own fit only; any
other method keeps one for all tasks together. Files are named by what they were made from, written at
once or not at all, and made anew if they are damaged, so that processes may share the folder.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from scaml.data import MetaData, Task
from scaml.errors import StoreError
from scaml.loading import load
from scaml.methods.base import MetaPrior, Method, joined

__all__ = ["meta_fit_cached"]

_VERSIONS = f"{version('scaml')} {version('torch')}"  # of what a fit is computed with
_logger = logging.getLogger("optuna.scaml")


def meta_fit_cached(
    method: Method, meta: MetaData, *, folder: str | os.PathLike[str], seed: int, n_jobs: int
) -> MetaPrior:
    """`method.meta_fit`, to the last bit, with what is new alone fitted."""
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The cache {home} cannot be made: {error.strerror}; give a folder."
        ) from error
    named = [task.called(name) for name, task in zip(meta.names, meta, strict=True)]
    if not method.modular:
        path = home / _file(method, named, seed)
        found = _found(path, method, named)
        if found is None:
            found = method.meta_fit(meta, seed=seed, n_jobs=n_jobs)
            found.save(path)
        return method.restore(meta, found.state())
    states = {}
    missing = []
    for i, task in enumerate(named):
        found = _found(home / _file(method, [task], seed), method, [task])
        if found is None:
            missing.append(i)
        else:
            states[i] = found.state()
    if missing:
        fitted = method.meta_fit(
            MetaData([named[i] for i in missing]), seed=seed, n_jobs=n_jobs
        ).state()
        for row, i in enumerate(missing):
            columns = meta.d + named[i].extra.shape[1]
            states[i] = {
                key: value[row : row + 1, :columns] if value.ndim == 2 else value[row : row + 1]
                for key, value in fitted.items()
            }
            alone = method.restore(MetaData([named[i]]), states[i])
            alone.save(home / _file(method, [named[i]], seed))
    return method.restore(meta, joined([states[i] for i in range(len(meta))]))


def _found(path: Path, method: Method, tasks: Sequence[Task]) -> MetaPrior | None:
    if not path.is_file():
        return None
    try:
        prior = load(path, method=method)
        same = len(prior.meta) == len(tasks) and all(
            torch.equal(getattr(a, part), getattr(b, part))
            for a, b in zip(prior.meta, tasks, strict=True)
            for part in ("X", "y", "known", "extra")
        )
        if not same:
            raise StoreError(f"{path} holds other tasks than its name says.")
        return prior
    except StoreError as error:
        _logger.warning("Fitted again: %s", error)
        return None


def _file(method: Method, tasks: Sequence[Task], seed: int) -> str:
    """A name that changes with everything that a fit depends on, and with nothing else."""
    digest = hashlib.sha256(f"{_VERSIONS} {method!r} {seed}".encode())
    for task in tasks:
        for tensor in (task.X, task.y, task.known, task.extra):
            digest.update(f"{tuple(tensor.shape)}".encode() + tensor.numpy().tobytes())
    return f"{digest.hexdigest()[:32]}.safetensors"
