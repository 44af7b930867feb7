"""`FolderCache`: a folder of meta-fits, so that no process fits the same task twice.

A modular method keeps one file per task: a new or changed task costs one fit. Any other method keeps
one file for all tasks together. A file's name is a digest of everything that the fit depends on. Files
are written whole or not at all and fitted again if they are damaged, so processes may share the folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from scaml.common.logger import logger
from scaml.errors import SavedFileError
from scaml.methods.base import Method, write_prior
from scaml.priors.load import contents
from scaml.priors.meta_fit import State
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["FolderCache"]

_VERSIONS = f"{version('scaml')} {version('torch')}"  # of what a fit is computed with


class FolderCache:
    """Keeps meta-fits across processes.

    Args:
        folder: Where; it is made if it does not exist.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SavedFileError(
                f"The cache {self.folder} cannot be made: {error.strerror}; give a folder."
            ) from error

    def find(self, method: Method, tasks: Sequence[Task], seed: int) -> State | None:
        """The state in the file of these tasks, if it is there, readable, and of these tasks."""
        return _found(self.folder / _file(method, tasks, seed), tasks)

    def keep(self, method: Method, tasks: Sequence[Task], seed: int, state: State) -> None:
        """Write the state of these tasks to their file."""
        write_prior(self.folder / _file(method, tasks, seed), method, MetaData(tasks), state)


def _found(path: Path, tasks: Sequence[Task]) -> State | None:
    """The state in a file; None if there is no such file, or it is damaged or of other tasks."""
    if not path.is_file():
        return None
    try:
        _, meta, state = contents(path)
    except SavedFileError as error:
        logger.warning("Fitted again: %s", error)
        return None
    same = len(meta) == len(tasks) and all(
        torch.equal(getattr(ours, part), getattr(theirs, part))
        for ours, theirs in zip(meta, tasks, strict=True)
        for part in ("X", "y", "known", "extra")
    )
    if not same:
        logger.warning("Fitted again: %s holds other tasks than its name says.", path)
    return state if same else None


def _file(method: Method, tasks: Sequence[Task], seed: int) -> str:
    """A name that changes with everything that a fit depends on, and with nothing else."""
    digest = hashlib.sha256(f"{_VERSIONS} {method!r} {seed}".encode())
    for task in tasks:
        digest.update(task.digest())
    return f"{digest.hexdigest()[:32]}.safetensors"
