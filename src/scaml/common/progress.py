"""The types of progress callbacks."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "StepProgress"]

Progress = Callable[[str, int, int | None], None]
"""Called with the name of the stage, the steps done and the number of steps (None if unknown)."""

StepProgress = Callable[[int, int], None]
"""Called with the steps done and the number of steps."""
