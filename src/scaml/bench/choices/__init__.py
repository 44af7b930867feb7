"""Alternatives around ScaML-GP, which an ablation study compares with the default one by one."""

from scaml.bench.choices.variants import Choice, choices, together

__all__ = ["Choice", "choices", "together"]
