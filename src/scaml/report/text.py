"""Names and numbers as plain text. `report.escape` makes HTML of it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

__all__ = [
    "listed",
    "number",
    "percent",
    "plain",
    "quoted",
    "setting",
    "short",
    "signed",
    "with_spread",
]

# Characters that change the order in which the text around them is displayed.
_REORDERING = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
_LARGE, _SMALL = 1e6, 1e-4  # beyond these a number is shown with an exponent
_MOST_DECIMALS = 8
_LONGEST = 26  # characters of a name beside a chart


def plain(text: object) -> str:
    r"""Text on one line that can be written to any file.

    Control characters and characters that reorder the line become spaces. Lone surrogates, which cannot
    be encoded, become question marks.

    Examples:
        >>> plain("reactor\nB")
        'reactor B'
    """
    kept = "".join(
        " " if character in _REORDERING or unicodedata.category(character) == "Cc" else character
        for character in str(text)
    )
    return kept.encode("utf-8", "replace").decode("utf-8")


def short(text: object, longest: int = _LONGEST) -> str:
    """A name, shortened in the middle if it is too long to stand beside a chart.

    Examples:
        >>> short("campaign-of-last-winter-on-reactor-B", 20)
        'campaign-o…reactor-B'
    """
    name = plain(text)
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 2
    return f"{name[: longest - 1 - tail]}…{name[-tail:]}"


def quoted(text: object, longest: int = 60) -> str:
    """A name in quotation marks, for a sentence."""
    return f"‘{short(text, longest)}’"


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    Examples:
        >>> listed(["a", "b", "c"])
        'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def number(value: float, digits: int = 4) -> str:
    """A number to some significant digits.

    Examples:
        >>> number(-12.3456), number(1234567.0), number(0.5)
        ('−12.35', '1.235e6', '0.5')
    """
    if not math.isfinite(value):
        return str(value)
    if value and not _SMALL <= abs(value) < _LARGE:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return _minus(f"{mantissa}e{int(exponent)}")
    text = f"{value:.{max(digits - 1 - _exponent(value), 0)}f}"
    return _minus(text.rstrip("0").rstrip(".") if "." in text else text)


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign.

    Examples:
        >>> signed(0.5), signed(-2.0)
        ('+0.5', '−2')
    """
    text = number(value, digits)
    return text if text in ("0", "−0") or value < 0 else f"+{text}"


def with_spread(value: float, spread: float) -> str:
    """A value and its uncertainty, both rounded to two digits of the uncertainty.

    Examples:
        >>> with_spread(12.3456, 0.123), with_spread(1234.5, 56.0), with_spread(3.0, 0.0)
        ('12.35 ± 0.12', '1234 ± 56', '3 ± 0')
    """
    largest = max(abs(value), spread)
    if not spread > 0 or not math.isfinite(largest) or not _SMALL <= largest < _LARGE:
        return f"{number(value)} ± {number(spread, 2)}"
    decimals = 1 - _exponent(spread)
    if decimals > _MOST_DECIMALS:
        return f"{number(value, 6)} ± {number(spread, 2)}"
    shown = max(decimals, 0)
    return _minus(f"{value:.{shown}f} ± {spread:.{shown}f}")


def percent(share: float) -> str:
    """A share in percent; small shares are not rounded to 0.

    Examples:
        >>> percent(0.624), percent(0.0), percent(0.001)
        ('62 %', '0 %', '< 1 %')
    """
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.005 else "< 1 %"


def setting(value: object) -> str:
    """The value of a parameter; numbers to six digits.

    Examples:
        >>> setting(0.1 + 0.2), setting(12), setting("poly"), setting(True)
        ('0.3', '12', 'poly', 'True')
    """
    if isinstance(value, float):
        return number(value, 6)
    return plain(value)


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _minus(text: str) -> str:
    """With a minus sign as wide as a plus. An exponent keeps its hyphen, so that it can be copied."""
    return f"−{text[1:]}" if text.startswith("-") else text
