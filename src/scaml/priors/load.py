"""`load`: a prior from the file that `prior.save` wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scaml import methods
from scaml.common.tensor_file import read
from scaml.errors import SavedFileError, ScaMLError
from scaml.methods.base import MetaPrior, Method
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["contents", "load"]


def load(path: str | os.PathLike[str], *, method: Method | None = None) -> MetaPrior:
    """Read a prior that `prior.save` wrote.

    Args:
        path: The file.
        method: The method that made it, where that is not one of scaml's own.
    """
    header, meta, state = contents(path)
    with _usable(path):
        method = method or _method(header["method"], header["settings"])
        if type(method).__name__ != header["method"]:
            raise SavedFileError(f"it was made by {header['method']}, not by {type(method).__name__}")
        prior = method.restore(meta, state)
        if header["space"] is None:
            return prior
        from scaml.spaces.space import (
            Space,  # Optuna takes a second to import, and not every file needs it
        )

        return prior.in_space(Space.from_json(header["space"]))


def contents(path: str | os.PathLike[str]) -> tuple[dict[str, Any], MetaData, dict[str, Tensor]]:
    """Header, past tasks and state of a saved prior, with nothing computed from them."""
    header, tensors = read(path)
    with _usable(path):
        meta = MetaData([_task(i, name, tensors) for i, name in enumerate(header["names"])])
    state = {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("state/")}
    return header, meta, state


@contextmanager
def _usable(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn every error about the contents of a file into one sentence that names the file."""
    try:
        yield
    except (ValueError, TypeError, AttributeError, RuntimeError, LookupError, ArithmeticError) as error:
        what = f"{type(error).__name__}: {error}" if not isinstance(error, ScaMLError) else str(error)
        raise SavedFileError(
            f"{Path(path)} does not hold a prior that can be used ({what})."
        ) from error


def _method(name: str, settings: dict[str, Any]) -> Method:
    cls = getattr(methods, name, None) if name in methods.__all__ else None
    if not (isinstance(cls, type) and issubclass(cls, Method)):
        raise SavedFileError(f"its method {name!r} is none of scaml's; give load(path, method=...)")
    return cls(**settings)


def _task(i: int, name: str, tensors: dict[str, Tensor]) -> Task:
    X, y, known, extra = (tensors[f"{i}/{part}"] for part in ("X", "y", "known", "extra"))
    if X.dtype != torch.float64 or y.dtype != torch.float64:
        raise SavedFileError(f"task {name!r} is not in float64")
    return Task(X, y, name=name, known=known, extra=extra if extra.shape[-1] else None)
