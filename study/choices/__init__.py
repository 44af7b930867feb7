"""Alternatives to single parts of ScaML-GP, which an ablation compares one by one."""

from study.choices.variants import Choice, choices, together

__all__ = ["Choice", "choices", "together"]
