"""The exception tree of scaml.

Every error that scaml raises on purpose is a `ScaMLError`. Its message is one sentence of
what was wrong, what was got and what to do. The second base class lets callers that know
nothing of scaml (`except ValueError`) do the expected thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "FitError",
    "ScaMLError",
    "SettingError",
    "SpaceError",
    "StorageError",
    "StoreError",
    "StudyError",
    "TaskDataError",
    "nearest",
]


class ScaMLError(Exception):
    """Base class: anything that scaml refuses to do."""


class TaskDataError(ScaMLError, ValueError):
    """The data of a task, or of the meta-data, cannot be used."""


class SpaceError(ScaMLError, ValueError):
    """A point, a table of candidates or a dimension does not fit the search space."""


class SettingError(ScaMLError, ValueError):
    """A hyperparameter of a method, or an argument that is not data, is out of its range."""


class FitError(ScaMLError, RuntimeError):
    """A Gaussian process could not be fitted or factorized."""


class StoreError(ScaMLError, ValueError):
    """A file (a saved prior, a table, results) cannot be read by this version, or not be written."""


class StudyError(ScaMLError, RuntimeError):
    """Runs of a study failed; those that did not are kept."""


class StorageError(ScaMLError, ConnectionError):
    """An Optuna storage does not answer."""


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that was probably meant, for the end of a sentence about one that does not exist."""
    return get_close_matches(str(name), list(names), n=1, cutoff=0.0)[0]
