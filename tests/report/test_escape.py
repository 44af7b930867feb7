from __future__ import annotations

import html

import pytest

from scaml.report.escape import escaped, label


@pytest.mark.parametrize("name", ["<b>x</b>", "a & b", "'\"", "</script><!--", "&lt;"])
def test_escaped_text_is_not_markup_and_reads_the_same(name: str) -> None:
    for safe in (escaped(name), label(name)):
        assert not set(safe) & set("<>\"'")
        assert html.unescape(safe) == name


def test_no_formula_is_left_to_mathjax() -> None:
    assert "$" not in label("$x$")
    assert html.unescape(label("$x$")) == "$x$"
    assert escaped("$x$") == "$x$"
