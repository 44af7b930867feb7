"""The default before the average over explanations, which the study of single choices began with."""

from __future__ import annotations

from dataclasses import dataclass

from scaml.methods.scaml import KernelChoice, ScaML
from scaml.model.weight_priors import WeightsName

__all__ = ["FormerDefault"]


@dataclass(frozen=True)
class FormerDefault(ScaML):
    """One model with a squared-exponential kernel, whose weights are near a common value."""

    kernel: KernelChoice = "se"
    weights: WeightsName = "shared"
