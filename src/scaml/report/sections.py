"""The sections of the page: sentences, then charts and tables if the run has the numbers for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scaml.common.progress import StepProgress
from scaml.explain.explanations import explanation_rows
from scaml.explain.run import Inapplicable, Run
from scaml.explain.weights import weight_rows
from scaml.report.escape import escaped
from scaml.report.figures import MOST_ROWS, left_out_figure, progress_figure, weights_figure
from scaml.report.legends import maps_legend, slices_legend
from scaml.report.row_texts import expected_text, limit_text
from scaml.report.surfaces import check_two, map_panels, slice_panel, task_curves
from scaml.report.tables import (
    explanations_table,
    matching_table,
    suggestions_table,
    tiles,
    weights_table,
)
from scaml.report.text import number, plain
from scaml.report.verdict_words import (
    ABOUT_PROBABILITIES,
    about_explanations,
    about_verdict,
    warnings,
)
from scaml.report.words import (
    about_left_out,
    about_map,
    about_matching,
    about_shares,
    about_slices,
    about_suggestions,
    about_summary,
    about_weights,
    ignored_tasks,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["MOST_SLICES", "Charts", "Section", "paragraph", "sections"]

MOST_SLICES = 12
"""Parameters that get a slice of their own."""


@dataclass(frozen=True, eq=False)
class Charts:
    """Figures that stand side by side if the screen is wide enough.

    Args:
        figures: Each with a description for readers who cannot see it.
        kind: The CSS class of their frame: "one", "pair", "many" or "narrow".
    """

    figures: list[tuple[Figure, str]]
    kind: str = "one"


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, one paragraph of plain text, and charts or HTML below it.

    Args:
        title: The heading.
        words: The sentences of the paragraph.
        blocks: Charts and HTML, in their order.
    """

    title: str
    words: list[str]
    blocks: list[Charts | str] = field(default_factory=list)


Content = tuple[list[str], list[Charts | str]]


def sections(run: Run, progress: StepProgress | None = None) -> list[Section]:
    """All sections. A section that does not apply to the run says why in one sentence.

    Args:
        run: What to explain.
        progress: Called with the number of sections that are done, and with the number of all.
    """
    makers: dict[str, Callable[[Run], Content]] = {
        "Summary": _summary,
        **({"Which past task is this one like?": _explanations} if run.verdict else {}),
        "How much each past task counts": _weights,
        "Along each parameter": _slices,
        "Two parameters together": _maps,
        "How good are the predictions?": _left_out,
        "How the parameters were matched": _matching,
    }
    found: list[Section] = []
    for title, make in makers.items():
        if progress is not None:
            progress(len(found), len(makers))
        found.append(_section(title, run, make))
    return found


def _section(title: str, run: Run, make: Callable[[Run], Content]) -> Section:
    try:
        return Section(title, *make(run))
    except Inapplicable as reason:
        return Section(title, [str(reason)])


def _summary(run: Run) -> Content:
    subject, found = run.subject, run.suggestions
    pairs = [("Experiments", str(run.task.n)), ("Past tasks", str(len(run.past)))]
    blocks: list[Charts | str] = []
    if run.best is not None:
        value = number(run.sign * float(run.task.y[run.best]))
        pairs.insert(0, (f"Best {subject.objective} so far", value))
    if found and expected_text(found[0]):
        limit = limit_text(found[0])
        what = f"Expected {subject.objective} of the first suggestion{f' ({limit})' if limit else ''}"
        pairs.append((what, expected_text(found[0])))
    words = about_summary(run)
    if run.verdict is not None:
        words.append(about_verdict(run.verdict))
        blocks += [paragraph([text], "warning") for text in warnings(run.verdict)]
    blocks.append(tiles(pairs))
    if run.task.n:
        drawn = progress_figure(run.task.y, run.sign, subject.objective)
        blocks.append(Charts([(drawn, "Best value so far over the experiments")]))
    blocks.append(f"<h3>What to try next</h3>{paragraph(about_suggestions(found, subject.objective))}")
    if found:
        blocks.append(suggestions_table(found, subject.objective))
    return words, blocks


def _explanations(run: Run) -> Content:
    rows = explanation_rows(run.verdict, run.method)
    assert run.verdict is not None
    return about_explanations(run.verdict), [explanations_table(rows)]


def _weights(run: Run) -> Content:
    run.check_past()
    rows = weight_rows(run.model, run.points, run.past, run.method)
    words = about_weights(rows, run.task.n)
    blocks: list[Charts | str] = [Charts([(weights_figure(rows), "Weights of the past tasks")])]
    if len(run.past) > MOST_ROWS:
        words.append(f"The chart shows the {MOST_ROWS} largest weights; the table has all.")
    if rows[0].mean is not None:
        blocks.append(f'<p class="note">{escaped(about_shares(rows))}</p>')
    else:
        words.append(f"How the weights are used depends on {run.method}.")
    if rows[0].matters is not None:
        blocks.append(f'<p class="note">{escaped(ABOUT_PROBABILITIES)}</p>')
    sizes = {name: task.n for name, task in zip(run.past, run.prior.meta, strict=True)}
    numbers = weights_table(rows, sizes)
    blocks.append(f"<details><summary>All weights as a table</summary>{numbers}</details>")
    return words, blocks


def _slices(run: Run) -> Content:
    run.check_varies()
    parameters, _ = run.by_sensitivity()
    curves = task_curves(run)
    shown = parameters[:MOST_SLICES]
    panels = [
        (slice_panel(run, parameter, curves), f"Prior and posterior along {plain(parameter.name)}")
        for parameter in shown
    ]
    legend = slices_legend(run, curves)
    return about_slices(run, len(shown), bool(curves)), [legend, Charts(panels, "many")]


def _maps(run: Run) -> Content:
    run.check_varies()
    check_two(run)
    parameters, effects = run.by_sensitivity()
    mean, uncertainty = map_panels(run, (parameters[0], parameters[1]))
    names = parameters[0].name, parameters[1].name
    words = about_map(run, names, (effects[0], effects[1]))
    charts = Charts([(mean, "Expected value"), (uncertainty, "Uncertainty")], "pair")
    return words, [maps_legend(run), charts]


def _left_out(run: Run) -> Content:
    comparison = run.comparison
    drawn = left_out_figure(comparison, run.sign, run.subject.objective)
    words = about_left_out(comparison, run.subject.objective)
    errors = "the error is" if comparison.plain is None else "both errors are"
    note = f"The hyperparameters are fitted to all experiments, so {errors} a little too small."
    return words, [
        Charts([(drawn, "Predictions from the other experiments against observations")], "narrow"),
        f'<p class="note">{escaped(note)}</p>',
    ]


def _matching(run: Run) -> Content:
    run.check_past()
    matching = run.subject.matching
    blocks: list[Charts | str] = []
    if matching is not None and not matching.identical:
        used = [match for match in matching.matches if not match.ignored]
        if used:
            blocks.append(matching_table(used))
        ignored = "".join(f"<li>{escaped(text)}</li>" for text in ignored_tasks(run))
        if ignored:
            blocks.append(f'<p>Not used:</p><ul class="plain">{ignored}</ul>')
    return about_matching(run), blocks


def paragraph(words: list[str], kind: str = "") -> str:
    """Sentences as one paragraph of HTML, without line breaks before % and around ±.

    Args:
        words: The sentences.
        kind: The CSS class; empty for none.
    """
    text = escaped(" ".join(words))
    start = f'<p class="{kind}">' if kind else "<p>"
    return f"{start}{text.replace(' %', '&nbsp;%').replace(' ± ', '&nbsp;±&nbsp;')}</p>"
