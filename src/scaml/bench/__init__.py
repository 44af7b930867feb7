"""The paper's study: problems, and what runs and draws them."""

from scaml.bench.families import FAMILIES, Family, Function

__all__ = ["FAMILIES", "Family", "Function"]
