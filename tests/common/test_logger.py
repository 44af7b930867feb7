"""The logger: a child of Optuna's, so that `optuna.logging` controls it."""

from __future__ import annotations

import logging

import optuna

from scaml.common.logger import LOGGER_NAME, logger


def test_the_name_is_the_one_that_users_filter_by() -> None:
    assert LOGGER_NAME == logger.name == "optuna.scaml"
    assert logger is logging.getLogger("optuna.scaml")


def test_optunas_verbosity_turns_it_off_and_on() -> None:
    before = optuna.logging.get_verbosity()
    try:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        assert not logger.isEnabledFor(logging.WARNING)
        optuna.logging.set_verbosity(optuna.logging.INFO)
        assert logger.isEnabledFor(logging.INFO)
    finally:
        optuna.logging.set_verbosity(before)
