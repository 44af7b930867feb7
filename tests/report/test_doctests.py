"""The examples in the docstrings of the package."""

from __future__ import annotations

import doctest

import pytest

from scaml.report import drawing, escape, row_texts, text


@pytest.mark.parametrize(
    "module", [drawing, escape, row_texts, text], ids=lambda module: module.__name__
)
def test_the_examples_of_the_docstrings_hold(module: object) -> None:
    results = doctest.testmod(module)  # type: ignore[arg-type]
    assert results.attempted
    assert not results.failed
