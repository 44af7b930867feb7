"""The exception tree of scaml.

Every error that scaml raises on purpose is a `ScaMLError`. Its message is one sentence of
what was wrong, what was got and what to do. The second base class lets callers that know
nothing of scaml (`except ValueError`) do the expected thing.
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
    """Base class: anything that scaml refuses to do."""


class TaskDataError(ScaMLError, ValueError):
    """The data of a task, or of the meta-data, cannot be used."""


class SpaceError(ScaMLError, ValueError):
    """A point, a table of candidates or a dimension does not fit the search space."""


class SettingError(ScaMLError, ValueError):
    """A hyperparameter of a method, or an argument that is not data, is out of its range."""


class FitError(ScaMLError, RuntimeError):
    """A Gaussian process could not be fitted or factorized."""


class SavedFileError(ScaMLError, ValueError):
    """A file (a saved prior, a table, results) cannot be read by this version, or not be written."""


class BenchRunError(ScaMLError, RuntimeError):
    """Runs of a study failed; those that did not are kept."""


class DatabaseError(ScaMLError, ConnectionError):
    """An Optuna storage does not answer."""
