"""The page: sections of sentences, charts and tables as one HTML file that needs nothing else.

Charts are data, not script: the page runs two scripts, Plotly and a loop over the charts, and a policy
in its head lets the browser run no other, load nothing and send nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scaml.common.checks import check_seed
from scaml.common.files import replacing
from scaml.common.text import escaped, plain
from scaml.errors import SettingError
from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.report.drawing import plotly
from scaml.report.sections import Charts, Section, paragraph, sections
from scaml.report.style import CSS, DRAW

__all__ = ["page"]


def page(
    subject: Subject,
    path: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """A page that explains a run, as one HTML file that needs no network.

    Args:
        subject: The run.
        path: Where to write it, whole or not at all; None for nowhere.
        seed: Decides every random draw. Same arguments, same page.
        progress: Told how many sections are done, and out of how many.

    Returns:
        The page as text.
    """
    if not isinstance(subject, Subject):
        raise SettingError(f"The subject is a {type(subject).__name__}; give a scaml.report.Subject.")
    library: str = plotly("offline").get_plotlyjs()
    text = _html(Run.of(subject, seed=check_seed(seed)), library, progress)
    if path is not None:
        _write(Path(path), text)
    return text


def _html(run: Run, library: str, progress: Callable[[int, int], None] | None) -> str:
    charts: list[dict[str, Any]] = []
    body = "".join(_section(section, charts) for section in sections(run, progress))
    title = escaped(run.subject.title or run.task.name or "What was learned from the past")
    method = escaped(f"scaml {version('scaml')}, {run.prior.method!r}")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(library, DRAW)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{CSS}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="lead">What past tasks teach about a new one, what its own experiments have added, and what to
try next. A past task is a finished series of experiments on something similar.</p>
<noscript><p>The charts of this page are drawn by JavaScript, which is turned off.</p></noscript>
{body}
<footer>{method}</footer>
</main>
<script type="application/json" id="charts">{_data(charts)}</script>
<script>{library}</script>
<script>{DRAW}</script>
</body>
</html>
"""


def _section(section: Section, charts: list[dict[str, Any]]) -> str:
    blocks = [block if isinstance(block, str) else _frame(block, charts) for block in section.blocks]
    words = paragraph(section.words)
    return f"<section>\n<h2>{escaped(section.title)}</h2>\n{words}\n{''.join(blocks)}\n</section>\n"


def _frame(block: Charts, charts: list[dict[str, Any]]) -> str:
    """The places of charts, whose data go to the end of the page."""
    places = []
    for figure, described in block.figures:
        name = f"chart-{len(charts) + 1}"
        charts.append({"id": name, "figure": json.loads(figure.to_json())})
        height = figure.layout.height  # kept free from the beginning, so that nothing jumps
        places.append(
            f'<div class="chart" id="{name}" role="img" aria-label="{escaped(described)}" '
            f'style="height: {height}px"></div>'
        )
    return f'<div class="panels {block.kind}">{"".join(places)}</div>'


def _data(charts: list[dict[str, Any]]) -> str:
    """JSON that no parser of HTML mistakes for markup."""
    text = json.dumps(charts, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(*scripts: str) -> str:
    """What the browser may do: run these scripts and nothing else."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _write(path: Path, text: str) -> None:
    try:
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SettingError(
            f"{plain(path)!r} cannot be written ({reason}); give a path where you may write."
        ) from error
