"""`Inapplicable`: why a run has no such numbers."""

from __future__ import annotations

from scaml.errors import ScaMLError

__all__ = ["Inapplicable"]


class Inapplicable(ScaMLError):  # noqa: N818 - not an error: the sentence takes the figure's place
    """Why this run has no such numbers, in one sentence that is shown in place of a figure."""
