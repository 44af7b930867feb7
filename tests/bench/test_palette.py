"""Looks that eyes tell apart, the same everywhere, and figures that are written whole or not at all."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context, rcParams
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from scaml.bench.palette import METHODS, PAGE, Look, in_order, look, style, write

# Machado, Oliveira and Fernandes (2009): what is seen without one kind of cones, in linear RGB.
SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str, sight: str) -> np.ndarray:
    """CIELAB, in which distances are what eyes see."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(SIGHTS[sight] @ linear, 0.0, 1.0) / TO_XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_are_told_apart(sight: str) -> None:
    seen = {name: lab(known.colour, sight) for name, known in METHODS.items()}
    for a, b in combinations(METHODS, 2):
        far = np.linalg.norm(seen[a] - seen[b])
        assert far > 9.0, (a, b)  # 2 is just noticeable
        # Where colours come close, the lines differ too.
        assert far > 16.0 or METHODS[a].linestyle != METHODS[b].linestyle, (a, b)


def test_markers_tell_all_methods_apart_in_grey() -> None:
    assert len({known.marker for known in METHODS.values()}) == len(METHODS) == 14


def test_labels() -> None:
    assert [look(method).label for method in METHODS] == [
        *("ScaML-GP", "ScaML-GP (former)", "ScaML-GP (UCB)", "ScaML-GP (paper)", "GPBO", "RGPE"),
        *("SGPT", "StackGP", "ABLR", "RM-GP-UCB", "FSBO", "GC3P", "MTGP", "random"),
    ]


def test_scaml_lies_on_top_of_the_others_and_is_thicker() -> None:
    ours = look("scaml")
    others = [known for name, known in METHODS.items() if name != "scaml"]
    assert all(ours.zorder > other.zorder and ours.width > other.width for other in others)


def test_a_foreign_method_has_one_look_for_ever() -> None:
    # Written down, because a look must not change between processes either.
    assert look("./mine.py:Mine") == Look("#AA4499", "p", (0.0, (8.0, 1.5, 1.0, 1.5, 1.0, 1.5)), "Mine")
    assert look("another").label == "another"
    assert look("odd:").label == "odd:"
    names = [f"./m{i}.py:Mine" for i in range(60)]
    assert len({(look(n).colour, look(n).marker, look(n).linestyle) for n in names}) > 30
    assert not {look(n).colour for n in names} & {known.colour for known in METHODS.values()}


def test_order_is_fixed() -> None:
    given = ["./z.py:Z", "random", "gpbo", "./a.py:A", "scaml", "gpbo"]
    assert in_order(given) == ["scaml", "gpbo", "random", "./a.py:A", "./z.py:Z"]


def test_style_is_ours_whatever_the_user_set_and_is_gone_afterwards() -> None:
    with rc_context({"lines.linewidth": 9.0, "font.size": 20.0}):
        with style():
            assert (rcParams["font.size"], rcParams["lines.linewidth"]) == (7.0, 1.5)
        assert (rcParams["font.size"], rcParams["lines.linewidth"]) == (20.0, 9.0)


def some_figure() -> Figure:
    figure = Figure(figsize=(PAGE["column"], 1.0))
    figure.subplots().plot([0, 1], [1, 0], **look("scaml").line)
    return figure


def test_figures_are_written_in_two_formats_and_do_not_tell_the_time(tmp_path: Path) -> None:
    paths = write(some_figure(), tmp_path / "new" / "folder", "name")
    assert [path.name for path in paths] == ["name.png", "name.pdf"]
    assert sorted(p.name for p in paths[0].parent.iterdir()) == ["name.pdf", "name.png"]
    png, pdf = (path.read_bytes() for path in paths)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(png[16:20]) == 300 * PAGE["column"]  # its width, at 300 dots an inch
    assert pdf.startswith(b"%PDF")
    assert b"CreationDate" not in pdf
    again = write(some_figure(), tmp_path, "name")
    assert [path.read_bytes() for path in again] == [png, pdf]


def test_a_failure_leaves_the_older_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "name.png").write_bytes(b"an older one")

    def fail(self: Figure, path: Path, **_: object) -> None:
        path.write_bytes(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        write(some_figure(), tmp_path, "name")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"name.png": b"an older one"}
