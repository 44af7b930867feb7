"""The figure of the demonstration: every line is there, and the file is whole or absent."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from scaml.bench.demo import PLAIN, SCAML
from scaml.bench.demo_figure import draw
from tests.bench.test_demo import RESULT

PNG = b"\x89PNG\r\n\x1a\n"


def x_of(line: Line2D) -> list[float]:
    return list(np.asarray(line.get_xdata(), dtype=float))


def y_of(line: Line2D) -> list[float]:
    return list(np.asarray(line.get_ydata(), dtype=float))


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Figure:
    """The figure before it is written."""
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(self: Figure, path: Path, **options: object) -> None:
        figures.append(self)
        save(self, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "savefig", keep)
    draw(RESULT, tmp_path / "figure.png")
    return figures[0]


def test_lines_show_regrets_and_probabilities(drawn: Figure) -> None:
    left, right = drawn.axes
    assert [y_of(line) for line in left.lines] == list(map(list, RESULT.regrets.values()))
    assert x_of(left.lines[0]) == [1, 2, 3]
    names = ["twin", "relative 2", "relative 1", "stranger 1"]
    expected = [list(RESULT.matters[name]) for name in names]
    assert [y_of(line) for line in right.lines] == [*expected, list(RESULT.none)]
    assert x_of(right.lines[0]) == [0, 1, 2]


def test_roles_differ_in_more_than_colour(drawn: Figure) -> None:
    right = drawn.axes[1]
    looks = {
        (line.get_linestyle(), line.get_marker(), line.get_linewidth()): line.get_color()
        for line in right.lines
    }
    assert len(looks) == len(set(looks.values())) == 4
    legend = right.get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["twin", "2 relatives", "1 stranger", "no past task"]
    assert [text.get_text() for text in right.texts] == ["twin"]
    assert right.texts[0].xy == (2, 0.875)  # type: ignore[attr-defined]


def test_figure_is_a_png_and_the_only_file(tmp_path: Path) -> None:
    path = tmp_path / "figure.png"
    path.write_bytes(b"an older one")
    draw(RESULT, path)
    data = path.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert data.startswith(PNG)
    assert (width, height) == (1500, 630)
    assert list(tmp_path.iterdir()) == [path]


def test_figure_of_a_twin_alone_and_of_no_regret(tmp_path: Path) -> None:
    edge = dataclasses.replace(
        RESULT,
        matters={"twin": (0.0, 1.0)},
        none=(1.0, 0.0),
        regrets={SCAML: (0.0,), PLAIN: (1.0,)},
    )
    draw(edge, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(PNG)


def test_stopped_figure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = tmp_path / "figure.png"
    older.write_bytes(b"an older one")

    def stop(self: Figure, path: Path, **options: object) -> None:
        path.write_bytes(PNG)
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", stop)
    with pytest.raises(KeyboardInterrupt):
        draw(RESULT, older)
    assert older.read_bytes() == b"an older one"
    assert list(tmp_path.iterdir()) == [older]
