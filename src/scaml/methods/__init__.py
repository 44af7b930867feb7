"""The meta-learning methods, one file each, behind the interface of `scaml.methods.base`."""

from scaml.methods.base import MetaPrior, Method
from scaml.methods.gpbo import GPBO
from scaml.methods.scaml import ScaML

__all__ = ["GPBO", "MetaPrior", "Method", "ScaML"]
