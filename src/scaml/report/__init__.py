"""A page that explains suggestions: what the past tasks say, what was learned since, what to try next.

`page` writes one HTML file that needs no network; the other functions are its figures for notebooks.
Plotly draws them: `pip install 'scaml[report]'`.
"""

from typing import TYPE_CHECKING

from scaml.common.lazy import lazy_names

if TYPE_CHECKING:
    from scaml.explain.subject import Subject
    from scaml.integrations.optuna.subject import of_study
    from scaml.report.document import page
    from scaml.report.notebook import (
        explanations,
        leave_one_out,
        maps,
        progress,
        slices,
        suggestions,
        weights,
    )

__all__ = [
    "Subject",
    "explanations",
    "leave_one_out",
    "maps",
    "of_study",
    "page",
    "progress",
    "slices",
    "suggestions",
    "weights",
]

# Imported when first asked for: a page about a table does not need the Optuna sampler.
_HOMES = {
    "Subject": "explain.subject",
    "explanations": "report.notebook",
    "leave_one_out": "report.notebook",
    "maps": "report.notebook",
    "of_study": "integrations.optuna.subject",
    "page": "report.document",
    "progress": "report.notebook",
    "slices": "report.notebook",
    "suggestions": "report.notebook",
    "weights": "report.notebook",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
