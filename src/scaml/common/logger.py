"""The logger that scaml writes to."""

from __future__ import annotations

import logging

__all__ = ["LOGGER_NAME", "logger"]

LOGGER_NAME = "optuna.scaml"
"""A child of Optuna's logger: lines look like Optuna's, and `optuna.logging` turns them off."""

logger = logging.getLogger(LOGGER_NAME)
