"""The page: sections of sentences, charts and tables in one HTML file that needs no other file.

Charts are stored as data. The page runs two scripts, Plotly and a loop over the charts; a policy in its
head forbids the browser to run any other script, to load anything and to send anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scaml.common.checks import check_seed
from scaml.common.files import replacing
from scaml.common.progress import StepProgress
from scaml.errors import SettingError
from scaml.explain.run import Run
from scaml.explain.subject import Subject
from scaml.report.drawing import plotly
from scaml.report.escape import escaped
from scaml.report.sections import Charts, Section, paragraph, sections
from scaml.report.style import CSS, DRAW
from scaml.report.text import plain

__all__ = ["page", "page_of_run"]


def page(
    subject: Subject,
    path: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> str:
    """A page that explains a subject, as one HTML file that needs no network.

    Args:
        subject: What to explain.
        path: The file to write, whole or not at all; None to write no file.
        seed: Decides every random draw. Same arguments, same page.
        progress: Called with the number of sections that are done, and with the number of all.

    Returns:
        The page as text.
    """
    if not isinstance(subject, Subject):
        raise SettingError(f"The subject is a {type(subject).__name__}; give a scaml.report.Subject.")
    return page_of_run(Run.of(subject, seed=check_seed(seed)), path, progress=progress)


def page_of_run(
    run: Run, path: str | os.PathLike[str] | None = None, *, progress: StepProgress | None = None
) -> str:
    """The page of a subject whose model is there already; arguments as of `page`."""
    library: str = plotly("offline").get_plotlyjs()
    text = _html(run, library, progress)
    if path is not None:
        _write(Path(path), text)
    return text


def _html(run: Run, library: str, progress: StepProgress | None) -> str:
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
<p class="lead">What the past tasks say about the new task, what its own experiments have added, and
what to try next. A past task is a finished series of experiments on something similar.</p>
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
    """The places of charts. Their data are appended to `charts`, for the end of the page."""
    places = []
    for figure, described in block.figures:
        name = f"chart-{len(charts) + 1}"
        charts.append({"id": name, "figure": json.loads(figure.to_json())})
        height = figure.layout.height  # reserved at once, so that nothing moves when charts are drawn
        places.append(
            f'<div class="chart" id="{name}" role="img" aria-label="{escaped(described)}" '
            f'style="height: {height}px"></div>'
        )
    return f'<div class="panels {block.kind}">{"".join(places)}</div>'


def _data(charts: list[dict[str, Any]]) -> str:
    """JSON without the characters of HTML markup."""
    text = json.dumps(charts, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(*scripts: str) -> str:
    """A content security policy that allows only these scripts."""
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
