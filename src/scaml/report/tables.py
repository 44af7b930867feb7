"""Tables of the page as HTML. This module escapes every text in them."""

from __future__ import annotations

from collections.abc import Sequence

from scaml.explain.explanations import ExplanationRow
from scaml.explain.suggestions import Suggestion
from scaml.explain.weights import WeightRow
from scaml.report.escape import escaped
from scaml.report.row_texts import (
    expected_text,
    largest_moves,
    limit_text,
    row_name,
    setting_texts,
    weight_text,
)
from scaml.report.text import percent, plain, setting, short
from scaml.report.verdict_words import explanation_text
from scaml.spaces.matching import Match

__all__ = [
    "explanations_table",
    "matching_table",
    "suggestions_table",
    "table",
    "tiles",
    "weights_table",
]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, strong: int = -1) -> str:
    """Rows of HTML cells below a header of text; `strong` is the number of a row to emphasise."""
    top = "".join(f'<th scope="col">{escaped(text)}</th>' for text in head)
    body = []
    for i, (first, *cells) in enumerate(rows):
        kind = ' class="strong"' if i == strong else ""
        body.append(
            f'<tr{kind}><th scope="row">{first}</th>'
            + "".join(f"<td>{c}</td>" for c in cells)
            + "</tr>"
        )
    return (
        f'<div class="scroll"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def suggestions_table(found: Sequence[Suggestion], objective: str) -> str:
    """One row per parameter, one column per suggestion."""
    numbers = range(1, len(found) + 1)
    head = ["", *(f"Suggestion {i}" if len(found) > 1 else "Suggestion" for i in numbers)]
    settings = [setting_texts(one) for one in found]
    lines = [
        [escaped(name), *(escaped(column[i]) for column in settings)]
        for i, name in enumerate(found[0].params)
    ]
    strong = len(lines)
    expected = [_expected(one) for one in found]
    if any(expected):
        lines.append([f"Expected {escaped(objective)}", *expected])
    moves = [largest_moves(one) for one in found]
    if any(moves):
        name = "Past tasks that raise or lower this prediction most"
        lines.append([name, *map(_spans, moves)])
    return table(head, lines, strong=strong)


def _expected(suggestion: Suggestion) -> str:
    limit = limit_text(suggestion)
    remark = f'<span class="remark">{escaped(limit)}</span>' if limit else ""
    return escaped(expected_text(suggestion)) + remark


def _spans(moves: Sequence[tuple[str, str]]) -> str:
    lines = [
        f'<span title="{escaped(name)}">{escaped(short(name, 40))} {escaped(move)}</span>'
        for name, move in moves
    ]
    return "".join(lines) or "–"


def weights_table(rows: Sequence[WeightRow], sizes: dict[str, int]) -> str:
    """All weights as numbers, one row per past task; `sizes` has the number of observations of each."""
    shared, explained = rows[0].mean is not None, rows[0].matters is not None
    head = ["Past task", "Observations", "Weight"]
    head += ["Matters", "Mirrored"] if explained else []
    head += ["Share of the mean", "Share of the variance"] if shared else []
    lines = []
    for row in rows:
        weight = "–" if row.weight is None else weight_text(row.weight)
        size = "–" if row.name is None else str(sizes.get(row.name, "–"))
        line = [row_name(row), size, weight]
        shares = [row.matters, row.mirrored] if explained else []
        shares += [row.mean, row.variance] if shared else []
        line += ["–" if share is None else percent(share) for share in shares]
        lines.append([escaped(text) for text in line])
    return table(head, lines)


def explanations_table(rows: Sequence[ExplanationRow]) -> str:
    """The probability of each explanation, the most probable in bold."""
    lines = [[escaped(explanation_text(row)), escaped(percent(row.probability))] for row in rows]
    return table(["The new task is like", "Probability"], lines, strong=0)


def matching_table(matches: Sequence[Match]) -> str:
    """One row per past task: matched, lacking and held parameters, and the number of unused rows."""
    head = ["Past task", "Matched", "Lacks", "Held", "Rows left out"]
    lines = [
        [
            m.name,
            ", ".join(map(plain, m.matched)) or "–",
            ", ".join(map(plain, m.lacking)) or "–",
            ", ".join(f"{plain(name)} = {setting(value)}" for name, value in m.held.items()) or "–",
            str(m.left_out or "–"),
        ]
        for m in matches
    ]
    return table(head, [[escaped(text) for text in line] for line in lines])


def tiles(pairs: Sequence[tuple[str, str]]) -> str:
    """A few numbers in large print, each with its name."""
    cells = (f"<div><dt>{escaped(what)}</dt><dd>{escaped(value)}</dd></div>" for what, value in pairs)
    return f'<dl class="tiles">{"".join(cells)}</dl>'
