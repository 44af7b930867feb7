"""The paper's study: problems, and what runs and draws them."""

from scaml.bench.problems import FAMILIES, Family, Function

__all__ = ["FAMILIES", "Family", "Function"]
