"""scaml: Bayesian optimization that learns from past experiments (ScaML-GP, AISTATS 2024)."""

from importlib.metadata import version

from scaml.data import MetaData, Task
from scaml.errors import FitError, ScaMLError, SettingError, SpaceError, TaskDataError
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
