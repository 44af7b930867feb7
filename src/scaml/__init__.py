"""scaml: Bayesian optimization that learns from past experiments (ScaML-GP, AISTATS 2024)."""

from importlib.metadata import version
from typing import TYPE_CHECKING

from scaml.common.lazy import lazy_names
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

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
