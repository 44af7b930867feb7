"""Compare methods, also your own: problems, a runner, stored results, summaries, a figure of regret.

`contestants.py` finds methods and `problems.py` finds problems by name, `runner.py` runs all methods on
all problems, `results.py` stores the results, and `summary/` and `regret_figure.py` show them.
"""

from scaml.bench.families import FAMILIES, Family, Function

__all__ = ["FAMILIES", "Family", "Function"]
