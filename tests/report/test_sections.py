from __future__ import annotations

import pytest

from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.methods import GPBO
from scaml.report.sections import Charts, paragraph, sections
from tests.cases import meta_data, task_of
from tests.run_cases import run_of, ugly, without_weights

pytest.importorskip("plotly")
WEIGHTS, MAPS = "How much each past task counts", "Two parameters together"


def test_a_section_that_does_not_apply_says_why() -> None:
    ignored = Run.of(Subject(GPBO().meta_fit(meta_data((5, 6), 2)), task_of(3, 2)))
    found = {section.title: section for section in sections(ignored)}
    assert found[WEIGHTS].words == ["GPBO does not use the past tasks."]
    assert found[WEIGHTS].blocks == []
    found = {section.title: section for section in sections(run_of(4, d=1))}
    assert "only one parameter" in found[MAPS].words[0]


def test_all_weights_0() -> None:
    words = {section.title: section.words for section in sections(without_weights(run_of(4)))}
    assert "All 3 past tasks have weight 0" in words[WEIGHTS][0]


def test_every_chart_is_described() -> None:
    for section in sections(Run.of(ugly())):
        for block in section.blocks:
            if isinstance(block, Charts):
                assert all(described for _, described in block.figures)


def test_progress_counts_the_sections() -> None:
    calls: list[tuple[int, int]] = []
    found = sections(run_of(3), lambda done, total: calls.append((done, total)))
    assert calls == [(i, len(found)) for i in range(len(found))]


def test_a_paragraph_does_not_break_before_a_percent_sign() -> None:
    assert paragraph(["About 3 % <b>.", "1 ± 2"]) == "<p>About 3&nbsp;% &lt;b&gt;. 1&nbsp;±&nbsp;2</p>"
