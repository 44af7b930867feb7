"""Figures of regret from results that never ran: which panels, and what their lines are."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pandas as pd
import pytest

from scaml import SettingError
from study.paper.figures import FIGURES, build, draw
from tests.bench.figure_cases import Setting, places, results, title_of, titles, values

SYNTHETIC: list[Setting] = [
    ("branin", 8, 32),
    ("hartmann3", 8, 32),
    ("hartmann6", 8, 128),
    ("branin", 32, 32),
    ("hartmann3", 32, 32),
    ("hartmann6", 32, 128),
]


def test_figures_have_names() -> None:
    assert FIGURES == (
        *("synthetic", "hpo", "ablation-tasks", "ablation-points"),
        *("appendix-tasks", "appendix-points"),
    )


# Simple regret.


def test_synthetic_has_a_row_for_each_number_of_tasks() -> None:
    figure = build(results(*SYNTHETIC, ("branin", 16, 32), ("branin", 8, 64)), "synthetic")
    assert titles(figure) == [
        *("Branin, M=8, N_m=32", "Hartmann 3, M=8, N_m=32", "Hartmann 6, M=8, N_m=128"),
        *("Branin, M=32, N_m=32", "Hartmann 3, M=32, N_m=32", "Hartmann 6, M=32, N_m=128"),
    ]
    assert places(figure) == [(i, j) for i in range(2) for j in range(3)]
    assert [axes.get_ylabel() for axes in figure.axes] == ["simple regret", "", ""] * 2
    assert [axes.get_xlabel() for axes in figure.axes] == [""] * 3 + ["evaluations"] * 3
    assert all(axes.get_yscale() == "log" for axes in figure.axes)


def test_lines_are_means_over_runs_whatever_the_order_of_rows() -> None:
    frame = results(*SYNTHETIC[:1], runs=5)
    (axes,) = build(frame, "synthetic").axes
    # ScaML-GP comes first in the fixed order.
    for line, band, method in zip(axes.lines, axes.collections, ("scaml", "gpbo"), strict=True):
        columns = list(zip(*values(frame, SYNTHETIC[0], method, range(1, 5)), strict=True))
        means = [mean(column) for column in columns]
        assert line.get_xdata() == pytest.approx([1, 2, 3, 4])
        assert line.get_ydata() == pytest.approx(means)
        tops = [m + stdev(column) / sqrt(5) for m, column in zip(means, columns, strict=True)]
        vertices = np.asarray(band.get_paths()[0].vertices)
        assert [vertices[vertices[:, 0] == x, 1].max() for x in (1, 2, 3, 4)] == pytest.approx(tops)


def test_panels_without_results_are_left_out() -> None:
    assert places(build(results(SYNTHETIC[0], SYNTHETIC[5]), "synthetic")) == [(0, 0), (1, 1)]
    alone = build(results(SYNTHETIC[4]), "synthetic")
    assert titles(alone) == ["Hartmann 3, M=32, N_m=32"]
    assert alone.get_size_inches()[0] == 3.3


def test_hpo_is_three_by_three() -> None:
    fcnet = [f"fcnet-{name}" for name in ("naval", "parkinsons", "protein", "slice")]
    frame = results(*((name, 5, 64) for name in ("lr", "rf", "svm", "mlp", "xgb", *fcnet)))
    figure = build(frame, "hpo")
    assert [title.split(",")[0] for title in titles(figure)] == [
        *("SVM", "MLP", "XGB", "RF", "LR", "FC-Net Slice"),
        *("FC-Net Protein", "FC-Net Naval", "FC-Net Parkinson's"),
    ]
    assert places(figure) == [(i, j) for i in range(3) for j in range(3)]


def test_hpo_draws_the_papers_points_and_the_most_tasks() -> None:
    svm: list[Setting] = [("svm", 4, 64), ("svm", 19, 64), ("svm", 28, 16), ("svm", 28, 256)]
    assert titles(build(results(*svm), "hpo")) == ["SVM, M=19, N_m=64"]
    assert titles(build(results(*svm[2:]), "hpo")) == ["SVM, M=28, N_m=256"]


@pytest.mark.parametrize(
    ("figure", "settings", "expected"),
    [
        (
            "appendix-tasks",
            [("branin", 16, 32), ("branin", 2, 32), ("hartmann6", 4, 128), ("hartmann6", 4, 32)],
            {
                (0, 0): "Branin, M=2, N_m=32",
                (0, 1): "Branin, M=16, N_m=32",
                (1, 0): "Hartmann 6, M=4, N_m=128",
            },
        ),
        (
            "appendix-points",
            [("branin", 8, 128), ("branin", 8, 16), ("hartmann6", 8, 64), ("branin", 4, 16)],
            {
                (0, 0): "Branin, M=8, N_m=16",
                (0, 1): "Branin, M=8, N_m=128",
                (1, 0): "Hartmann 6, M=8, N_m=64",
            },
        ),
    ],
)
def test_appendix_has_a_row_a_problem(
    figure: str, settings: list[Setting], expected: dict[tuple[int, int], str]
) -> None:
    built = build(results(*settings), figure)
    assert dict(zip(places(built), titles(built), strict=True)) == expected


def test_appendix_wraps_long_rows() -> None:
    settings: list[Setting] = [("branin", 2**k, 32) for k in range(7)]
    figure = build(results(*settings, ("hartmann6", 1, 128), methods=["scaml"]), "appendix-tasks")
    assert places(figure) == [*((0, j) for j in range(5)), (1, 0), (1, 1), (2, 0)]


# Cumulative regret.


@pytest.mark.parametrize(
    ("figure", "settings", "sizes", "title", "x_label"),
    [
        (
            "ablation-tasks",
            [("branin", 2, 32), ("branin", 16, 32), ("branin", 4, 32)],
            [2, 4, 16],
            "Branin, N_m=32, 4 evaluations",
            "meta-tasks $M$",
        ),
        (
            "ablation-points",
            [("hartmann6", 8, 16), ("hartmann6", 8, 128), ("hartmann6", 8, 64)],
            [16, 64, 128],
            "Hartmann 6, M=8, 4 evaluations",
            "points per meta-task $N_m$",
        ),
    ],
)
def test_ablation_sums_the_regret_of_every_run(
    figure: str, settings: list[Setting], sizes: list[int], title: str, x_label: str
) -> None:
    frame = results(*settings, ("branin", 2, 16), ("hartmann6", 4, 16))
    (axes,) = build(frame, figure).axes
    assert (title_of(axes), axes.get_xlabel(), axes.get_ylabel()) == (
        title,
        x_label,
        "cumulative regret",
    )
    assert [int(tick) for tick in axes.xaxis.get_majorticklocs()] == sizes
    by_size = sorted(settings)
    for line, method in zip(axes.lines, ("scaml", "gpbo"), strict=True):
        sums = [
            [sum(run) for run in values(frame, setting, method, range(1, 5))] for setting in by_size
        ]
        assert line.get_xdata() == pytest.approx(sizes)
        assert line.get_ydata() == pytest.approx([mean(column) for column in sums])


def test_ablation_sums_as_many_steps_everywhere() -> None:
    short, long = ("branin", 2, 32), ("branin", 4, 32)
    frame = pd.concat([results(short, steps=3), results(long, steps=6)])
    (axes,) = build(frame, "ablation-tasks").axes
    assert "3 evaluations" in title_of(axes)
    expected = mean(sum(run) for run in values(frame, long, "scaml", range(1, 4)))
    assert np.asarray(axes.lines[0].get_ydata())[1] == pytest.approx(expected)


def test_ablation_has_a_panel_a_problem_and_methods_may_lack_sizes() -> None:
    frame = pd.concat(
        [
            results(("branin", 2, 32), ("branin", 4, 32), ("hartmann6", 4, 128)),
            results(("branin", 8, 32), methods=["mtgp"]),
        ]
    )
    left, right = build(frame, "ablation-tasks").axes
    assert [title_of(axes).split(",")[0] for axes in (left, right)] == ["Branin", "Hartmann 6"]
    assert [np.asarray(line.get_xdata()).tolist() for line in left.lines] == [[2, 4], [2, 4], [8]]


# What cannot be drawn.


@pytest.mark.parametrize(
    ("figure", "needs", "command"),
    [
        ("synthetic", "hartmann6 with N_m = 128, at M = 8 or 32", "paper --figure synthetic"),
        ("hpo", "svm, mlp, xgb, rf, lr, fcnet-slice", "paper --figure hpo"),
        ("ablation-tasks", "branin with N_m = 32 or", "paper --figure ablation-tasks"),
        ("ablation-points", "branin or hartmann6 with M = 8", "paper --figure ablation-points"),
        ("appendix-tasks", "branin with N_m = 32 or", "paper --figure ablation-tasks"),
        ("appendix-points", "branin or hartmann6 with M = 8", "paper --figure ablation-points"),
    ],
)
def test_without_results_the_message_says_what_to_run(
    figure: str, needs: str, command: str, tmp_path: Path
) -> None:
    frame = results(("branin", 3, 5))
    with pytest.raises(SettingError) as caught:
        draw(frame, figure, tmp_path)
    assert needs in str(caught.value)
    assert str(caught.value).endswith(f"; run python -m study {command}.")
    assert not list(tmp_path.iterdir())


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(SettingError, match="no figure 'sythetic'; did you mean 'synthetic'"):
        build(results(*SYNTHETIC), "sythetic")
