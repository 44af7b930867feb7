"""How figures look: every method has its own colour, marker and line style, the same in every figure.

The colours are those of Okabe and Ito, extended by those of Tol, which colour-blind readers can tell
apart; markers and line styles do the same in black and white. Sizes are those of the printed page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from matplotlib import rc_context, rcdefaults, rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scaml.common.files import replacing

__all__ = ["METHODS", "PAGE", "Dashes", "Look", "in_order", "look", "style", "tidy", "write"]

PAGE = {"column": 3.3, "text": 6.75}
"""Widths of a column and of the text, in inches."""

_DPI = 300

Dashes = str | tuple[float, tuple[float, ...]]
"""A line style of matplotlib: a name, or an offset and the lengths of strokes and gaps."""


@dataclass(frozen=True)
class Look:
    """How the lines of a method are drawn.

    Args:
        colour: The colour as #rrggbb.
        marker: A marker of matplotlib.
        linestyle: A line style of matplotlib.
        label: The name of the method in legends.
        width: The width of the line, in points.
        zorder: A line with a larger number is drawn above the others.
    """

    colour: str
    marker: str
    linestyle: Dashes
    label: str
    width: float = 0.9
    zorder: float = 3.0

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of `Axes.plot` and `Line2D`."""
        stroke = self.marker in _STROKES
        return {
            "color": self.colour,
            "marker": self.marker,
            "markersize": _SIZES.get(self.marker, 1.0) * (2.3 + self.width),
            # A white edge separates markers where lines meet; a marker of strokes is only edge.
            "markeredgecolor": self.colour if stroke else "white",
            "markeredgewidth": 0.8 if stroke else 0.3,
            "linestyle": self.linestyle,
            "linewidth": self.width,
            "zorder": self.zorder,
        }


_STROKES = "x+1234|"
# Some markers of matplotlib look smaller than others of the same size.
_SIZES = {"*": 1.8, "d": 1.3, "P": 1.2, "X": 1.2, **dict.fromkeys("+1234|", 1.5)}

METHODS: dict[str, Look] = {
    "scaml": Look("#0072B2", "o", "-", "ScaML-GP", width=1.6, zorder=5.0),
    "scaml-shared": Look("#0099CC", "p", (0.0, (3.0, 1.0)), "ScaML-GP (former)", zorder=4.8),
    "scaml-ucb": Look("#3355EE", "H", (0.0, (6.0, 1.0)), "ScaML-GP (UCB)", zorder=4.5),
    "scaml-paper": Look("#56B4E9", "d", "--", "ScaML-GP (paper)", zorder=4.0),
    "gpbo": Look("#D55E00", "s", "-", "GPBO"),
    "rgpe": Look("#009E73", "^", "-.", "RGPE"),
    "sgpt": Look("#CC79A7", "v", "-", "SGPT"),
    "stackgp": Look("#E69F00", "D", "--", "StackGP"),
    "ablr": Look("#882255", "P", "-.", "ABLR"),
    "rmgpucb": Look("#117733", "X", "--", "RM-GP-UCB"),
    "fsbo": Look("#332288", "<", (0.0, (4.0, 1.0, 1.0, 1.0, 1.0, 1.0)), "FSBO"),
    "gc3p": Look("#661100", ">", (0.0, (1.0, 1.0)), "GC3P"),
    "mtgp": Look("#000000", "*", "-", "MTGP"),
    "random": Look("#AAAAAA", "x", ":", "random"),
}
"""The looks of the known methods, in the order of legends."""

# Seven more colours of Tol. Two unknown methods may share one.
_FOREIGN_COLOURS = ("#44AA99", "#AA4499", "#997700", "#6699CC", "#994455", "#999933", "#CC6677")
_FOREIGN_MARKERS = ("p", "h", "+", "1", "2", "3", "4", "|")
_FOREIGN_LINES: tuple[Dashes, ...] = ("-", "--", "-.", (0.0, (8.0, 1.5, 1.0, 1.5, 1.0, 1.5)))


def look(method: str) -> Look:
    """The look of a method; the look of an unknown method follows from its name alone.

    Args:
        method: A key of `METHODS`, or file and class such as "./mine.py:Mine"; the class is the label.

    Examples:
        >>> look("gpbo").label, look("./mine.py:Mine").label
        ('GPBO', 'Mine')
    """
    if method in METHODS:
        return METHODS[method]
    digest = sha256(method.encode()).digest()
    return Look(
        _FOREIGN_COLOURS[digest[0] % len(_FOREIGN_COLOURS)],
        _FOREIGN_MARKERS[digest[1] % len(_FOREIGN_MARKERS)],
        _FOREIGN_LINES[digest[2] % len(_FOREIGN_LINES)],
        method.rpartition(":")[2] or method,
    )


def in_order(methods: Iterable[str]) -> list[str]:
    """Every method once: known methods in their fixed order, then the others by name."""
    chosen = set(methods)
    return [method for method in METHODS if method in chosen] + sorted(chosen - METHODS.keys())


@contextmanager
def style() -> Iterator[None]:
    """Draw with matplotlib's defaults, not the user's, and with text and lines for the printed page."""
    with rc_context():
        rcdefaults()
        rcParams.update(
            {
                "font.size": 7.0,
                "axes.titlesize": 7.0,
                "axes.labelsize": 7.0,
                "xtick.labelsize": 7.0,
                "ytick.labelsize": 7.0,
                "legend.fontsize": 7.0,
                "legend.title_fontsize": 7.0,
                "axes.linewidth": 0.5,
                "xtick.major.width": 0.5,
                "ytick.major.width": 0.5,
                "ytick.minor.width": 0.3,
                "xtick.major.size": 2.5,
                "ytick.major.size": 2.5,
                "ytick.minor.size": 1.5,
                "pdf.fonttype": 42,  # text that a reader of the PDF can search and copy
            }
        )
        yield


def tidy(axes: Axes) -> None:
    """Draw a faint grid, and no frame on the top and on the right."""
    axes.grid(which="major", color="0.9", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def write(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name`.png and `name`.pdf, each whole or not at all, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind in ("png", "pdf"):
        path = folder / f"{name}.{kind}"
        # Without the time of writing, equal figures are equal files.
        metadata = {"CreationDate": None} if kind == "pdf" else None
        with style(), replacing(path) as draft:
            figure.savefig(draft, format=kind, dpi=_DPI, metadata=metadata)
        paths.append(path)
    return paths
