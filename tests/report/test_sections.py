from __future__ import annotations

import pytest
import torch

from scaml import Task
from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.methods import GPBO
from scaml.report.sections import Charts, paragraph, sections
from tests.cases import meta_data, task_of
from tests.run_cases import (
    EXPLAINED,
    UGLY,
    Known,
    explained_run,
    run_of,
    ugly,
    verdict,
    without_weights,
)

pytest.importorskip("plotly")
LIKE = "Which past task is this one like?"
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


def test_a_model_that_explains_itself_has_a_section_of_explanations() -> None:
    run = explained_run()
    assert run.verdict is not None
    titles = [section.title for section in sections(run)]
    assert titles[:3] == ["Summary", LIKE, WEIGHTS]
    found = {section.title: section for section in sections(run)}
    (table,) = found[LIKE].blocks
    assert isinstance(table, str)
    for e in run.verdict.explanations[:2]:
        assert str(e).replace("'", "&#x27;") in table
        assert f"<td>{100 * e.probability:.0f} %</td>" in table
    best = str(run.verdict.best)
    assert f"the new task is most probably like {best} (" in found["Summary"].words[-1]
    assert LIKE not in [section.title for section in sections(without_weights(run_of(4)))]


def test_a_warning_stands_in_the_summary() -> None:
    run = explained_run()
    vars(run)["verdict"] = verdict({UGLY: 0.3, "": 0.7}, mirrored=(UGLY,))  # cached
    html = "".join(str(block) for block in sections(run)[0].blocks)
    assert '<p class="warning">The past is set aside: ' in html
    assert "70&nbsp;%" in html
    vars(run)["verdict"] = verdict({UGLY: 0.7, "": 0.3}, mirrored=(UGLY,))
    html = "".join(str(block) for block in sections(run)[0].blocks)
    assert '<p class="warning">‘&lt;script&gt;alert(1)&lt;/script&gt;’ looks mirrored' in html
    assert "set aside" not in html


def test_names_of_explanations_are_escaped_everywhere() -> None:
    found = sections(Run.of(ugly(method=EXPLAINED)))
    assert LIKE in [section.title for section in found]
    for section in found:
        for block in section.blocks:
            if not isinstance(block, Charts):
                assert UGLY not in block
                assert "<b>" not in block


def test_an_unsupported_forecast_is_remarked_wherever_the_summary_shows_it() -> None:
    X = torch.tensor([[0.1, 0.1], [0.4, 0.4]], dtype=torch.float64)
    past = GPBO().meta_fit(meta_data((5, 6), 2))
    subject = Subject(past, Task(X, [-0.5, -0.01]), suggestions=X[1:], maximize=False)
    low = float(min((-task.y).min() for task in past.meta))
    run = Run(subject, Known(lambda X: X[..., 0] * 0.0 + 1.0 - min(low, 0.0)))
    summary = sections(run)[0]
    html = "".join(block for block in summary.blocks if isinstance(block, str))
    assert html.count("no experiment gave less than") == 3  # tile, sentence, table
    assert "so read it as: lower than so far" in html
