from __future__ import annotations

from scaml.report.style import CSS, DRAW


def test_neither_style_nor_script_reaches_for_the_network() -> None:
    for text in (CSS, DRAW):
        assert not [words for words in ("url(", "@import", "http", "fetch(", "eval(") if words in text]


def test_neither_can_end_its_element() -> None:
    assert "</" not in CSS + DRAW
