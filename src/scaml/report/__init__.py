"""A page that explains a run: what the past teaches, what was learned since, and what to try next.

`page` writes one HTML file that needs no network; the other functions are its figures for notebooks.
Plotly draws them: `pip install 'scaml[report]'`.
"""

from scaml.explain.subject import Subject
from scaml.integrations.optuna.subject import of_study
from scaml.report.document import page
from scaml.report.notebook import leave_one_out, maps, progress, slices, suggestions, weights

__all__ = [
    "Subject",
    "leave_one_out",
    "maps",
    "of_study",
    "page",
    "progress",
    "slices",
    "suggestions",
    "weights",
]
