"""Escaping: names that a user chose are shown as text, never read as HTML or as a formula."""

from __future__ import annotations

import html

from scaml.report.text import plain

__all__ = ["escaped", "label"]


def escaped(text: object) -> str:
    """Text for HTML, inside and outside of attributes.

    Examples:
        >>> escaped("<b>")
        '&lt;b&gt;'
    """
    return html.escape(plain(text))


def label(text: object) -> str:
    """Text for Plotly, whose labels understand some HTML, and formulas between dollars (MathJax).

    Examples:
        >>> label("<b> $x$")
        '&lt;b&gt; &#36;x&#36;'
    """
    return escaped(text).replace("$", "&#36;")
