"""The tables of a study: what every method's runs come to, and how that is shown."""

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
