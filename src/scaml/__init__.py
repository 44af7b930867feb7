"""scaml: Bayesian optimization that learns from past experiments (ScaML-GP, AISTATS 2024)."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from scaml.errors import FitError, ScaMLError, SettingError, SpaceError, TaskDataError

if TYPE_CHECKING:
    from scaml.data import MetaData, Task
    from scaml.loop import suggest
    from scaml.methods import ScaML
    from scaml.scaml_gp import ScaMLGP
    from scaml.task_gps import TaskGPs

__version__ = version("scaml")

__all__ = [
    "FitError",
    "MetaData",
    "ScaML",
    "ScaMLError",
    "ScaMLGP",
    "SettingError",
    "SpaceError",
    "Task",
    "TaskDataError",
    "TaskGPs",
    "suggest",
]

# Imported when first asked for: torch and BoTorch take seconds, and `scaml --help` needs neither.
_HOMES = {
    "MetaData": "data",
    "ScaML": "methods",
    "ScaMLGP": "scaml_gp",
    "Task": "data",
    "TaskGPs": "task_gps",
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
