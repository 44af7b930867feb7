"""Tables of the page as HTML; every text in them is escaped here."""

from __future__ import annotations

from collections.abc import Sequence

from scaml.common.text import escaped, percent, plain, setting, short
from scaml.report.rows import Suggested, WeightRow, weight_in_words
from scaml.spaces.matching import Match

__all__ = ["matching_table", "suggestions_table", "table", "tiles", "weights_table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, strong: int = -1) -> str:
    """Rows of HTML cells under a head of text; `strong` is the number of a row to emphasise."""
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


def suggestions_table(rows: Sequence[Suggested], names: Sequence[str], objective: str) -> str:
    """A row a parameter, a column a suggestion."""
    head = [
        "",
        *(f"Suggestion {i}" if len(rows) > 1 else "Suggestion" for i in range(1, len(rows) + 1)),
    ]
    lines = [
        [escaped(name), *(escaped(row.settings[i]) for row in rows)] for i, name in enumerate(names)
    ]
    strong = len(lines)
    if any(row.expected for row in rows):
        lines.append([f"Expected {escaped(objective)}", *(escaped(row.expected) for row in rows)])
    if any(row.behind for row in rows):
        lines.append(["Past tasks behind it", *(_behind(row) for row in rows)])
    return table(head, lines, strong=strong)


def _behind(row: Suggested) -> str:
    lines = [
        f'<span title="{escaped(name)}">{escaped(short(name, 40))} {escaped(move)}</span>'
        for name, move in row.behind
    ]
    return "".join(lines) or "–"


def weights_table(rows: Sequence[WeightRow], sizes: dict[str, int]) -> str:
    """All weights as numbers, however many there are."""
    shared = rows[0].mean is not None
    head = ["Past task", "Observations", "Weight"]
    head += ["Share of the mean", "Share of the variance"] if shared else []
    lines = []
    for row in rows:
        weight = "–" if row.weight is None else weight_in_words(row.weight)
        line = [row.name, str(sizes.get(row.name, "–")) if row.weight is not None else "–", weight]
        if shared:
            line += ["–" if share is None else percent(share) for share in (row.mean, row.variance)]
        lines.append([escaped(text) for text in line])
    return table(head, lines)


def matching_table(matches: Sequence[Match]) -> str:
    """What both spaces have, what a past task lacks, what of it is held."""
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
    """A few numbers to see at a glance."""
    cells = (f"<div><dt>{escaped(what)}</dt><dd>{escaped(value)}</dd></div>" for what, value in pairs)
    return f'<dl class="tiles">{"".join(cells)}</dl>'
