from __future__ import annotations

import math

import pytest
from optuna.distributions import FloatDistribution

from scaml import Space
from scaml.explain.parameters import parameters_of
from scaml.explain.run import Run
from scaml.report.drawing import axis, band, domains, figure, note, parameter_axis
from tests.run_cases import ugly

plotly = pytest.importorskip("plotly")


def test_axes_are_those_of_the_parameters() -> None:
    rate, kind, depth = Run.of(ugly()).parameters
    assert parameter_axis(rate)["type"] == "log"
    assert parameter_axis(rate)["range"] == pytest.approx([-4.12, 0.12])
    assert parameter_axis(kind)["ticktext"] == ["&lt;i&gt;", "2020-01-01", "3"]
    assert parameter_axis(kind)["type"] == "linear"  # not dates
    assert parameter_axis(depth)["title"]["text"] == "depth"
    wide = parameters_of(Space({"p": FloatDistribution(1e-6, 1e6, log=True)}), 1)[0]
    assert parameter_axis(wide)["dtick"] == math.ceil(12 / 5)


def test_the_users_template_does_not_change_a_figure() -> None:
    before = figure([band([0.0, 1.0], [0.0, 0.0], [1.0, 1.0], "#0072B2")]).to_json()
    default = plotly.io.templates.default
    try:
        plotly.io.templates.default = "plotly_dark"
        assert figure([band([0.0, 1.0], [0.0, 0.0], [1.0, 1.0], "#0072B2")]).to_json() == before
    finally:
        plotly.io.templates.default = default


def test_a_band_runs_forth_above_and_back_below() -> None:
    area = band([0.0, 1.0], [-1.0, -2.0], [3.0, 4.0], "#0072B2")
    assert (area["x"], area["y"]) == ([0.0, 1.0, 1.0, 0.0], [3.0, 4.0, -2.0, -1.0])


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_domains_fill_the_figure(n: int) -> None:
    found = domains(n, 0.05)
    assert found[0][0] == 0.0
    assert found[-1][1] == pytest.approx(1.0)
    assert all(begin < end <= 1.0 for begin, end in found)


def test_titles_and_notes_are_text() -> None:
    assert axis("<b>")["title"]["text"] == "&lt;b&gt;"
    assert note("<b>").layout.annotations[0].text == "&lt;b&gt;"
