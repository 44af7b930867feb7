"""scaml: Bayesian optimization that learns from past experiments (ScaML-GP, AISTATS 2024)."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from scaml.errors import (
    BenchRunError,
    DatabaseError,
    FitError,
    SavedFileError,
    ScaMLError,
    SettingError,
    SpaceError,
    TaskDataError,
)

if TYPE_CHECKING:
    from scaml.ask import suggest
    from scaml.gp.task_gps import TaskGPs
    from scaml.integrations.optuna.past_studies import negated
    from scaml.integrations.optuna.sampler import ScaMLSampler
    from scaml.methods import ScaML
    from scaml.model.scaml_gp import ScaMLGP
    from scaml.priors.load import load
    from scaml.spaces.space import Space
    from scaml.tasks.meta_data import MetaData
    from scaml.tasks.task import Task

__version__ = version("scaml")

__all__ = [
    "BenchRunError",
    "DatabaseError",
    "FitError",
    "MetaData",
    "SavedFileError",
    "ScaML",
    "ScaMLError",
    "ScaMLGP",
    "ScaMLSampler",
    "SettingError",
    "Space",
    "SpaceError",
    "Task",
    "TaskDataError",
    "TaskGPs",
    "load",
    "negated",
    "suggest",
]

# Imported when first asked for: torch and BoTorch take seconds, and `scaml --help` needs neither.
_HOMES = {
    "MetaData": "tasks.meta_data",
    "ScaML": "methods",
    "ScaMLGP": "model.scaml_gp",
    "ScaMLSampler": "integrations.optuna.sampler",
    "Space": "spaces.space",
    "Task": "tasks.task",
    "TaskGPs": "gp.task_gps",
    "load": "priors.load",
    "negated": "integrations.optuna.past_studies",
    "suggest": "ask",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'scaml' has no attribute {name!r}")
    value = getattr(import_module(f"scaml.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
