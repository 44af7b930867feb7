"""The exception tree of scaml.

Every error that scaml raises on purpose is a `ScaMLError`. Its message is one sentence that says
what was wrong, what was got and what to do. Each class has a second base class from Python, so
that callers who do not know scaml can catch it (`except ValueError`).
"""

from __future__ import annotations

__all__ = [
    "BenchRunError",
    "DatabaseError",
    "FitError",
    "SavedFileError",
    "ScaMLError",
    "SettingError",
    "SpaceError",
    "TaskDataError",
]


class ScaMLError(Exception):
    """Base class of all errors that scaml raises on purpose."""


class TaskDataError(ScaMLError, ValueError):
    """The data of a task or the meta-data cannot be used."""


class SpaceError(ScaMLError, ValueError):
    """A point, a table of candidates or a dimension does not fit the search space."""


class SettingError(ScaMLError, ValueError):
    """A hyperparameter of a method, or another argument that is not data, has an invalid value."""


class FitError(ScaMLError, RuntimeError):
    """A Gaussian process could not be fitted or factorized."""


class SavedFileError(ScaMLError, ValueError):
    """A file (a saved prior, a table, results) cannot be read by this version, or cannot be written."""


class BenchRunError(ScaMLError, RuntimeError):
    """Some runs of a study failed; the results of the other runs are kept."""


class DatabaseError(ScaMLError, ConnectionError):
    """An Optuna storage does not answer."""
