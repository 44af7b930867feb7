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
from torch import Tensor

from scaml.errors import SavedFileError
from scaml.methods.base import MetaPrior, Method, joined, write_prior
from scaml.priors.load import contents
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

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
        raise SavedFileError(
            f"The cache {home} cannot be made: {error.strerror}; give a folder."
        ) from error
    named = [task.called(name) for name, task in zip(meta.names, meta, strict=True)]
    # What is fitted together is kept together.
    parts = [[task] for task in named] if method.modular else [named]
    files = [home / _file(method, part, seed) for part in parts]
    states = [_found(path, part) for path, part in zip(files, parts, strict=True)]
    missing = [i for i, state in enumerate(states) if state is None]
    if missing:
        tasks = [task for i in missing for task in parts[i]]
        fitted = method.meta_fit(MetaData(tasks), seed=seed, n_jobs=n_jobs).state()
        for row, i in enumerate(missing):
            state = _row(fitted, row, parts[i][0]) if method.modular else fitted
            write_prior(files[i], method, MetaData(parts[i]), state)
            states[i] = state
    complete = [state for state in states if state is not None]
    return method.restore(meta, joined(complete) if method.modular else complete[0])


def _row(state: dict[str, Tensor], row: int, task: Task) -> dict[str, Tensor]:
    """The state of one task, without the columns that only others have."""
    columns = task.d + task.extra.shape[1]
    return {
        key: value[row : row + 1, :columns] if value.ndim == 2 else value[row : row + 1]
        for key, value in state.items()
    }


def _found(path: Path, tasks: Sequence[Task]) -> dict[str, Tensor] | None:
    """The state in a file, if it is there, in order, and of these tasks."""
    if not path.is_file():
        return None
    try:
        _, meta, state = contents(path)
    except SavedFileError as error:
        _logger.warning("Fitted again: %s", error)
        return None
    same = len(meta) == len(tasks) and all(
        torch.equal(getattr(ours, part), getattr(theirs, part))
        for ours, theirs in zip(meta, tasks, strict=True)
        for part in ("X", "y", "known", "extra")
    )
    if not same:
        _logger.warning("Fitted again: %s holds other tasks than its name says.", path)
    return state if same else None


def _file(method: Method, tasks: Sequence[Task], seed: int) -> str:
    """A name that changes with everything that a fit depends on, and with nothing else."""
    digest = hashlib.sha256(f"{_VERSIONS} {method!r} {seed}".encode())
    for task in tasks:
        for tensor in (task.X, task.y, task.known, task.extra):
            digest.update(f"{tuple(tensor.shape)}".encode() + tensor.numpy().tobytes())
    return f"{digest.hexdigest()[:32]}.safetensors"
