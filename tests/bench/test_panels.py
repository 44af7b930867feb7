"""Panels: means and errors, axes that can be read, and a page on which nothing is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from scaml.bench.palette import METHODS, look
from scaml.bench.panels import Curve, Panel, page


def curve(method: str, values: Sequence[float], error: float = 0.1, runs: int = 4) -> Curve:
    means = np.array(values, dtype=float)
    steps = range(1, len(values) + 1)
    return Curve(method, steps, means, error * means, (runs,) * len(values))


def panel(*curves: Curve, group: str = "svm", doubling: bool = False) -> Panel:
    return Panel(
        group, group.upper(), "$M = 8$, $N_m = 32$", "evaluations", "simple regret", curves, doubling
    )


def drawn(*curves: Curve, doubling: bool = False) -> Axes:
    figure = page([[panel(*curves, doubling=doubling)]])
    figure.draw_without_rendering()
    return figure.axes[0]


def labels(axes: Axes, which: str = "y") -> dict[float, str]:
    """The numbers in sight, by place."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    low, high = sorted(axis.get_view_interval())
    texts = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return {float(at): text.get_text() for at, text in texts if low <= at <= high}


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def band_of(axes: Axes, number: int) -> np.ndarray:
    return np.concatenate(
        [path.vertices for path in axes.collections[number].get_paths()] or [np.empty((0, 2))]
    )


# Numbers.


def test_mean_and_standard_error() -> None:
    samples = [np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25, 0.0]), np.array([3.0])]
    found = Curve.of("gpbo", [1, 2, 3], samples)
    assert found.mean == pytest.approx([mean(values.tolist()) for values in samples])
    expected = [stdev(values.tolist()) / sqrt(3) for values in samples[:2]]
    assert found.error[:2] == pytest.approx(expected)
    assert np.isnan(found.error[2])
    assert found.runs == (3, 3, 1)


def test_a_line_is_the_mean_and_its_band_the_error() -> None:
    axes = drawn(curve("gpbo", [1.0, 0.5, 0.25], error=0.2), curve("rgpe", [0.1, 0.1, 0.1]))
    assert axes.lines[0].get_ydata() == pytest.approx([1.0, 0.5, 0.25])
    heights = band_of(axes, 0)
    assert {
        x: (heights[heights[:, 0] == x, 1].min(), heights[heights[:, 0] == x, 1].max())
        for x in (1, 2, 3)
    } == {
        1: pytest.approx((0.8, 1.2)),
        2: pytest.approx((0.4, 0.6)),
        3: pytest.approx((0.2, 0.3)),
    }


def test_a_single_run_has_no_band() -> None:
    axes = drawn(curve("gpbo", [1.0, 0.5, 0.25], error=np.nan, runs=1))
    assert not len(band_of(axes, 0))
    assert axes.figure.legends[0].get_title().get_text() == "1 run"


def test_nothing_is_drawn_at_zero() -> None:
    """Where a mean, or a mean less its error, has no logarithm, the lower edge stands for it."""
    figure = page([[panel(curve("gpbo", [1.0, 0.01, 0.0], error=1.0), curve("rgpe", [1.0, 0.5, 0.1]))]])
    axes = figure.axes[0]
    low, high = axes.get_ylim()
    assert 0.0 < low < 0.01 < 2.0 < high
    assert axes.lines[0].get_ydata() == pytest.approx([1.0, 0.01, low])
    assert band_of(axes, 0)[:, 1].min() == low
    assert "at the lower edge" in figure.legends[0].get_title().get_text()
    without = page([[panel(curve("gpbo", [1.0, 0.01], error=1.0))]])
    assert "at the lower edge" not in without.legends[0].get_title().get_text()


def test_only_zeros_can_be_drawn() -> None:
    axes = drawn(curve("gpbo", [0.0, 0.0]))
    assert axes.lines[0].get_ydata() == pytest.approx([axes.get_ylim()[0]] * 2)


def test_rounding_errors_do_not_stretch_the_axis() -> None:
    low, high = drawn(curve("gpbo", [1.0, 1e-3, 1e-16])).get_ylim()
    assert 1e-10 < low < 1e-8 < high < 10.0


# Axes.


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (30.0, 0.002, ["$10^{-2}$", "$10^{-1}$", "$10^{0}$", "$10^{1}$"]),
        (0.9, 0.04, ["0.05", "0.1", "0.2", "0.5", "1"]),
        (0.45, 0.31, ["0.3", "0.35", "0.4", "0.45", "0.5"]),
        (4.5e-5, 1.5e-5, [r"$2 \cdot 10^{-5}$", r"$5 \cdot 10^{-5}$"]),
    ],
)
def test_few_and_round_numbers_on_any_range(first: float, last: float, expected: list[str]) -> None:
    axes = drawn(curve("gpbo", [first, last]))
    assert list(labels(axes).values()) == expected
    assert not any(text.get_text() for text in axes.yaxis.get_minorticklabels())


def test_numbers_never_crowd() -> None:
    decades = [0.01, 0.1, 0.7, 1.0, 1.5, 3.0, 7.0, 12.0]
    panels = [
        panel(curve("gpbo", [top, top * 10.0**-d], error=0.01), group=f"{d}")
        for top, d in zip([1.0, 9.7e-6] * 4, decades, strict=True)
    ]
    figure = page([panels[:4], panels[4:]])
    figure.draw_without_rendering()
    for axes in figure.axes:
        texts = [text for text in axes.yaxis.get_majorticklabels() if text.get_text()]
        assert 2 <= len(labels(axes)) <= 6
        boxes = [text.get_window_extent() for text in texts]
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_steps_are_whole_numbers() -> None:
    assert list(labels(drawn(curve("gpbo", [1.0])), "x").values()) == ["1"]
    assert list(labels(drawn(curve("gpbo", [1.0, 0.5, 0.1])), "x").values()) == ["1", "2", "3"]
    many = labels(drawn(curve("gpbo", np.geomspace(1.0, 0.1, 60).tolist())), "x")
    assert list(many.values()) == ["0", "20", "40", "60"]


def test_amounts_have_a_tick_each_and_numbers_that_do_not_touch() -> None:
    sizes = [2, 4, 8, 30, 32]
    values = np.linspace(2.0, 1.0, 5)
    axes = drawn(Curve("gpbo", sizes, values, 0.1 * values, (4,) * 5), doubling=True)
    assert labels(axes, "x") == {2.0: "2", 4.0: "4", 8.0: "8", 30.0: "30", 32.0: ""}
    pixels = axes.transData.transform([(2, 1.0), (4, 1.0), (8, 1.0)])[:, 0]
    assert pixels[1] - pixels[0] == pytest.approx(pixels[2] - pixels[1])


def test_panels_of_a_group_have_one_scale_and_name_it_once() -> None:
    one, two = curve("gpbo", [1.0, 0.5]), curve("gpbo", [100.0, 0.01])
    figure = page([[panel(one), panel(two), panel(one, group="lr")]])
    first, second, third = figure.axes
    assert first.get_ylim() == second.get_ylim() != third.get_ylim()
    assert [axes.yaxis.get_tick_params()["labelleft"] for axes in figure.axes] == [True, False, True]
    assert [axes.get_ylabel() for axes in figure.axes] == ["simple regret", "", ""]


def test_long_lines_have_few_markers_at_different_places() -> None:
    values = np.geomspace(1.0, 0.1, 40).tolist()
    axes = drawn(*(curve(method, values) for method in METHODS))
    marked: list[Any] = [line.get_markevery() for line in axes.lines]
    assert all(40 / every <= 5 and first < every for first, every in marked)
    assert len(set(marked)) > 6
    assert all(line.get_markevery() == (0, 1) for line in drawn(curve("gpbo", [2.0, 1.0])).lines)


# Pages.


def test_titles_name_runs_only_where_they_differ() -> None:
    same = page([[panel(curve("gpbo", [1.0])), panel(curve("rgpe", [1.0]))]])
    assert {axes.get_title(loc="left") for axes in same.axes} == {"SVM\n$M = 8$, $N_m = 32$"}
    assert same.legends[0].get_title().get_text() == "mean and standard error of 4 runs"
    fewer = panel(curve("gpbo", [1.0], runs=2), curve("rgpe", [1.0], runs=9), group="lr")
    other = page([[panel(curve("gpbo", [1.0])), fewer]])
    assert [axes.get_title(loc="left").splitlines()[1] for axes in other.axes] == [
        "$M = 8$, $N_m = 32$, 4 runs",
        "$M = 8$, $N_m = 32$, 2 to 9 runs",
    ]
    assert other.legends[0].get_title().get_text() == "mean and standard error of 2 to 9 runs"


def test_legend_has_every_method_once_in_fixed_order_row_by_row() -> None:
    shuffled = sorted(METHODS)
    figure = page(
        [
            [
                panel(*(curve(m, [1.0]) for m in shuffled[:7])),
                panel(*(curve(m, [1.0]) for m in shuffled[5:])),
            ]
        ]
    )
    figure.draw_without_rendering()
    places = {text.get_text(): text.get_window_extent() for text in figure.legends[0].get_texts()}
    rows = sorted(places, key=lambda label: (-round(places[label].y0), places[label].x0))
    assert rows == [known.label for known in METHODS.values()]


def test_classes_of_one_name_are_told_apart_by_their_files() -> None:
    names = ["./a.py:Mine", "./b.py:Mine", "./c$d$.py:Other"]
    figure = page([[panel(*(curve(name, [1.0]) for name in names))]])
    assert legend_texts(figure) == ["./a.py:Mine", "./b.py:Mine", "Other"]


def test_a_dollar_is_no_formula() -> None:
    figure = page([[Panel("p", "a$b$c", "$M = 1$", "x", "y", [curve("gpbo", [1.0])])]])
    assert figure.axes[0].get_title(loc="left") == "a\\$b\\$c\n$M = 1$"


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (2, 5)])
def test_nothing_is_cut_off_and_nothing_overlaps(rows: int, columns: int) -> None:
    def one(i: int, j: int) -> Panel:
        methods = list(METHODS) if i == j == 0 else ["scaml"]
        curves = [curve(method, [30.0, 1e-3], runs=i + 128) for method in methods]
        return Panel(
            f"{j}",
            "FC-Net Parkinson's",
            "$M = 32$, $N_m = 128$",
            "evaluations",
            "simple regret",
            curves,
        )

    figure = page([[one(i, j) for j in range(columns)] for i in range(rows)])
    figure.draw_without_rendering()
    assert figure.get_size_inches()[0] == (3.3 if columns == 1 else 6.75)
    boxes: list[Bbox] = [axes.get_tightbbox() for axes in figure.axes]  # type: ignore[misc]
    boxes.append(figure.legends[0].get_window_extent())
    width, height = figure.canvas.get_width_height()
    for box in boxes:
        assert box.x0 >= 0.0
        assert box.y0 >= 0.0
        assert box.x1 <= width
        assert box.y1 <= height
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    smallest = min(axes.get_window_extent().height for axes in figure.axes) / figure.dpi
    assert smallest > 0.8  # inches


def test_empty_places_stay_empty_and_labels_move() -> None:
    full, other = panel(curve("gpbo", [1.0])), panel(curve("gpbo", [1.0]), group="lr")
    figure = page([[full, None], [other, full], [other, None]])
    assert len(figure.axes) == 4
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "evaluations", "evaluations"]


def test_a_method_looks_the_same_on_every_panel() -> None:
    figure = page([[panel(curve("sgpt", [1.0])), panel(curve("scaml", [1.0]), curve("sgpt", [2.0]))]])
    lines = [figure.axes[0].lines[0], figure.axes[1].lines[1]]
    assert {(line.get_color(), line.get_marker()) for line in lines} == {
        (look("sgpt").colour, look("sgpt").marker)
    }
