"""Tables of results: regrets, ranks and times per method, as text, Markdown and CSV."""

from scaml.bench.summary.render import csv, markdown, text
from scaml.bench.summary.rows import Row, summarize
from scaml.bench.summary.standings import PAPER_RUNS, Standing, extrapolate, overview

__all__ = [
    "PAPER_RUNS",
    "Row",
    "Standing",
    "csv",
    "extrapolate",
    "markdown",
    "overview",
    "summarize",
    "text",
]
