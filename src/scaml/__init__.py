"""scaml: Bayesian optimization that learns from past experiments (ScaML-GP, AISTATS 2024)."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from scaml.errors import (
    FitError,
    ScaMLError,
    SettingError,
    SpaceError,
    StorageError,
    StoreError,
    StudyError,
    TaskDataError,
)

if TYPE_CHECKING:
    from scaml.data import MetaData, Task
    from scaml.loading import load
    from scaml.loop import suggest
    from scaml.methods import ScaML
    from scaml.sampler import ScaMLSampler
    from scaml.scaml_gp import ScaMLGP
    from scaml.space import Space
    from scaml.studies import negated
    from scaml.task_gps import TaskGPs

__version__ = version("scaml")

__all__ = [
    "FitError",
    "MetaData",
    "ScaML",
    "ScaMLError",
    "ScaMLGP",
    "ScaMLSampler",
    "SettingError",
    "Space",
    "SpaceError",
    "StorageError",
    "StoreError",
    "StudyError",
    "Task",
    "TaskDataError",
    "TaskGPs",
    "load",
    "negated",
    "suggest",
]

# Imported when first asked for: torch and BoTorch take seconds, and `scaml --help` needs neither.
_HOMES = {
    "MetaData": "data",
    "ScaML": "methods",
    "ScaMLGP": "scaml_gp",
    "ScaMLSampler": "sampler",
    "Space": "space",
    "Task": "data",
    "TaskGPs": "task_gps",
    "load": "loading",
    "negated": "studies",
    "suggest": "loop",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'scaml' has no attribute {name!r}")
    value = getattr(import_module(f"scaml.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
